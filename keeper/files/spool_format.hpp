// SpoolFormat: the entries of the spool as bytes (docs/formats-keeper.md).
//
// A segment has the version that its header says; the header itself is the same in all versions.
// Versions 2 and 3 write what differs from the entry before, and several ends as one entry; an end
// of version 3 says what the process used. So both the encoder and the decoder have a state, which
// begins anew with each segment, and an entry can be read only after all those before it.
//
// Invariants: whatever the encoder has appended since begin() belongs to one segment, in that
// order; the decoder never reads outside an entry, and nothing after a malformed one.
#pragma once

#include "keeper/protocol.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::keeper {

// The start of a process. On disk, pid 0 stands for none.
struct Start {
  int32_t pid = 0;
  uint64_t at_ns = 0;
  uint64_t ticks = 0;  // as in ProcStat; identifies it, with the pid; 0: unknown
};

// What the spool holds about one process, from its intent until it is forgotten.
struct Record {
  Key key;
  uint64_t entry = 0;
  uint64_t tried_ns = 0;         // its intent, or the last attempt to start it
  std::optional<Start> start{};  // absent: it has not started, or failed before its exec
  uint64_t end_ns = 0;
  bool ended = false, lost = false, out_of_memory = false, fenced = false;
  int exit_code = 0, signal = 0;
  core::Usage used{};
  std::string error, note;
  uint64_t segment = 0;   // where its intent is; 0: not in the spool
  bool reserved = false;  // the spool has room for its end
  uint64_t keeper = 0;    // the keeper that started it
  bool this_boot = true;
};
using Records = std::unordered_map<uint64_t, Record>;  // by entry

struct SegmentHeader {
  uint32_t version = kSpoolVersion;
  std::string boot, cluster;
  uint64_t keeper = 0;
};

// What an entry's numbers are written as the difference to.
struct SpoolState {
  uint64_t entry = 0, job = 0, index = 0, pid = 0, time_ns = 0;
  std::string note;
};

class SpoolEncoder {
 public:
  // Begins a segment with this header.
  void begin(std::string& out, const SegmentHeader& header);
  void intent(std::string& out, const Record& record);
  void started(std::string& out, const Record& record);
  // The entry is complete, and appended, at the next entry of another kind or seal().
  void ended(std::string& out, const Record& record);
  void forgot(std::string& out, const std::vector<uint64_t>& entries);
  void seal(std::string& out);
  size_t unsealed_bytes() const { return ends_.size(); }

 private:
  uint32_t version_ = kSpoolVersion;
  uint64_t keeper_ = 0;
  SpoolState last_;
  std::string ends_;  // of an entry that is not complete
};

class SpoolDecoder {
 public:
  // `boot`: the current one; `number`: of the segment.
  SpoolDecoder(std::string_view bytes, std::string boot, uint64_t number)
      : bytes_(bytes), boot_(std::move(boot)), number_(number) {}

  enum class Read { header, entry, malformed, none };
  // Reads the next entry and applies it to `records`. `none`: there is no valid entry at at().
  Read next(Records& records);
  size_t at() const { return at_; }  // after what has been read; of a malformed entry: its start
  // Once the header has been read. An unknown version cannot be read any further.
  const SegmentHeader& header() const { return header_; }
  bool this_boot() const { return header_.boot == boot_; }
  uint64_t entry_max() const { return entry_max_; }  // of the intents

  // Whether there is a valid entry of any version at or after `from`.
  static bool any_entry(std::string_view bytes, size_t from);
  static bool begins_with_entry(std::string_view bytes);

 private:
  bool apply_1(uint8_t kind, std::string_view payload, Records& records);
  bool apply_2(uint8_t kind, std::string_view payload, Records& records);
  void add(Record record, Records& records);
  void forget_times(Record& record) const;

  const std::string_view bytes_;
  const std::string boot_;
  const uint64_t number_;
  size_t at_ = 0;
  SegmentHeader header_;
  SpoolState last_;
  uint64_t entry_max_ = 0;
};

}  // namespace muster::keeper
