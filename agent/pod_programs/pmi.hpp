// muster-pmi: the parent of a rank of an MPI job that runs without a launcher (`direct` in
// core/spec/fields/mpi.hpp).
//
// Serves PMI-1, the protocol by which MPICH's ranks find each other, to the rank on its own socket,
// and exchanges what the ranks put through the agents. It keeps everything that its rank has put,
// so agents and the coordinator may restart while ranks run.
//
// PMI-1: lines of "cmd=NAME KEY=VALUE...", each answered by one line
// (MPICH, "Process Management Interface", wire protocol version 1.1).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

// One rank's side of the protocol, without its transport.
class PmiRank {
 public:
  static constexpr size_t kKeyMax = 64, kValueMax = 1'024, kKeysMax = 256, kBytesMax = 16'384;
  using KeyValues = std::map<std::string, std::string>;

  // `mapping`: PMI_process_mapping; `name`: of the key-value space.
  PmiRank(uint32_t size, std::string name, std::string mapping)
      : size_(size), name_(std::move(name)) {
    known_["PMI_process_mapping"] = std::move(mapping);
  }

  struct Reply {
    std::string text;            // to be sent; empty: nothing yet
    bool fence = false;          // the rank waits until all ranks get here: fenced()
    bool broken = false;         // not PMI-1: close the connection
    std::optional<int> abort{};  // the rank wants all to end, with this exit code
  };
  // `line`: without the newline.
  Reply take(std::string_view line);
  // All ranks have reached fence number fences(), and have put `all`.
  std::string fenced(KeyValues all);

  uint32_t fences() const { return fences_; }  // that the rank has reached
  // It has called MPI_Init, but not MPI_Finalize.
  bool unfinished() const { return unfinished_; }
  const KeyValues& puts() const { return puts_; }

 private:
  const uint32_t size_;
  const std::string name_;
  KeyValues puts_;    // by this rank, in total
  KeyValues known_;   // as of the last fence, and its own
  size_t bytes_ = 0;  // put
  uint32_t fences_ = 0;
  bool unfinished_ = false;
};

// muster-pmi [--] COMMAND...: runs the command as rank JOB_COMPLETION_INDEX and exits as it does. A
// rank that aborts (MPI_Abort) is ended, and the exit code is the one that it gave, or 1 if that
// would count as success. It is also 1 if the rank exits with 0 without MPI_Finalize: the others
// would wait for it forever.
//
// After SIGTERM, which the rank gets, too, the rank waits only briefly for others at fences: they
// are ended as well, and may not get there.
int run_pmi(const std::vector<std::string>& arguments);

// PMI_process_mapping for ranks on these nodes.
std::string process_mapping(const std::vector<std::string>& nodes);

}  // namespace muster::agent
