// Backend: what the API asks of the coordinator.
//
// Everything that is read comes from the View; this is for what changes something or needs an
// agent. All calls are made on the API thread and return at once; each `done` is called once, on
// the API thread, after the change is durable and the View has shown it.
#pragma once

#include "base/result.hpp"
#include "core/ids.hpp"
#include "core/spec/job_spec.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace muster::api {

struct LogRequest {
  NodeId node = kNoNode;
  PodId pod;
  std::string job_uid, pod_name, container;
  bool stderr_stream = false;   // false: stdout
  int64_t offset = 0;           // negative: that many lines from the end
  uint32_t limit = 256 * 1024;  // bytes, at most 1 MiB
};

struct LogChunk {
  bool found = false;  // false: no such file (nothing was written, or it was removed)
  std::string data;
  int64_t offset = 0;    // where data begins
  int64_t size = 0;      // of the file now
  bool running = false;  // the pod is not over: more may come
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Stores a validated, defaulted job. `exists` when the name is taken; `unavailable` with the
  // reason while nothing can be stored.
  virtual void create_job(core::JobObjectPtr job, std::function<void(Status)> done) = 0;
  // Deletes the job of this namespace and name if its uid is `uid` (empty: any). not_found,
  // conflict (another uid).
  virtual void delete_job(std::string ns, std::string name, std::string uid, bool background,
                          std::function<void(Status)> done) = 0;
  // Reads a part of a pod's log from its node. unavailable: the node is not connected.
  virtual void read_log(LogRequest request, std::function<void(Result<LogChunk>)> done) = 0;
};

}  // namespace muster::api
