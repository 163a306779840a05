#include "api/view/render/site_metrics.hpp"

#include "api/kube/objects/queue_object.hpp"
#include "api/view/render/waiting.hpp"
#include "base/text/json.hpp"
#include "core/queue/queue.hpp"
#include "core/spec/fields/owner.hpp"

#include <algorithm>
#include <prometheus/gauge.h>
#include <string_view>
#include <sys/statvfs.h>
#include <utility>

namespace muster::api {
namespace {

using SiteLabels = prometheus::Labels;

double seconds(Millis ms) {
  return static_cast<double>(ms) / 1000;
}

// What a node is like, in one word. One that left in an orderly way is not missed.
std::string_view node_state(const core::NodeInfo& node) {
  using Health = core::NodeInfo::Health;
  if (node.left_ms != 0 && node.health != Health::ready) return "left";
  if (node.gone || node.health == Health::lost) return "lost";
  if (node.health == Health::suspect) return "silent";
  if (node.health == Health::unknown) return "unknown";
  if (node.draining) return "shutting_down";
  if (node.trouble) return "trouble";
  if (node.check.fails()) return "health_check_failing";
  if (!node.starts_failing.empty()) return "starts_failing";
  if (node.spec.unschedulable) return "cordoned";
  return "ready";
}

// The pods of all jobs, in one pass.
struct PodSums {
  struct Waiting {
    double pods = 0;
    Millis since_ms = 0;  // the oldest of them
  };
  std::map<NodeId, uint32_t> on_nodes;
  std::map<std::string, double> phases = {
      {"pending", 0}, {"starting", 0}, {"running", 0}, {"terminating", 0}};
  std::map<std::string, Waiting> waiting;                                     // by reason
  std::map<std::pair<std::string, std::string>, double> of_users, of_queues;  // and state
};

std::string owner_name(const core::Job& job) {
  const auto owner = core::owner_of(job.object().meta.annotations);
  return owner ? owner->name : std::string();
}

void add_job(const View& view, const core::Job& job, PodSums& sums) {
  double bound = 0;
  for (const auto& [key, pod] : job.state().open) {
    if (pod.bound()) {
      ++sums.on_nodes[pod.node];
      ++bound;
    }
    ++sums.phases[pod.terminating() ? "terminating"
                  : !pod.bound()    ? "pending"
                  : pod.started_at  ? "running"
                                    : "starting"];
  }
  double pending = 0;
  Millis since_ms = 0;
  for (const PodKey& key : job.pending()) {
    const core::Pod* pod = job.pod(key);
    if (pod == nullptr || pod->stopping_at) continue;
    ++pending;
    since_ms = since_ms == 0 ? pod->created_ms : std::min(since_ms, pod->created_ms);
  }
  if (pending > 0) {
    PodSums::Waiting& waiting = sums.waiting[std::string(waits_for(view, job))];
    waiting.pods += pending;
    waiting.since_ms = waiting.since_ms == 0 ? since_ms : std::min(waiting.since_ms, since_ms);
  }
  const std::string queue = core::queue_of(core::placed_object(job)->meta.annotations);
  const std::string user = owner_name(job);
  for (const auto& [state, pods] : {std::pair("bound", bound), std::pair("pending", pending)}) {
    sums.of_queues[{queue, state}] += pods;
    if (!user.empty()) sums.of_users[{user, state}] += pods;
  }
}

}  // namespace

// Gauges of one name whose labels come and go.
class LabeledGauges {
 public:
  explicit LabeledGauges(prometheus::Family<prometheus::Gauge>& family) : family_(family) {}

  double& operator[](const SiteLabels& labels) { return next_[labels]; }
  // What was set since the last call is what is shown.
  void show() {
    for (auto it = shown_.begin(); it != shown_.end();) {
      if (next_.contains(it->first)) {
        ++it;
      } else {
        family_.Remove(it->second);
        it = shown_.erase(it);
      }
    }
    for (const auto& [labels, value] : next_) {
      prometheus::Gauge*& gauge = shown_[labels];
      if (gauge == nullptr) gauge = &family_.Add(labels);
      gauge->Set(value);
    }
    next_.clear();
  }

 private:
  prometheus::Family<prometheus::Gauge>& family_;
  std::map<SiteLabels, double> next_;
  std::map<SiteLabels, prometheus::Gauge*> shown_;
};

struct SiteMetrics::Gauges {
  prometheus::Registry& registry;
  LabeledGauges of(const char* name, const char* help) {
    return LabeledGauges(prometheus::BuildGauge().Name(name).Help(help).Register(registry));
  }
  LabeledGauges pods = of("muster_pods", "Pods that have not ended, by phase.");
  LabeledGauges pending = of("muster_pods_pending", "Pods without a node, by what they wait for.");
  LabeledGauges oldest = of("muster_pods_oldest_pending_seconds",
                            "Age of the oldest pod without a node, by what it "
                            "waits for.");
  LabeledGauges slots_used = of("muster_slots_used", "Slots of ready nodes that pods have.");
  LabeledGauges slots_free =
      of("muster_slots_free", "Slots of ready nodes that pods may have and none has.");
  LabeledGauges node_states = of("muster_nodes_by_state", "Nodes, by state and its reason.");
  LabeledGauges agents =
      of("muster_agents", "Agents that are connected, by their version and their keeper's.");
  LabeledGauges user_pods =
      of("muster_user_pods", "Pods of users that have a node (bound) or wait (pending).");
  LabeledGauges user_pods_max =
      of("muster_user_pods_max", "Pods that each user may have on nodes at a time.");
  LabeledGauges user_share = of("muster_user_share_ratio",
                                "Part of the cluster that users hold, by the resource of which "
                                "they hold most.");
  LabeledGauges queue_pods =
      of("muster_queue_pods", "Pods of queues that have a node (bound) or wait (pending).");
  LabeledGauges queue_pods_max =
      of("muster_queue_pods_max", "Pods that a queue may have on nodes at a time.");
  LabeledGauges disk_free = of("muster_disk_free_bytes", "Free space for the coordinator's state.");
  LabeledGauges disk = of("muster_disk_bytes", "Size of the disk with the coordinator's state.");
  LabeledGauges backup = of("muster_last_backup_timestamp_seconds",
                            "When the last backup was made, in seconds since the epoch.");
  LabeledGauges leader = of("muster_coordinator_leader", "1: this coordinator leads, of several.");
  LabeledGauges term =
      of("muster_coordinator_term", "Term of the lead, which grows whenever one takes it.");
  LabeledGauges in_sync = of("muster_coordinator_in_sync_replicas",
                             "Coordinators that have all that was acknowledged, the leader among "
                             "them.");
  LabeledGauges store = of("muster_coordinator_store_answers",
                           "1: the consensus store has answered the last request; 0: it has not.");
  LabeledGauges wiped = of("muster_coordinator_store_wiped",
                           "1: the consensus store holds no configuration, so nobody can take "
                           "over; 0: it does.");
  LabeledGauges replica_in_sync =
      of("muster_coordinator_replica_in_sync", "1: this follower may take over; 0: it may not.");
  LabeledGauges lag =
      of("muster_coordinator_replica_lag_commits", "Commits that a follower does not have yet.");
  LabeledGauges round_trip =
      of("muster_coordinator_replica_round_trip_seconds", "Time to a follower and back.");
  LabeledGauges certificates = of("muster_certificate_expiry_timestamp_seconds",
                                  "When the certificate expires, in seconds since the epoch.");

  void show_nodes(const View& view, const PodSums& sums);
  void show_queues(const View& view, const PodSums& sums);
  void show_disk(const std::string& data_dir);
  void show_lead(const core::standby::LeadFigures& figures);
  void show_all() {
    for (LabeledGauges* one :
         {&pods,      &pending,   &oldest,          &slots_used, &slots_free, &node_states,
          &agents,    &user_pods, &user_pods_max,   &user_share, &queue_pods, &queue_pods_max,
          &disk_free, &disk,      &backup,          &leader,     &term,       &in_sync,
          &store,     &wiped,     &replica_in_sync, &lag,        &round_trip, &certificates})
      one->show();
  }
};

SiteMetrics::SiteMetrics(prometheus::Registry& registry, SiteFacts facts)
    : facts_(std::move(facts)),
      gauges_(new Gauges{registry}),
      backed_up_ms_(facts_.backed_up_ms.value_or(0)) {}

SiteMetrics::~SiteMetrics() = default;

void SiteMetrics::Gauges::show_nodes(const View& view, const PodSums& sums) {
  double used = 0, free = 0;
  view.each(Kind::node, "", nullptr, [&](const Shown& shown) {
    const core::NodeInfo& node = *shown.node;
    const std::string state(node_state(node));
    ++node_states[{{"state", state}, {"reason", state == "trouble" ? node.trouble.reason : ""}}];
    if (node.health == core::NodeInfo::Health::ready && !node.agent_version.empty())
      ++agents[{{"version", node.agent_version}, {"keeper_version", node.keeper_version}}];
    if (!core::is_ready(node)) return;
    const auto found = sums.on_nodes.find(node.id);
    const uint32_t had = found == sums.on_nodes.end() ? 0 : std::min(found->second, node.slots);
    used += had;
    if (!node.spec.unschedulable) free += node.slots - had;
  });
  slots_used[{}] = used;
  slots_free[{}] = free;
}

void SiteMetrics::Gauges::show_queues(const View& view, const PodSums& sums) {
  for (const auto& [of, count] : sums.of_queues)
    queue_pods[{{"queue", of.first}, {"state", of.second}}] = count;
  view.each_kept(core::KeptKind::queue, "", [&](const Shown& shown) {
    for (const char* state : {"bound", "pending"})  // an idle queue is shown, too
      queue_pods[{{"queue", shown.kept->kept->name}, {"state", state}}] += 0;
    const core::Queue queue = queue_of(Json::parse(shown.kept->kept->json), {});
    if (queue.total.pods)
      queue_pods_max[{{"queue", queue.name}}] = static_cast<double>(*queue.total.pods);
  });
}

void SiteMetrics::Gauges::show_disk(const std::string& data_dir) {
  struct statvfs found {};
  if (data_dir.empty() || statvfs(data_dir.c_str(), &found) != 0) return;
  const auto block = static_cast<double>(found.f_frsize);
  disk_free[{}] = block * static_cast<double>(found.f_bavail);
  disk[{}] = block * static_cast<double>(found.f_blocks);
}

void SiteMetrics::Gauges::show_lead(const core::standby::LeadFigures& figures) {
  leader[{}] = 1;
  term[{}] = static_cast<double>(figures.term);
  store[{}] = figures.store_answers ? 1 : 0;
  wiped[{}] = figures.store_wiped ? 1 : 0;
  for (const core::standby::MemberFigures& member : figures.members) {
    if (member.in_sync) ++in_sync[{}];
    if (member.leads) continue;
    const SiteLabels of_member = {{"member", member.name}};
    replica_in_sync[of_member] = member.in_sync ? 1 : 0;
    if (const auto behind = figures.lag(member)) lag[of_member] = static_cast<double>(*behind);
    if (member.round_trip_us && member.connected)
      round_trip[of_member] = static_cast<double>(*member.round_trip_us) / 1e6;
  }
}

void SiteMetrics::fill(const View& view, Millis now_ms) {
  Gauges& g = *gauges_;
  PodSums sums;
  view.jobs().each_active([&](const core::Job& job) { add_job(view, job, sums); });
  for (const auto& [phase, count] : sums.phases) g.pods[{{"phase", phase}}] = count;
  for (const char* reason : {"slots", "queue_limit", "user_limit"})  // graphs begin at 0
    sums.waiting[reason];
  for (const auto& [reason, waiting] : sums.waiting) {
    g.pending[{{"reason", reason}}] = waiting.pods;
    g.oldest[{{"reason", reason}}] =
        waiting.pods > 0 ? seconds(std::max<Millis>(0, now_ms - waiting.since_ms)) : 0;
  }
  g.show_nodes(view, sums);
  g.show_queues(view, sums);
  if (facts_.users_shown) {
    for (const auto& [of, count] : sums.of_users)
      g.user_pods[{{"user", of.first}, {"state", of.second}}] = count;
    for (const core::Slots::Standing& one : view.shares().standings)
      if (!one.name.empty()) g.user_share[{{"user", one.name}}] += one.held;
  }
  if (facts_.user_pods_max != 0) g.user_pods_max[{}] = static_cast<double>(facts_.user_pods_max);
  g.show_disk(facts_.data_dir);
  if (lead_) g.show_lead(*lead_);
  if (const Millis at_ms = backed_up_ms_; at_ms != 0) g.backup[{}] = seconds(at_ms);
  for (const auto& [name, until_ms] : facts_.certificates)
    g.certificates[{{"certificate", name}}] = seconds(until_ms);
  g.show_all();
}

}  // namespace muster::api
