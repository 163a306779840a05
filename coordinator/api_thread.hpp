// ApiThread: the KJ thread of the HTTP API.
//
// Owns the View and the server. Batches arrive through the inbox, in commit order; changes go to
// the RegistryActor, the ClusterActor or the KeptActor, requests that need an agent to the RPC
// thread, and the answers come back through the inbox. A batch is posted here before any reply that
// rests on it, so a client that learns of a change finds it in the read model.
#pragma once

#include "actors/interfaces.hpp"
#include "api/access/caller.hpp"
#include "api/access/quotas.hpp"
#include "api/access/rules.hpp"
#include "api/http/passed_peer.hpp"
#include "api/view/model/view.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "base/system_journal.hpp"
#include "coordinator/lead.hpp"
#include "coordinator/rpc/rpc_server.hpp"
#include "core/job/fold/batch.hpp"
#include "core/job/fold/job.hpp"
#include "core/job/rules/decide.hpp"
#include "storage/recovery.hpp"
#include "trust/store/munge_desk.hpp"
#include "trust/store/trust_store.hpp"

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
  storage::Journal& journal;      // for reading
  std::string tls_address{};      // HTTPS for clients with tokens: HOST:PORT; empty: none
  std::string metrics_address{};  // metrics and health for anyone; empty: none
  TrustStore* trust = nullptr;    // not null if links are encrypted; outlives the thread
  MungeDesk* munge = nullptr;     // null: munge is not used; outlives the thread
  Millis munge_token_life = core::kMungeTokenLife;
  std::string socket{};         // path of an additional Unix socket; empty: none
  bool socket_required = true;  // false: serve without it if it cannot be made
  api::RoleGroups roles{};
  api::AccessRules access{};
  api::QuotaLimits quotas{};
  std::string mail_program{};  // Options::mail_program
  std::string data_dir{};
  std::string audit_path{};                         // where users have roles
  std::unique_ptr<SystemJournal> system_journal{};  // also gets audited requests; or null
  core::ImageRuntime image_runtime{};
  std::vector<std::string> hosts{};                    // host names that clients may use
  std::function<Result<core::Job>(JobId)> load_job;    // loads an unloaded job for the View
  std::function<Result<core::Job>(JobId)> load_brief;  // likewise, brief, for lists
  storage::LoadObject load_object{};
  std::function<void()> job_finished{};    // Options::job_finished
  bool history = true;                     // Options::keeps_history
  std::shared_ptr<Lead> lead{};            // null: this coordinator is alone
  std::function<void()> before_writing{};  // of api::ServerOptions
};

class ApiThread {
 public:
  virtual ~ApiThread() = default;
  // Binds and serves at once; until ready(), requests for objects are answered with 503 and the
  // reason.
  static Result<std::unique_ptr<ApiThread>> start(ApiOptions options);
  virtual std::string address() const = 0;
  virtual std::string tls_address() const = 0;  // empty: none
  virtual std::string metrics_address() const = 0;
  virtual std::string socket() const = 0;  // the path of the Unix socket; empty: none

  // Any thread may call all of these.
  virtual void load(std::vector<core::Job> jobs, std::vector<core::JobSummary> unloaded,
                    std::vector<storage::DamagedJob> damaged, uint64_t commit,
                    std::vector<core::NodeInfo> nodes, std::vector<core::Kept> kept) = 0;
  // Sets the reason why nothing is served yet.
  virtual void waits(std::string reason) = 0;
  virtual void show(core::Committed batch) = 0;
  virtual void show_health(const core::NodeHealth& health) = 0;
  virtual void show_shares(const core::cluster::ShowShares& shares) = 0;
  // As RpcOptions::show_unreached.
  virtual void show_unreached(JobId job, std::optional<std::vector<core::Unreached>> pairs) = 0;
  virtual void ready(std::string cluster_id, actors::registry_actor registry,
                     actors::cluster_actor cluster, actors::kept_actor kept, RpcServer& rpc) = 0;
  // Reads the config maps that this pod's job uses, for a node that is about to start its
  // processes. `done` is called on the API's thread. not_found: the pod is not bound to this node.
  virtual void pod_configs(PodId pod, NodeId node,
                           std::function<void(Result<api::PodConfigs>)> done) = 0;
  virtual void reload(api::RoleGroups roles, api::QuotaLimits quotas) = 0;
  // Serves a connection that another coordinator passes on.
  virtual void serve_passed(Fd socket, api::PassedPeer from) = 0;
  // Calls f on the API's thread.
  virtual void call(std::function<void()> f) = 0;
  // Counts a job's decision in the metrics.
  virtual void synced(bool indexed, core::SyncAction action, double seconds) = 0;
  // Counts a commit, likewise.
  virtual void written(double seconds, uint64_t bytes) = 0;
  // Ends watches and connections and joins the thread.
  virtual void stop() = 0;
};

}  // namespace muster::coordinator
