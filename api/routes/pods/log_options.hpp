// LogOptions: the parameters of a request for a pod's log (Kubernetes' PodLogOptions), checked.
#pragma once

#include "api/http/url.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace muster::api {

struct LogOptions {
  std::string container;  // empty: not given
  bool follow = false, previous = false, timestamps = false;
  Millis since = 0;  // 0: not given
  std::optional<int64_t> tail_lines, limit_bytes;
  // Which outputs. muster's own commands give `stream`, and read what all runs of the container
  // wrote.
  bool out = true, err = true, stream_given = false;
  int64_t offset = 0;  // bytes of the stream to skip; for a single stream only
};

// As in Kubernetes, a parameter that cannot be read is an error without violations (400), one with
// a wrong value an error with them (422).
Result<LogOptions> read_log_options(const Url& url, Millis now_ms);

}  // namespace muster::api
