// ApiThread: the KJ thread of the HTTP API.
//
// Owns the View and the server. Batches come in through the inbox, in commit order; what changes
// something goes out to the RegistryActor, what needs an agent to the RPC thread, and their answers
// come back through the inbox. Since a batch is posted here before anybody is answered, a client
// that was told of a change finds it shown.
#pragma once

#include "actors/interfaces.hpp"
#include "api/view/view.hpp"
#include "base/result.hpp"
#include "coordinator/rpc_server.hpp"
#include "core/job/batch.hpp"
#include "core/job/decide.hpp"
#include "core/job/job.hpp"
#include "storage/recovery.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::coordinator {

struct ApiOptions {
  std::string address;  // HOST:PORT or unix:PATH
  bool insecure = false;
  std::string version;
  core::Knobs knobs{};
  storage::Journal& journal;                           // for reading
  std::vector<std::string> hosts;                      // names that clients may call it by
  std::function<Result<core::Job>(JobId)> load_job;    // one unloaded, as the View loads it
  std::function<Result<core::Job>(JobId)> load_brief;  // and as lists tell it
  storage::LoadObject load_object{};
};

class ApiThread {
 public:
  virtual ~ApiThread() = default;
  // Binds and serves at once; until ready() objects are answered with 503 and the reason.
  static Result<std::unique_ptr<ApiThread>> start(ApiOptions options);
  virtual std::string address() const = 0;

  // All from any thread.
  virtual void load(std::vector<core::Job> jobs, std::vector<core::JobSummary> unloaded,
                    std::vector<storage::DamagedJob> damaged, uint64_t commit,
                    std::vector<core::NodeInfo> nodes, std::vector<core::Kept> kept) = 0;
  // Why nothing is served yet.
  virtual void waits(std::string reason) = 0;
  virtual void show(core::Committed batch) = 0;
  virtual void show_nodes(std::vector<core::NodeInfo> nodes) = 0;
  virtual void ready(actors::registry_actor registry, actors::cluster_actor cluster,
                     actors::kept_actor kept, RpcServer& rpc) = 0;
  // A job's decision, for the metrics.
  virtual void synced(bool indexed, core::SyncAction action, double seconds) = 0;
  // Ends watches and connections and joins the thread.
  virtual void stop() = 0;
};

}  // namespace muster::coordinator
