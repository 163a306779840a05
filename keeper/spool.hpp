// Spool: what the keeper remembers of its processes, should it die.
//
//   work_dir/keeper/spool/<number, 16 hex digits>.seg, numbers rise
//   segment := header entry* zeros               zeros only in the last one; older ones are cut to
//   their size entry   := mark:u32 length:u32 crc:u32 type:u8 payload          padded with zeros to
//   8 bytes
//              length counts type and payload, the crc covers both
//   header  := an entry: version:u32 boot:text cluster:text keeper:u64
//   intent  := entry:u64 key time:u64 keeper:u64 note:text          before the process is started
//   started := entry:u64 pid:i32 start_ticks:u64 time:u64
//   ended   := entry:u64 pid:i32 exit:i32 signal:i32 lost:u8 started:u64 ended:u64 error:text
//   oom:u8 forgot  := entry:u64*                                           need not reach the disk
//
// Times are CLOCK_BOOTTIME nanoseconds. Entries go to the file in one write() a turn of the
// keeper's loop, which survives the death of the keeper; a thread of its own syncs what was written
// a few times a second, which survives that of the machine.
//
// Segments are allocated ahead: a start is refused while the spares could not take the ends of all
// that run, so a full disk refuses starts and loses no end. What the disk does not take stays in
// memory and is written again, at the same place, until it does; trouble() says why. Only the
// oldest segment is ever dropped; what is alive in it is written again at the front. So the entries
// after an intent are always there when the intent is.
//
// Always holds: one keeper writes (the lock); each keeper begins a segment of its own.
#pragma once

#include "keeper/protocol.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace muster::keeper {

// What is remembered of one process, from its intent until it is forgotten.
struct Record {
  Key key;
  uint64_t entry = 0;
  int pid = 0;  // 0: not started
  uint64_t start_ticks = 0;
  uint64_t start_ns = 0, end_ns = 0;
  bool ended = false, lost = false, out_of_memory = false;
  int exit_code = 0, signal = 0;
  std::string error, note;
  uint64_t segment = 0;  // where its intent is; 0: not in the spool
  uint64_t keeper = 0;   // the keeper that started it
  bool this_boot = true;
};

class Spool {
 public:
  enum class Opened { fine, damaged, failed };
  struct Found {
    Opened opened = Opened::fine;
    std::string why;              // when not fine
    std::vector<Record> records;  // neither forgotten nor dropped; when damaged, what could be read
  };

  Spool(std::string boot, uint64_t keeper, size_t segment_bytes);
  ~Spool();

  // Reads what is there and begins a segment. Each record is handed in again by adopt(); after
  // adopted_all() what is old may be dropped.
  Found open(int dir_fd, std::string cluster);
  void adopt(Record& record);
  void adopted_all() { may_drop_ = true; }

  size_t note_max() const { return segment_bytes_ / 2; }
  // The record's address must stay until forget(). Empty, or why there is no room for it now.
  std::string intend(Record& record);
  void started(const Record& record);
  void ended(Record& record);
  // It was not started, and nothing is to be remembered of it.
  void withdraw(const Record& record);
  void forget(const Record& record);
  void set_cluster(const std::string& cluster);

  // Writes all of the above. False: the disk does not take it now; nothing that depends on it may
  // be done yet.
  bool flush();
  void sync();  // waits for the disk

  // Why the disk does not take what is noted; empty: it does. Looks for room again if that lacked.
  std::string trouble();

 private:
  struct File {
    explicit File(int fd) : fd(fd) {}
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int fd;
  };
  struct Segment {
    uint64_t number = 0;
    size_t live_bytes = 0;  // of the intents in it whose process is not forgotten
  };

  std::string read_segment(uint64_t number, bool last,
                           std::unordered_map<uint64_t, Record>& records);
  bool make_spares(size_t count);
  void begin_segment();
  void put(std::string_view entry);
  void write_intent(Record& record);
  void drop_old();
  void end_entry(const Record& record);
  void run_sync();
  Segment* find(uint64_t number);
  static size_t weight(const Record& record);

  const std::string boot_;
  const uint64_t keeper_;
  const size_t segment_bytes_;
  std::string cluster_;
  int dir_ = -1;
  std::shared_ptr<File> file_;    // the segment that is written
  size_t offset_ = 0;             // what it holds on disk
  std::string pending_;           // what follows
  std::deque<Segment> segments_;  // oldest first; the last one is written
  std::deque<std::pair<uint64_t, std::shared_ptr<File>>> spares_;
  uint64_t next_segment_ = 1;
  uint64_t next_entry_ = 0;
  size_t open_ends_ = 0;  // processes whose end is still to be written
  size_t live_bytes_ = 0;
  std::unordered_map<uint64_t, Record*> live_;
  std::vector<uint64_t> forgotten_;
  bool may_drop_ = false;
  int write_error_ = 0;  // of the last flush; 0: it was written
  int room_error_ = 0;   // of the last intend(): there was no room for spares
  size_t room_wanted_ = 0;
  std::atomic<int> sync_error_ = 0;          // of the last sync
  std::atomic<uint64_t> sync_since_ns_ = 0;  // boot time; 0: none is under way

  std::mutex mutex_;  // of what follows
  std::condition_variable dirty_or_done_;
  std::vector<std::shared_ptr<File>> dirty_;
  bool done_ = false;
  std::thread syncer_;
};

}  // namespace muster::keeper
