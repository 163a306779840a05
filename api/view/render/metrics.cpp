#include "api/view/render/metrics.hpp"

#include "api/view/render/render.hpp"
#include "base/lines/stderr_lines.hpp"
#include "base/process/self_usage.hpp"
#include "core/job/fold/text.hpp"
#include "core/job/rules/decide.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <vector>

namespace muster::api {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using Labels = prometheus::Labels;

// Bucket bounds, each twice the previous one, as in Kubernetes' own histograms.
Histogram::BucketBoundaries doubling(double first, int count) {
  Histogram::BucketBoundaries bounds;
  for (double bound = first; count > 0; --count, bound *= 2) bounds.push_back(bound);
  return bounds;
}

std::string mode_of(const core::Job& job) {
  return job.indexed() ? "Indexed" : "NonIndexed";
}

}  // namespace

struct Metrics::Impl {
  WallClock now;
  prometheus::Registry registry;
  Family<Counter>& counter(const char* name, const char* help) {
    return BuildCounter().Name(name).Help(help).Register(registry);
  }
  Family<Gauge>& gauge(const char* name, const char* help) {
    return BuildGauge().Name(name).Help(help).Register(registry);
  }

  Histogram& histogram(const char* name, const char* help, Histogram::BucketBoundaries bounds) {
    return BuildHistogram().Name(name).Help(help).Register(registry).Add({}, std::move(bounds));
  }

  Family<Counter>& syncs = counter("job_controller_job_syncs_total", "Job syncs.");
  Family<Histogram>& sync_seconds = BuildHistogram()
                                        .Name("job_controller_job_sync_duration_seconds")
                                        .Help("Duration of a job sync.")
                                        .Register(registry);
  Family<Counter>& jobs_finished =
      counter("job_controller_jobs_finished_total", "Jobs that finished.");
  Family<Counter>& external = counter("job_controller_jobs_by_external_controller_total",
                                      "Jobs managed by another controller.");
  Family<Counter>& pods_finished =
      counter("job_controller_job_pods_finished_total", "Pods that were counted.");
  Family<Counter>& policy = counter("job_controller_pod_failures_handled_by_failure_policy_total",
                                    "Failed pods that matched a rule of the pod failure policy.");
  Family<Counter>& finalizers =
      counter("job_controller_terminated_pods_tracking_finalizer_total",
              "Terminated pods that have the tracking finalizer (add) or no longer (delete).");
  Family<Counter>& indexes =
      counter("job_controller_job_finished_indexes_total", "Indexes that finished.");
  Family<Counter>& creations =
      counter("job_controller_job_pods_creation_total", "Pods that were created.");
  Histogram& ttl =
      histogram("ttl_after_finished_controller_job_deletion_duration_seconds",
                "Delay from the expiry of a job's TTL to its deletion.", doubling(0.1, 14));
  Family<Counter>& pod_cpu = counter("muster_pod_cpu_seconds_total", "CPU time of ended pods.");
  Counter& user_cpu = pod_cpu.Add({{"mode", "user"}});
  Counter& system_cpu = pod_cpu.Add({{"mode", "system"}});
  Counter& commits = counter("muster_commits_total", "Batches that became durable.").Add({});
  Histogram& commit_seconds = histogram("muster_commit_duration_seconds",
                                        "Time to make a batch durable.", doubling(0.0001, 16));
  Counter& commit_bytes =
      counter("muster_commit_bytes_total", "Keys and values of the rows that became durable.")
          .Add({});
  Histogram& wait_seconds =
      histogram("muster_pod_wait_duration_seconds",
                "Time from the creation of a pod until it got a node.", doubling(0.01, 20));
  Histogram& start_seconds = histogram("muster_pod_start_duration_seconds",
                                       "Time from when a pod got a node until its first process "
                                       "started.",
                                       doubling(0.001, 20));
  Counter& log_dropped =
      counter("muster_log_lines_dropped_total", "Lines of the log that nobody read in time.")
          .Add({});
  Family<Gauge>& jobs = gauge("muster_jobs", "Jobs, by state.");
  Family<Gauge>& nodes = gauge("muster_nodes", "Nodes, by readiness.");
  Gauge& starts_failing = gauge("muster_nodes_starts_failing",
                                "Nodes that get no pods because pods cannot start there.")
                              .Add({});
  Gauge& unhealthy =
      gauge("muster_nodes_health_check_failing", "Nodes that fail their health check.").Add({});
  Family<Gauge>& kept = gauge("muster_stored_objects", "Objects stored for clients, by kind.");
  Family<Gauge>& kept_bytes =
      gauge("muster_stored_object_bytes", "Size of the objects stored for clients, by kind.");
  Gauge& slots = gauge("muster_slots", "Slots of ready nodes.").Add({});
  Gauge& memory =
      gauge("process_resident_memory_bytes", "Resident memory of the coordinator.").Add({});
  Counter& cpu = counter("process_cpu_seconds_total", "CPU time of the coordinator.").Add({});
  Gauge& files = gauge("process_open_fds", "Open files of the coordinator.").Add({});

  // The job's counts before the record is applied.
  uint64_t succeeded = 0, failed = 0, completed = 0, failed_indexes = 0;
  std::vector<std::pair<uint32_t, core::FailureAction>> deferred;  // this record may count them

  SiteMetrics site;

  Impl(WallClock clock, SiteFacts facts)
      : now(std::move(clock)), site(registry, std::move(facts)) {}

  static void raise(Family<Counter>& family, const Labels& labels, uint64_t by) {
    if (by > 0) family.Add(labels).Increment(static_cast<double>(by));
  }

  void watch_deferred(const core::Job& job, uint32_t index) {
    auto it = job.state().deferred.find(index);
    if (it != job.state().deferred.end()) deferred.emplace_back(index, it->second.action);
  }
  void watch_all_deferred(const core::Job& job) {
    for (const auto& [index, pod] : job.state().deferred) deferred.emplace_back(index, pod.action);
  }

  void created(const core::Job& job, const core::PodsCreated& r) {
    const core::JobState& s = job.state();
    uint64_t failed_total = s.failed + s.deferred.size() - job.deferred_not_failed();
    const char* reason = "new";
    if (job.spec().replace_only_failed() && failed_total > 0)
      reason = "recreate_failed";
    else if (failed_total > 0 || job.terminating() > 0)
      reason = "recreate_terminating_or_failed";
    uint64_t count = 0;
    for (const auto& run : r.runs) {
      count += run.count;
      if (run.deferred_counted != core::Counted::not_yet) watch_deferred(job, run.first);
    }
    raise(creations, {{"reason", reason}, {"status", "succeeded"}}, count);
  }

  void handled(core::FailureAction action) {
    if (action != core::FailureAction::none)
      raise(policy, {{"action", std::string(core::name(action))}}, 1);
  }

  static double between(Millis from_ms, Millis to_ms) {
    return static_cast<double>(std::max<Millis>(0, to_ms - from_ms)) / 1000;
  }

  void bound(const core::Job& job, const core::PodsBound& r) {
    for (const auto& one : r.bindings)
      if (const core::Pod* pod = job.pod(one.pod))
        wait_seconds.Observe(between(pod->created_ms, r.at_ms));
  }

  void started(const core::Job& job, PodKey key, Millis at_ms) {
    const core::Pod* pod = job.pod(key);
    if (pod != nullptr && pod->bound() && !pod->started_at)
      start_seconds.Observe(between(pod->bound_ms, at_ms));
  }

  void ended(const core::Job& job, const core::PodsEnded& r) {
    uint64_t added = 0, removed = 0;
    for (const auto& one : r.ends) {
      if (one.start) started(job, one.pod, one.start->at);
      user_cpu.Increment(static_cast<double>(one.end.used.user_us) / 1e6);
      system_cpu.Increment(static_cast<double>(one.end.used.system_us) / 1e6);
      const core::Pod* pod = job.pod(one.pod);
      if (!job.state().deferred.empty()) watch_deferred(job, one.pod.index);
      if (!pod || pod->counted != core::Counted::not_yet) continue;
      ++added;
      if (one.counted == core::Counted::not_yet) continue;  // deferred
      ++removed;
      handled(one.action);
    }
    raise(finalizers, {{"event", "add"}}, added);
    raise(finalizers, {{"event", "delete"}}, removed);
  }
};

Metrics::Metrics(std::string version, WallClock now, SiteFacts facts)
    : impl_(std::make_unique<Impl>(std::move(now), std::move(facts))) {
  impl_->gauge("muster_build_info", "The version of this coordinator.")
      .Add({{"version", std::move(version)}})
      .Set(1);
  impl_
      ->gauge("process_start_time_seconds",
              "Start time of the coordinator, in seconds since the epoch.")
      .Add({})
      .Set(static_cast<double>(impl_->now()) / 1000);
}

Metrics::~Metrics() = default;

void Metrics::before(const core::Job& job, const core::Record& record) {
  Impl& m = *impl_;
  const core::JobState& s = job.state();
  m.succeeded = s.succeeded;
  m.failed = s.failed;
  m.completed = s.completed.size();
  m.failed_indexes = s.failed_indexes.size();
  m.deferred.clear();
  if (auto* r = std::get_if<core::PodsCreated>(&record)) m.created(job, *r);
  if (auto* r = std::get_if<core::PodsBound>(&record)) m.bound(job, *r);
  if (auto* r = std::get_if<core::PodsStarted>(&record))
    for (const auto& one : r->starts) m.started(job, one.pod, one.started_ms);
  if (auto* r = std::get_if<core::PodsEnded>(&record)) m.ended(job, *r);
  if (auto* r = std::get_if<core::PodsStopping>(&record))
    for (const auto& one : r->pods)
      if (one.fails_index) m.watch_deferred(job, one.pod.index);
  if (auto* r = std::get_if<core::JobDeleted>(&record)) {
    m.watch_all_deferred(job);
    auto due = job.finished() && !r->background ? core::expires_at(job) : std::nullopt;
    if (due && r->at_ms >= *due) m.ttl.Observe(static_cast<double>(r->at_ms - *due) / 1000);
  }
  if (std::holds_alternative<core::FinishDecided>(record)) m.watch_all_deferred(job);
}

void Metrics::after(const core::Job& job, const core::Record& record) {
  Impl& m = *impl_;
  const core::JobState& s = job.state();
  const std::string mode = mode_of(job);
  for (auto [index, action] : m.deferred) {
    if (s.deferred.contains(index)) continue;
    m.handled(action);
    m.raise(m.finalizers, {{"event", "delete"}}, 1);
  }
  auto finished = [&](const char* result, uint64_t was, uint64_t is) {
    if (is > was)
      m.raise(m.pods_finished, {{"completion_mode", mode}, {"result", result}}, is - was);
  };
  finished("failed", m.failed, s.failed);
  finished("succeeded", m.succeeded, s.succeeded);
  finished("succeeded", m.completed, s.completed.size());
  auto index_finished = [&](const char* status, uint64_t was, uint64_t is) {
    if (is > was)
      m.raise(m.indexes,
              {{"status", status}, {"backoffLimit", job.per_index() ? "perIndex" : "global"}},
              is - was);
  };
  index_finished("succeeded", m.completed, s.completed.size());
  index_finished("failed", m.failed_indexes, s.failed_indexes.size());
  if (std::holds_alternative<core::JobAdmitted>(record)) {
    const auto& by = job.spec().managed_by;
    if (by && *by != core::kReservedManager) m.raise(m.external, {{"controller_name", *by}}, 1);
  }
  if (std::holds_alternative<core::JobFinished>(record)) {
    const core::Condition& end = s.conditions.back();
    m.raise(m.jobs_finished,
            {{"completion_mode", mode},
             {"result", end.type == core::ConditionType::complete ? "succeeded" : "failed"},
             {"reason", std::string(name(end.reason))}},
            1);
  }
}

void Metrics::synced(bool indexed, std::string_view action, double seconds) {
  const Labels labels = {{"completion_mode", indexed ? "Indexed" : "NonIndexed"},
                         {"result", "success"},
                         {"action", std::string(action)}};
  impl_->syncs.Add(labels).Increment();
  impl_->sync_seconds.Add(labels, doubling(0.004, 15)).Observe(seconds);
}

void Metrics::committed(double seconds, uint64_t bytes) {
  impl_->commit_seconds.Observe(seconds);
  impl_->commit_bytes.Increment(static_cast<double>(bytes));
}

void Metrics::backed_up(Millis at_ms) {
  impl_->site.backed_up(at_ms);
}

void Metrics::set_lead(core::standby::LeadFigures figures) {
  impl_->site.set_lead(std::move(figures));
}

std::string Metrics::text(const View& view) {
  Impl& m = *impl_;
  m.commits.Increment(static_cast<double>(view.commits()) - m.commits.Value());
  m.log_dropped.Increment(static_cast<double>(dropped_stderr_lines()) - m.log_dropped.Value());
  double ready = 0, not_ready = 0, left = 0, slots = 0, starts_failing = 0, unhealthy = 0;
  view.each(Kind::node, "", nullptr, [&](const Shown& shown) {
    const bool is_ready = core::is_ready(*shown.node);
    // One that left in an orderly way is not missed.
    const bool has_left =
        shown.node->left_ms != 0 && shown.node->health != core::NodeInfo::Health::ready;
    (is_ready ? ready : has_left ? left : not_ready) += 1;
    starts_failing += shown.node->starts_failing.empty() ? 0 : 1;
    unhealthy += shown.node->check.fails() ? 1 : 0;
    if (is_ready) slots += shown.node->slots;
  });
  m.nodes.Add({{"ready", "true"}}).Set(ready);
  m.nodes.Add({{"ready", "false"}}).Set(not_ready);
  m.nodes.Add({{"ready", "left"}}).Set(left);
  m.slots.Set(slots);
  m.starts_failing.Set(starts_failing);
  m.unhealthy.Set(unhealthy);
  for (const core::KeptKind kind : core::kKeptKinds) {
    const View::Stored stored = view.stored(kind);
    m.kept.Add({{"kind", resource_name(kind_of(kind))}}).Set(static_cast<double>(stored.count));
    m.kept_bytes.Add({{"kind", resource_name(kind_of(kind))}})
        .Set(static_cast<double>(stored.bytes));
  }
  const auto unloaded = view.jobs().unloaded_counts();
  double running = 0, damaged = static_cast<double>(view.jobs().damaged()), suspended = 0,
         complete = static_cast<double>(unloaded.first),
         failed = static_cast<double>(unloaded.second);
  view.jobs().each_active([&](const core::Job& job) {
    if (job.hidden() || job.condition(core::ConditionType::damaged)) return;
    (job.condition(core::ConditionType::complete) ? complete
     : job.condition(core::ConditionType::failed) ? failed
     : job.suspended()                            ? suspended
                                                  : running) += 1;
  });
  m.jobs.Add({{"state", "running"}}).Set(running);
  m.jobs.Add({{"state", "suspended"}}).Set(suspended);
  m.jobs.Add({{"state", "complete"}}).Set(complete);
  m.jobs.Add({{"state", "failed"}}).Set(failed);
  m.jobs.Add({{"state", "damaged"}}).Set(damaged);
  m.memory.Set(own_resident_bytes());
  m.cpu.Increment(std::max(0.0, own_cpu_seconds() - m.cpu.Value()));
  m.files.Set(static_cast<double>(own_open_files()));
  m.site.fill(view, m.now());
  return prometheus::TextSerializer().Serialize(m.registry.Collect());
}

}  // namespace muster::api
