// Backend: what the API asks of the coordinator.
//
// Everything that is read comes from the View; this is for what changes something or needs an
// agent. All calls are made on the API thread and return at once; each `done` is called once, on
// the API thread, after the change is durable and the View has shown it.
#pragma once

#include "base/result.hpp"
#include "core/cluster/node_info.hpp"
#include "core/ids.hpp"
#include "core/job/event.hpp"
#include "core/job/pod.hpp"
#include "core/kept.hpp"
#include "core/spec/job_spec.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

// What becomes of the pods of a job that is deleted (job-semantics 10.4).
enum class Propagation { background, foreground, orphan };

struct AttemptRequest {
  JobId job = 0;
  std::pair<uint64_t, uint32_t> from{};  // as an earlier page's `next`
  size_t limit = 500;
  std::function<bool(const core::Pod&)> wanted;
};

struct AttemptPage {
  std::vector<core::Pod> attempts;
  std::optional<std::pair<uint64_t, uint32_t>> next;  // nothing: this was the last page
  std::pair<uint64_t, uint32_t> end{};                // where what is closed later will stand
};

struct BackupMade {
  uint64_t commit = 0, files = 0, bytes = 0;
};

// What a recount of all jobs came to.
struct Verification {
  uint64_t commit = 0, jobs = 0, attempts = 0, counted = 0;
  std::vector<std::string> mismatches;
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Stores a validated, defaulted job. `exists` when the name is taken; `unavailable` with the
  // reason while nothing can be stored.
  virtual void create_job(core::JobObjectPtr job, std::function<void(Status)> done) = 0;
  // Deletes the job of this namespace and name if its uid is `uid` (empty: any). not_found,
  // conflict (another uid).
  virtual void delete_job(std::string ns, std::string name, std::string uid,
                          Propagation propagation, std::function<void(Status)> done) = 0;
  // Stores `job` in the place of `seen`, which is what the View shows: metadata and spec, both
  // judged. conflict: the job is not `seen` any more (look again, decide again); not_found.
  virtual void update_job(core::JobObjectPtr seen, core::JobObjectPtr job,
                          std::function<void(Status)> done) = 0;
  // The status of the job `write.seen`, as far as others write it. conflict: something of it was
  // written since; not_found.
  virtual void write_status(core::StatusWrite write, std::function<void(Status)> done) = 0;
  // Deletes pods of one job; `evict` sets their condition DisruptionTarget first. Without
  // `grace_ms`: the template's. Those that have ended are not shown any more, the others end.
  // not_found: none of them is there.
  virtual void delete_pods(JobId job, std::vector<PodKey> pods, bool evict,
                           std::optional<Millis> grace_ms, std::function<void(Status)> done) = 0;
  // Sets conditions, labels and annotations of a pod, beside those it has. not_found.
  virtual void write_pod(JobId job, core::PodConditionsWrite write,
                         std::function<void(Status)> done) = 0;
  // Stores `spec` for the node in the place of `seen`. conflict, not_found.
  virtual void change_node(std::string name, core::NodeSpec seen, core::NodeSpec spec,
                           std::function<void(Status)> done) = 0;
  // The node is forgotten and its pods end as disrupted. not_found.
  virtual void delete_node(std::string name, std::function<void(Status)> done) = 0;
  // Makes of `seen`, as the View shows it (nullptr: it is not there), what `next` says (nullptr: it
  // goes). exists, conflict, not_found; overloaded: no more of its kind are kept.
  virtual void write_kept(core::KeptPtr seen, core::KeptPtr next,
                          std::function<void(Status)> done) = 0;
  // Reads a part of a pod's log from its node. unavailable: the node is not connected.
  virtual void read_log(LogRequest request, std::function<void(Result<LogChunk>)> done) = 0;
  // One page of a job's attempts that are over, in the order in which they were closed; read from
  // disk here and now.
  virtual Result<AttemptPage> read_attempts(const AttemptRequest& request) = 0;
  // Makes `dir`, an absolute path that is not there, a backup of the state. conflict, invalid,
  // unavailable: also when a backup or a recount is under way.
  virtual void back_up(std::string dir, std::function<void(Result<BackupMade>)> done);
  // Runs `work`, which touches nothing that others have, beside the API thread, and then `done`.
  virtual void compute(std::function<void()> work, std::function<void()> done) {
    work();
    done();
  }
  // Reads the whole state again and recounts it.
  virtual void verify(std::function<void(Result<Verification>)> done);
};

inline void Backend::back_up(std::string, std::function<void(Result<BackupMade>)> done) {
  done(Error{Errc::unavailable, "there is no state on disk", {}});
}
inline void Backend::verify(std::function<void(Result<Verification>)> done) {
  done(Error{Errc::unavailable, "there is no state on disk", {}});
}

}  // namespace muster::api
