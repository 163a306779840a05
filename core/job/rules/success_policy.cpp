// The success policy (job-semantics 7): whether a rule is met by the indexes that have succeeded.
#include "core/job/rules/sync.hpp"

namespace muster::core {

namespace {

uint64_t overlap(const IndexSet& a, const IndexSet& b) {
  uint64_t both = 0;
  auto x = a.intervals().begin(), y = b.intervals().begin();
  while (x != a.intervals().end() && y != b.intervals().end()) {
    uint32_t first = std::max(x->first, y->first), last = std::min(x->second, y->second);
    if (first <= last) both += uint64_t{last} - first + 1;
    (x->second < y->second ? x : y)++;
  }
  return both;
}

bool holds(const SuccessRule& rule, const IndexSet& completed, int64_t completions) {
  if (!rule.succeeded_indexes)
    return rule.succeeded_count && completed.size() >= static_cast<uint64_t>(*rule.succeeded_count);
  IndexSet wanted = IndexSet::parse_lenient(*rule.succeeded_indexes, completions);
  if (wanted.empty()) return false;
  uint64_t met = overlap(wanted, completed);
  return met == wanted.size() ||
         (rule.succeeded_count && met >= static_cast<uint64_t>(*rule.succeeded_count));
}

}  // namespace

std::optional<size_t> satisfied_rule(const Job& job) {
  const auto& policy = job.spec().success_policy;
  const IndexSet& completed = job.state().completed;
  if (!policy || !job.indexed() || completed.empty()) return {};
  for (size_t i = 0; i < policy->rules.size(); ++i)
    if (holds(policy->rules[i], completed, job.index_count())) return i;
  return {};
}

}  // namespace muster::core
