// PodCommand: a command in a running pod, as its client sees it.
//
// The client chooses the id of the session, so that it finds its command again when the coordinator
// or the node's agent was restarted meanwhile: start() it once, resume() it after that. Reads name
// the bytes that have arrived, so nothing is lost or repeated.
#pragma once

#include "base/result.hpp"
#include "cli/client/http.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::cli {

struct CommandOutput {
  std::string out, err;  // empty: it has written nothing for some seconds
  bool ended = false;
  int exit_code = 0;
  std::string message;  // why it did not start or was lost
};

struct CommandTaken {
  uint64_t bytes = 0;   // of its input, so far; may be less than was said before
  bool closed = false;  // no more will be
};

// Immutable; threads may share it, each with a client of its own.
class PodCommand {
 public:
  static constexpr size_t kWriteMax = 64 << 10;
  enum class Reads { nothing, input, terminal };

  PodCommand(const std::string& ns, const std::string& pod);

  // not_found: no such pod. conflict: it does not run.
  Result<Response> start(ApiClient& client, const std::vector<std::string>& words,
                         Reads reads = Reads::nothing) const;
  // conflict: the command is over. not_found: so is its pod.
  Status resume(ApiClient& client) const;
  // `out`, `err`: bytes that have been read. not_found: resume() it. Returns within about 5 s.
  Result<CommandOutput> read(ApiClient& client, uint64_t out, uint64_t err) const;
  // What it is to read: `data`, at most kWriteMax bytes, begins after `offset` bytes. `eof`: it is
  // the rest. not_found: resume() it. Returns once some of it was taken, or after about 5 s.
  Result<CommandTaken> write(ApiClient& client, uint64_t offset, const std::string& data,
                             bool eof) const;
  // Ends it, or forgets it if it has ended. not_found: resume() it.
  Status end(ApiClient& client) const;

 private:
  const std::string session_, path_;
};

}  // namespace muster::cli
