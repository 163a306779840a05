// Spool: the keeper's record of its processes, which survives the keeper.
//
// Segments are files, work_dir/keeper/spool/<number, 16 hex digits>.seg, with increasing numbers. A
// segment is a header, entries and, only in the last one, zeros; older ones are cut. Entries say
// that a process is about to be started, has been started (if it has lived for a while), has ended,
// or may be forgotten, which need not reach the disk. spool_format.hpp writes and reads them.
//
// Times are CLOCK_BOOTTIME nanoseconds. Each turn of the keeper's loop appends its entries in one
// write before it does anything that depends on them, so they survive a crash of the keeper. A
// thread syncs them a few times a second; from then on they also survive a crash of the machine.
//
// Segments are allocated ahead: an order is refused unless the spares have room for the ends of all
// processes and orders, so a full disk prevents starts but loses no end. What the disk rejects
// stays in memory and is retried at the same offset; trouble() says why. Only the oldest segment is
// ever dropped, after its live entries have been rewritten to the newest. So whenever an intent is
// there, so are the entries that follow it.
//
// An orderly exit leaves one segment of version 1 with what has not been forgotten (leave()), so
// that the previous release opens it too.
//
// What was written during this boot is there, whoever died: segments that are shorter than they
// were, or missing, are damage, too (spool_lengths.hpp).
//
// Invariants: only one keeper writes (the lock); each keeper begins a new segment. Any thread may
// call begin(); only the main thread may call anything else.
#pragma once

#include "keeper/files/spool_format.hpp"
#include "keeper/files/spool_lengths.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace muster::keeper {

class Spool {
 public:
  enum class Opened { fine, damaged, failed };
  struct Found {
    Opened opened = Opened::fine;
    std::string why;              // if not fine
    std::vector<Record> records;  // those not forgotten; if not fine, what could be read
  };

  Spool(std::string boot, uint64_t keeper, size_t segment_bytes);
  ~Spool();

  // Reads the segments and begins a new one. Call adopt() for each record, then adopted_all(),
  // after which old segments may be dropped.
  Found open(int dir_fd, std::string cluster);
  void adopt(Record& record);
  void adopted_all() { may_drop_ = true; }

  size_t note_max() const { return segment_bytes_ / 2; }
  // Numbers the record and reserves room for its end. Empty, or why there is no room for it now.
  // The record must keep its address until forget() or withdraw().
  std::string reserve(Record& record);
  // Appends the intent of a reserved record; the next flush() writes it.
  void intend(Record& record);
  // Likewise, but from any thread, and written at once. False: the write failed; call it again
  // after a successful flush().
  bool begin(Record& record);
  void started(const Record& record);
  void ended(Record& record);
  // Drops what reserve() and intend() did for a process that was not started.
  void withdraw(Record& record);
  void forget(const Record& record);
  void set_cluster(const std::string& cluster);

  // Writes all of the above. False: the write failed, so nothing that depends on it may be done
  // yet.
  bool flush();
  void sync();  // waits for the disk
  // Before an orderly exit. Syncs.
  void leave();

  // Why entries do not reach the disk; empty: they do. Retries the allocation if there was no room.
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
    size_t live_bytes = 0;  // of its intents whose process is not forgotten
  };

  bool write();
  Opened read_segment(uint64_t number, bool last, Records& records, std::string& why,
                      uint64_t& length);
  void remove_segment(uint64_t number);
  bool make_spares(size_t count);
  void begin_segment();
  void make_room(size_t bytes);
  void write_intent(Record& record);
  void carry(Record& record);
  void drop_old();
  void run_sync();
  Segment* find(uint64_t number);
  static size_t weight(const Record& record);

  const std::string boot_;
  const uint64_t keeper_;
  const size_t segment_bytes_;
  std::string cluster_;
  int dir_ = -1;

  std::recursive_mutex writing_;  // guards what follows, up to room_wanted_
  std::shared_ptr<File> file_;    // the newest segment, which is being written
  size_t offset_ = 0;             // the bytes written to it
  SpoolLengths lengths_;
  uint32_t version_ = kSpoolVersion;
  SpoolEncoder encoder_;
  std::string pending_;           // to be written next
  std::deque<Segment> segments_;  // oldest first
  std::deque<std::pair<uint64_t, std::shared_ptr<File>>> spares_;
  uint64_t next_segment_ = 1;
  uint64_t next_entry_ = 0;
  size_t open_ends_ = 0;  // processes whose end is still to be written
  size_t live_bytes_ = 0;
  std::unordered_map<uint64_t, Record*> live_;
  std::vector<uint64_t> forgotten_;
  bool may_drop_ = false;
  int write_error_ = 0;  // of the last flush(); 0: it succeeded
  int room_error_ = 0;   // of the last intend(), if it could not allocate spares
  size_t room_wanted_ = 0;
  std::atomic<int> sync_error_ = 0;          // of the last sync
  std::atomic<uint64_t> sync_since_ns_ = 0;  // boot time; 0: none is under way

  std::mutex mutex_;  // guards what follows; taken after writing_
  std::condition_variable dirty_or_done_;
  std::vector<std::shared_ptr<File>> dirty_;
  bool done_ = false;
  std::thread syncer_;
};

}  // namespace muster::keeper
