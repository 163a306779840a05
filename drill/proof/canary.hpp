// Canary: the job that a drill watches, and what each of its attempts does. Pure.
//
// An Indexed job of short indexes; some run longer, some fail once or twice and then succeed, some
// always fail. What an attempt does depends only on the seed, its index and its number, so the pod
// that runs it, the forecast and the judge each compute it independently.
#pragma once

#include "base/clock.hpp"
#include "base/text/json.hpp"
#include "core/ids.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace muster::cli::drill {

constexpr uint32_t kCanaryMin = 4, kCanaryMax = 10'000;  // indexes
constexpr int32_t kCanaryRetries = 2;                    // backoffLimitPerIndex
constexpr Millis kCanaryBackoffBase = 200, kCanaryBackoffMax = 800;

struct Canary {
  uint32_t indexes = 60;
  uint64_t seed = 1;
  uint32_t parallelism = 8;
  Millis short_ms = 200;  // short attempts take 0.5 to 1.5 times this
  Millis long_ms = 1'500;
  bool operator==(const Canary&) const = default;
};

// A hash of both arguments (splitmix64).
uint64_t mixed(uint64_t seed, uint64_t number);

// How many attempts of an index fail first; more than kCanaryRetries: it never succeeds.
uint32_t failing_attempts(const Canary& canary, uint32_t index);

struct Work {
  Millis span_ms = 0;
  int32_t code = 0;  // its exit code
};
Work work_of(const Canary& canary, PodKey pod);

// The number of attempts that end by themselves if nothing disturbs the job.
uint32_t expected_ends(const Canary& canary);

// What an attempt prints to stdout when it begins, and before it exits.
std::string begin_text(PodKey pod, const std::string& uid);
std::string end_text(PodKey pod, int32_t code);

// The spec of the job, as the coordinator reads it from manifest().
core::JobSpec canary_spec(const Canary& canary);

struct CanaryJob {
  std::string name;
  std::string ns;
  std::vector<std::string> command;                          // of the pods
  std::vector<std::pair<std::string, std::string>> nodes{};  // labels of nodes that it may use
};
Json manifest(const Canary& canary, const CanaryJob& job);

}  // namespace muster::cli::drill
