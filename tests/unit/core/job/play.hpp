// Play: drives one job call by call, on one node with enough slots for all its pods. For tests.
#pragma once

#include "core/job/fold/text.hpp"
#include "core/job/rules/decide.hpp"
#include "core/spec/rules/defaults.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::core {

class Play {
 public:
  static constexpr NodeId kNode = 1;
  static constexpr Millis kBegin = 1'767'225'600'000;

  explicit Play(JobSpec spec, std::function<void(JobMeta&)> meta = nullptr,
                std::vector<Dependency> after = {}) {
    auto object = std::make_shared<JobObject>();
    object->meta.name = "j";
    object->meta.ns = "default";
    object->meta.uid = "00000000-0000-4000-8000-000000000001";
    if (meta) meta(object->meta);
    if (spec.pod.containers.empty()) spec.pod.containers.resize(1);
    if (spec.pod.containers[0].name.empty()) spec.pod.containers[0].name = "main";
    object->spec = std::move(spec);
    apply_defaults(object->meta, object->spec);
    object->json = "0";
    job_ = std::make_unique<Job>(1, object);
    admitted_ = object;
    apply(JobAdmitted{now_, object, std::move(after)});
  }

  static JobSpec indexed(int32_t completions, int32_t parallelism) {
    JobSpec spec;
    spec.completion_mode = "Indexed";
    spec.completions = completions;
    spec.parallelism = parallelism;
    spec.pod.restart_policy = "Never";
    return spec;
  }

  // Runs one sync with these events, then grants slots to all waiting pods.
  void sync(std::vector<Event> events = {TimePassed{}}) {
    decide_now(std::move(events));
    const AskSlots wanted = job_->slots_wanted();
    if (const auto waiting = static_cast<uint32_t>(job_->pending().size()); waiting > 0) {
      for (const auto& [steps, pods] : wanted.more)
        decide_now({SlotsGranted{{{kNode, pods}}, {{kNode, 7}}, steps}});
      if (wanted.more.empty() || wanted.wanted > 0)
        decide_now({SlotsGranted{{{kNode, waiting}}, {{kNode, 7}}}});
    }
  }
  // Likewise, but for so many of the waiting pods; then the syncs that follow at once.
  void place(uint32_t count, std::vector<Event> events = {TimePassed{}}) {
    decide_now(std::move(events));
    if (count > 0) decide_now({SlotsGranted{{{kNode, count}}, {{kNode, 7}}}});
    for (uint32_t had = UINT32_MAX; had != job_->active();) {
      had = job_->active();
      decide_now({TimePassed{}});
    }
  }
  void tick(Millis ms) {
    now_ += ms;
    sync();
  }
  // Likewise, without a grant.
  void advance(Millis ms) {
    now_ += ms;
    decide_now({TimePassed{}});
  }
  static PodsReported::Ended ended(PodKey pod, int32_t code, EndCause cause = EndCause::exited) {
    PodsReported::Ended end;
    end.pod = pod;
    end.exit_code = code;
    end.cause = cause;
    if (cause != EndCause::returned) end.start = {100, {}};
    return end;
  }
  void start(PodKey pod, int32_t restarts = 0) {
    sync({PodsReported{1, kNode, {{pod, 100, restarts, 0}}, {}}});
  }
  void end(PodKey pod, int32_t code, EndCause cause = EndCause::exited) {
    sync({PodsReported{1, kNode, {}, {ended(pod, code, cause)}}});
  }
  void update(const std::function<void(JobSpec&)>& change) {
    auto object = std::make_shared<JobObject>(job_->object());
    change(object->spec);
    object->json = std::to_string(++versions_);
    ++object->meta.generation;
    sync({OwnerUpdate{1, job_->object_ptr(), object}});
  }
  void remove(PodKey pod, PodsDeletion::Why why = PodsDeletion::Why::owner) {
    sync({PodsDeletion{1, {pod}, why, std::nullopt}});
  }

  // From now on, nodes must be asked what has ended there.
  void ask_nodes() { hearing_ = Hearing{}; }
  bool asks() const { return question_ != 0; }
  // The node answers the open question: these pods of the job have ended and were not acknowledged.
  void answer(std::set<PodKey> ended) {
    sync({NodeHeard{kNode, std::exchange(question_, 0), std::move(ended)}});
  }

  Job& job() { return *job_; }
  const JobState& state() const { return job_->state(); }
  const Pod* pod(PodKey key) const { return job_->pod(key); }
  Knobs& knobs() { return knobs_; }
  Millis now() const { return now_; }
  const std::vector<Effect>& effects() const { return effects_; }  // of the last sync

  // "Suspended=False/JobResumed Complete=True/CompletionsReached"
  std::string conditions() const {
    std::string text;
    for (const Condition& c : state().conditions)
      text += (text.empty() ? "" : " ") + std::string(name(c.type)) +
              (c.status ? "=True/" : "=False/") + std::string(name(c.reason));
    return text;
  }
  std::string events() const {
    std::string text;
    constexpr const char* kKinds[] = {"create",    "delete",  "completed", "failed",
                                      "suspended", "resumed", "too-many"};
    for (const JobEvent& e : state().events)
      text += (text.empty() ? "" : " ") + std::string(kKinds[static_cast<int>(e.kind)]);
    return text;
  }
  // "1#0 failed, 0#0 succeeded": the attempts that are over.
  const std::string& closed() const { return closed_; }
  // Folds the records into a fresh job, as a restart does.
  void restart() {
    auto again = std::make_unique<Job>(1, admitted_);
    for (const Record& record : records_) again->apply(record);
    EXPECT_TRUE(again->state() == state()) << "a restart gives a different job";
    job_ = std::move(again);
    sync();
  }

 private:
  void apply(Record record) {
    job_->apply(record);
    records_.push_back(std::move(record));
  }
  void decide_now(std::vector<Event> events) {
    Decision decision = decide(*job_, events, now_, knobs_, hearing_);
    for (const Effect& effect : decision.effects)
      if (auto* ask = std::get_if<AskNodes>(&effect)) question_ = ask->nodes.back().question;
    for (Record& record : decision.records) records_.push_back(std::move(record));
    effects_ = std::move(decision.effects);
    for (const Pod& pod : decision.closed)
      closed_ +=
          (closed_.empty() ? "" : ", ") + to_string(pod.key) + " " + std::string(name(pod.counted));
  }

  std::unique_ptr<Job> job_;
  JobObjectPtr admitted_;
  std::vector<Record> records_;
  std::vector<Effect> effects_;
  std::string closed_;
  Knobs knobs_{100, 1000, {}};
  Hearing hearing_ = Hearing::all_known();
  uint64_t question_ = 0;
  Millis now_ = kBegin;
  uint64_t versions_ = 0;
};

}  // namespace muster::core
