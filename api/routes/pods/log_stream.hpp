// The log of a container as a response that is produced piece by piece (see also
// api/request/streams.hpp).
//
// Its outputs are read from the node in turns, each only as far as the client has taken what came
// before. With a run, the log ends where that process's output does, and is followed until it ends.
#pragma once

#include "api/request/streams.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace muster::api {

struct LogQuery {
  Key pod;
  std::optional<NodeId> ended_on;  // the pod has ended and might no longer be shown
  std::string job_uid, pod_name, container;
  bool follow = false, out = true, err = true, timestamps = false;
  std::optional<int64_t> tail_lines, limit_bytes;
  Millis since = 0;    // only lines that are not older
  int64_t offset = 0;  // bytes of the output to skip; for a single one only
  // Of the container's first (0), second (1), … process; -1: of all.
  int32_t run = -1;
  size_t position = 0;      // of the container in PodEnd::containers
  bool only_one = false;    // the pod has no other container
  Millis otherwise_at = 0;  // the time of lines for which the node knows none
};
kj::Promise<void> stream_log(StreamContext& context, Exchange& exchange, Backend& backend,
                             LogQuery query);

}  // namespace muster::api
