// The rules of job-semantics 1.5.
#include "core/spec/rules/update.hpp"

#include "tests/unit/core/sample_job.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <tuple>

namespace muster::core {
namespace {

using Found = std::multiset<std::string>;
using Edit = std::function<void(JobSpec&)>;

const Edit kNothing = [](JobSpec&) {};
const ObservedStatus kRunning{false, 1, true};
const ObservedStatus kSuspended{true, 0, true};
const ObservedStatus kFresh{false, 0, false};
const ObservedStatus kStopping{true, 1, true};

struct Row {
  const char* what;
  bool indexed;
  Edit first, change;
  ObservedStatus observed;
  Found expected;
};

void suspend(JobSpec& s) {
  s.suspend = true;
}
void command(JobSpec& s) {
  s.pod.containers[0].command = {"false"};
}
void selector(JobSpec& s) {
  s.pod.node_selector["foo"] = "bar";
}
void resources(JobSpec& s) {
  s.pod.containers[0].resources.requests["cpu"] = "1";
}
Edit numbers(int32_t completions, int32_t parallelism) {
  return [=](JobSpec& s) {
    s.completions = completions;
    s.parallelism = parallelism;
  };
}
Edit policy(std::string action) {
  return [action](JobSpec& s) {
    s.pod_failure_policy = FailurePolicy{{{action, OnExitCodes{{}, "In", {1}}, {}}}};
  };
}
Edit per_index(int32_t limit) {
  return [limit](JobSpec& s) { s.backoff_limit_per_index = limit; };
}

std::vector<Row> rows() {
  const bool N = false, I = true;
  return {
      {"completions", N, numbers(2, 1), numbers(4, 1), kRunning, {"spec.completions Invalid"}},
      {"completions gone",
       N,
       numbers(2, 1),
       [](JobSpec& s) { s.completions.reset(); },
       kRunning,
       {"spec.completions Invalid"}},
      {"completions alone",
       I,
       numbers(5, 5),
       numbers(4, 5),
       kRunning,
       {"spec.completions Invalid"}},
      {"in tandem", I, numbers(1, 2), numbers(3, 3), kRunning, {}},
      {"completions gone, Indexed",
       I,
       kNothing,
       [](JobSpec& s) { s.completions.reset(); },
       kRunning,
       {"spec.completions Required"}},
      {"parallelism alone", I, numbers(2, 2), numbers(2, 1), kRunning, {}},
      {"mode",
       I,
       kNothing,
       [](JobSpec& s) { s.completion_mode = "NonIndexed"; },
       kRunning,
       {"spec.completionMode Invalid"}},
      {"selector",
       N,
       kNothing,
       [](JobSpec& s) { s.selector->match_labels["job-name"] = "v"; },
       kRunning,
       {"spec.selector Invalid"}},
      {"policy added",
       N,
       kNothing,
       policy("Count"),
       kRunning,
       {"spec.podFailurePolicy Invalid", "spec.podReplacementPolicy NotSupported"}},
      {"policy changed",
       N,
       policy("Count"),
       policy("Ignore"),
       kRunning,
       {"spec.podFailurePolicy Invalid"}},
      {"success policy added",
       I,
       kNothing,
       [](JobSpec& s) {
         s.success_policy = SuccessPolicy{{{{}, 2}}};
       },
       kRunning,
       {"spec.successPolicy Invalid"}},
      {"per index changed",
       I,
       per_index(1),
       per_index(2),
       kRunning,
       {"spec.backoffLimitPerIndex Invalid"}},
      {"max failed added",
       I,
       per_index(1),
       [](JobSpec& s) { s.max_failed_indexes = 1; },
       kRunning,
       {}},
      {"managedBy added",
       N,
       kNothing,
       [](JobSpec& s) { s.managed_by = "example.com/c"; },
       kRunning,
       {"spec.managedBy Invalid"}},
      {"command", N, kNothing, command, kRunning, {"spec.template Invalid"}},
      {"node selector", N, kNothing, selector, kRunning, {"spec.template Invalid"}},
      {"kept field",
       N,
       kNothing,
       [](JobSpec& s) { s.pod.kept = "{}"; },
       kRunning,
       {"spec.template Invalid"}},
      {"creation rules",
       N,
       kNothing,
       [](JobSpec& s) { s.parallelism = -1; },
       kRunning,
       {"spec.parallelism Invalid"}},
      {"free fields",
       N,
       kNothing,
       [](JobSpec& s) {
         s.parallelism = 2;
         s.active_deadline_s = 300;
         s.ttl_s = 200;
         s.manual_selector = true;
         s.backoff_limit = 1;
         s.suspend = true;
         s.pod_replacement_policy = "Failed";
       },
       kRunning,
       {}},
      {"suspended: command", N, suspend, command, kSuspended, {"spec.template.spec Invalid"}},
      {"suspended: node selector", N, suspend, selector, kSuspended, {}},
      {"suspended: resources", N, suspend, resources, kSuspended, {}},
      {"suspended: labels, and resume",
       N,
       suspend,
       [](JobSpec& s) {
         s.pod.labels["more"] = "x";
         s.suspend = false;
       },
       kSuspended,
       {}},
      {"suspended: another container",
       N,
       suspend,
       [](JobSpec& s) {
         s.pod.containers.push_back(s.pod.containers[0]);
         s.pod.containers[1].name = "more";
       },
       kSuspended,
       {"spec.template.spec Invalid"}},
      {"created suspended: node selector", N, suspend, selector, kFresh, {}},
      {"still stopping: node selector", N, suspend, selector, kStopping, {"spec.template Invalid"}},
  };
}

TEST(Update, OnlyMutableFieldsMayChange) {
  for (const Row& row : rows()) {
    SampleJob old_job = SampleJob::bare(row.indexed);
    row.first(old_job.spec);
    old_job.admit();
    SampleJob new_job = old_job;
    row.change(new_job.spec);
    EXPECT_EQ(summary(validate_update(old_job.meta, old_job.spec, new_job.meta, new_job.spec,
                                      row.observed)),
              row.expected)
        << row.what;
  }
}

// As in Kubernetes: what is being deleted gets no new finalizers, but may lose some.
TEST(Update, DeletedJobGetsNoNewFinalizers) {
  const std::string path = "metadata.finalizers Forbidden";
  const struct {
    bool deleting;
    std::vector<std::string> had, has;
    Found expected;
  } cases[] = {
      {false, {}, {"a/b"}, {}},
      {true, {}, {"a/b"}, {path}},
      {true, {"a/b"}, {"a/b"}, {}},
      {true, {"a/b", "c/d"}, {"c/d"}, {}},
      {true, {"a/b"}, {"a/b", "foregroundDeletion"}, {}},
  };
  for (const auto& one : cases) {
    SampleJob old_job = SampleJob::bare(false);
    old_job.meta.finalizers = one.had;
    old_job.admit();
    SampleJob new_job = old_job;
    new_job.meta.finalizers = one.has;
    const Violations found = validate_update(old_job.meta, old_job.spec, new_job.meta, new_job.spec,
                                             {.deleting = one.deleting});
    EXPECT_EQ(summary(found), one.expected);
  }
}

TEST(Update, InputsAndIndexesAreImmutable) {
  SampleJob old_job = SampleJob::bare(true);
  old_job.spec.completions = old_job.spec.parallelism = 2;
  old_job.admit();
  for (const auto& [key, before, after] : {std::tuple("muster.dev/inputs", "a\nb\n", "a\nc\n"),
                                           std::tuple("muster.dev/inputs-file", "/list", "/other"),
                                           std::tuple("muster.dev/indexes", "0", "1")}) {
    old_job.meta.annotations = {{key, before}};
    SampleJob new_job = old_job;
    const auto found = [&] {
      return summary(validate_update(old_job.meta, old_job.spec, new_job.meta, new_job.spec, {}));
    };
    EXPECT_EQ(found(), std::multiset<std::string>{});
    const std::multiset<std::string> refused = {"metadata.annotations[" + std::string(key) +
                                                "] Invalid"};
    new_job.meta.annotations[key] = after;
    EXPECT_EQ(found(), refused);
    new_job.meta.annotations.clear();
    EXPECT_EQ(found(), refused);
  }
}

}  // namespace
}  // namespace muster::core
