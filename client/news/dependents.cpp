#include "client/news/dependents.hpp"

#include "client/connect/objects.hpp"
#include "client/news/attempts.hpp"
#include "client/news/rounds.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/owner.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace muster::cli {
namespace {

constexpr const char* kNeverSatisfied = "DependencyNeverSatisfied";

std::string name_of(const Json& job) {
  return text_at(job, {"metadata", "name"});
}

std::string owner_of(const Json& job) {
  return text_at(job, {"metadata", "annotations", core::kOwnerUidKey.data()});
}

bool needs_success(core::Needed needed) {
  return needed == core::Needed::ok || needed == core::Needed::each;
}

// All rounds of a job, by name.
void add_chain(const Json& job, const Json& jobs, std::set<std::string>& names) {
  names.insert(root_of(job));
  for (const Json& one : jobs)
    if (root_of(one) == root_of(job)) names.insert(name_of(one));
}

// Why a round of this job with these indexes would fail as the job did; empty: it would not.
Result<std::string> what_is_missing(ApiClient& client, const std::string& ns, Json job,
                                    const std::optional<core::IndexSet>& indexes) {
  if (indexes) job["metadata"]["annotations"][std::string(core::kIndexesKey)] = indexes->text();
  if (Status found = wait_for_repairs(client, ns, job); !found) return found.error();
  for (const core::After& one : awaited_jobs(job)) {
    if (!needs_success(one.needed)) continue;
    const auto other = object(client, object_path(Kind::job, ns, one.job));
    if (!other && other.error().code != Errc::not_found) return other.error();
    if (!other || end_of(*other) == JobEnd::failed)
      return "job/" + one.job + (other ? " has not succeeded" : " is gone");
  }
  return std::string();
}

// The indexes that have failed without an attempt. Nothing: all that did not succeed, for the job
// failed as a whole.
Result<std::optional<core::IndexSet>> never_ran(ApiClient& client, const std::string& ns,
                                                const Json& job) {
  if (text_at(condition_of(job, "Failed"), {"reason"}) == kNeverSatisfied || !is_indexed(job))
    return std::optional<core::IndexSet>();
  const core::IndexSet failed = failed_indexes(job);
  core::IndexSet tried;
  Status read = each_attempt(client, ns, name_of(job), "index=" + url_encoded(failed.text()),
                             [&](const Json& attempt) {
                               tried.insert(static_cast<uint32_t>(number_at(attempt, {"index"})));
                             });
  if (!read) return read.error();
  return std::optional(failed.without(tried));
}

}  // namespace

std::vector<Json> dependents_of(const std::set<std::string>& names, const Json& job,
                                const Json& jobs) {
  std::vector<Json> found;
  for (const Json& one : jobs) {
    if (end_of(one) != JobEnd::failed || owner_of(one) != owner_of(job)) continue;
    const bool whole = text_at(condition_of(one, "Failed"), {"reason"}) == kNeverSatisfied;
    const std::vector<core::After> awaited = awaited_jobs(one);
    const bool follows = std::ranges::any_of(awaited, [&](const core::After& after) {
      return names.contains(after.job) &&
             (whole ? needs_success(after.needed) : after.needed == core::Needed::each);
    });
    const bool retried = std::ranges::any_of(jobs, [&one](const Json& other) {
      return root_of(other) == root_of(one) && round_of(other) > round_of(one);
    });
    if (follows && !retried) found.push_back(one);
  }
  return found;
}

Result<Dependents> retry_dependents(ApiClient& client, const std::string& ns, const Json& job,
                                    bool create) {
  auto list = object(client, object_path(Kind::job, ns));
  if (!list) return list.error();
  const Json& jobs = at(*list, {"items"});
  std::set<std::string> names, done;
  add_chain(job, jobs, names);
  Dependents out;
  for (bool more = true; more;) {
    more = false;
    for (const Json& one : dependents_of(names, job, jobs)) {
      if (!done.insert(name_of(one)).second) continue;
      auto indexes = never_ran(client, ns, one);
      if (!indexes) return indexes.error();
      if (*indexes && (*indexes)->empty()) continue;  // all of them have failed by themselves
      auto missing = what_is_missing(client, ns, one, *indexes);
      if (!missing) return missing.error();
      if (!missing->empty()) {
        out.left.push_back("job/" + name_of(one) + ": " + *missing);
        continue;
      }
      if (!create) {
        out.rounds.push_back(one);
        continue;
      }
      auto made =
          create_round(client, ns, {.index = *indexes ? (*indexes)->text() : std::string()}, one);
      if (!made) return made.error();
      out.rounds.push_back(std::move(*made));
      add_chain(one, jobs, names);
      more = true;
    }
  }
  return out;
}

}  // namespace muster::cli
