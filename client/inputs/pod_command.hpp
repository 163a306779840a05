// PodCommand: a command in a running pod, as its client sees it.
//
// The client chooses the session id, so that it can find its command again after a restart of the
// coordinator or the node's agent: start() it once, then resume() it. Reads say how many bytes have
// arrived, so nothing is lost or repeated.
#pragma once

#include "base/result.hpp"
#include "client/connect/http.hpp"

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
  uint64_t bytes = 0;   // of its input, so far; may be less than reported before
  bool closed = false;  // it takes no more
};

// Immutable; threads may share it, each with its own client.
class PodCommand {
 public:
  static constexpr size_t kWriteMax = 64 << 10;
  enum class Reads { nothing, input, terminal };

  PodCommand(const std::string& ns, const std::string& pod);

  // `container`: its name; empty: the pod's first. not_found: no such pod. conflict: the pod or the
  // container is not running.
  Result<Response> start(ApiClient& client, const std::vector<std::string>& words,
                         Reads reads = Reads::nothing, const std::string& container = "") const;
  // conflict: the command is over. not_found: its pod is over too.
  Status resume(ApiClient& client) const;
  // `out`, `err`: bytes read so far. not_found: resume() it. Returns within about 5 s.
  Result<CommandOutput> read(ApiClient& client, uint64_t out, uint64_t err) const;
  // Sends input: `data`, at most kWriteMax bytes, starts at `offset`. `eof`: no more follows.
  // not_found: resume() it. Returns once some of it has been taken, or after about 5 s.
  Result<CommandTaken> write(ApiClient& client, uint64_t offset, const std::string& data,
                             bool eof) const;
  // Ends the command, or forgets it if it has ended. not_found: resume() it.
  Status end(ApiClient& client) const;

 private:
  const std::string session_, path_;
};

}  // namespace muster::cli
