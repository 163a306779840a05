// Spool lengths: how long each segment of the spool was when it was last written.
//
// A segment that lost its tail looks like one that never had it. While the machine runs, what was
// written is there, whoever died; so a segment that is shorter than noted, or missing, was damaged
// by somebody. After a power loss nothing is known: notes of another boot do not count.
//
//   spool.lengths := slot*                  slot N % 1024 is that of segment N
//   slot          := crc:u32 0:u32 number:u64 length:u64 keeper:u64 boot:u64      padded to 64
//   bytes
//                    crc of what follows it; boot: a hash of the boot id
//
// A note is written after the segment, so it never claims too much. A keeper that does not know
// this file begins a segment with a higher number, by which its successor knows that the notes are
// old.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace muster::keeper {

class SpoolLengths {
 public:
  // Of the segments that this boot's notes tell of, by number.
  using Known = std::map<uint64_t, uint64_t>;

  SpoolLengths(const std::string& boot, uint64_t keeper);
  // `dir_fd`: the keeper's directory. Without the file, nothing is known and notes are lost.
  void open(int dir_fd);
  Known known() const;
  void note(uint64_t segment, uint64_t length);
  void forget(uint64_t segment);  // it is about to be removed

 private:
  const uint64_t boot_, keeper_;
  Fd file_;
};

// What contradicts the notes, given the segments that were found and their valid lengths; absent:
// nothing.
std::optional<std::string> contradiction(const SpoolLengths::Known& known,
                                         const SpoolLengths::Known& found);

}  // namespace muster::keeper
