#include "client/news/rounds.hpp"

#include "client/connect/objects.hpp"
#include "client/documents/manifests.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/attempts.hpp"
#include "client/news/kept_steps.hpp"
#include "core/spec/fields/after.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/owner.hpp"

#include <algorithm>
#include <cstdlib>

namespace muster::cli {
namespace {

constexpr int kRoundsMax = 1'000;  // names to try

std::string annotation(const Json& job, std::string_view key) {
  return text_at(job, {"metadata", "annotations", std::string(key).c_str()});
}

Error refuse(const Json& job, const std::string& why) {
  return {Errc::invalid,
          "job/" + text_at(job, {"metadata", "name"}) + " cannot be retried: " + why,
          {}};
}

Json next_round(const RetryWishes& o, const std::string& ns, const Json& job,
                const std::string& indexes, int round) {
  const std::string root = root_of(job);
  Json next = {{"apiVersion", "batch/v1"}, {"kind", "Job"}};
  Json annotations = at(job, {"metadata", "annotations"});
  if (!annotations.is_object()) annotations = Json::object();
  erase_members(annotations, {"kubectl.kubernetes.io/last-applied-configuration"});
  for (const std::string_view key : core::kOwnerKeys) annotations.erase(std::string(key));
  // A round starts now, and nobody has been told of its end.
  for (const std::string_view key : {core::kBeginKey, core::kHoldKey, core::kNotifiedKey})
    annotations.erase(std::string(key));
  annotations[core::kRetryOfKey] = root;
  annotations[core::kRoundKey] = std::to_string(round);
  if (!indexes.empty()) annotations[core::kIndexesKey] = indexes;
  Json labels = at(job, {"metadata", "labels"});
  Json spec = at(job, {"spec"});
  const bool manual = spec.contains("manualSelector") && spec["manualSelector"] == true;
  if (!manual) {
    static constexpr auto kOurs = {"controller-uid", "job-name",
                                   "batch.kubernetes.io/controller-uid",
                                   "batch.kubernetes.io/job-name"};
    erase_members(labels, kOurs);
    erase_members(spec, {"selector"});
    if (spec["template"].contains("metadata") && spec["template"]["metadata"].contains("labels"))
      erase_members(spec["template"]["metadata"]["labels"], kOurs);
  }
  spec["suspend"] = false;
  next["metadata"] = {{"name", o.name.empty() ? root + "-r" + std::to_string(round) : o.name},
                      {"namespace", ns},
                      {"annotations", annotations}};
  if (labels.is_object() && !labels.empty()) next["metadata"]["labels"] = labels;
  next["spec"] = std::move(spec);
  return next;
}

Result<core::IndexSet> named_indexes(const RetryWishes& o, const Json& job) {
  if (!o.task.empty()) {
    auto tasks = Tasks::of(job);
    if (!tasks) return tasks.error();
    return tasks->indexes(o.task);
  }
  return core::IndexSet::parse_lenient(o.index, core::kAnyIndex);
}

// The job of this name and its rounds, as far as they have their default names; empty: there is no
// such job.
Result<std::vector<Json>> with_rounds(ApiClient& client, const std::string& ns,
                                      const std::string& name) {
  std::vector<Json> rounds;
  for (std::string next = name; rounds.size() < kRoundsMax;
       next = root_of(rounds.front()) + "-r" + std::to_string(rounds.size() + 1)) {
    auto job = object(client, object_path(Kind::job, ns, next));
    if (!job && job.error().code == Errc::not_found) break;
    if (!job) return job.error();
    if (!rounds.empty() && root_of(*job) != root_of(rounds.front())) break;
    rounds.push_back(std::move(*job));
  }
  return rounds;
}

// Without those that other rounds have done, or still do.
Result<core::IndexSet> left_by_others(ApiClient& client, const std::string& ns, const Json& job,
                                      core::IndexSet indexes) {
  const auto rounds = with_rounds(client, ns, root_of(job));
  if (!rounds) return rounds.error();
  const std::string own = text_at(job, {"metadata", "uid"});
  std::string where;
  for (const Json& round : *rounds) {
    if (text_at(round, {"metadata", "uid"}) == own || round_of(round) <= round_of(job)) continue;
    core::IndexSet theirs = index_set(text_at(round, {"status", "completedIndexes"}));
    if (end_of(round) == JobEnd::none) theirs = own_indexes(round);
    core::IndexSet left = indexes.without(theirs);
    if (left.size() < indexes.size())
      where += (where.empty() ? "job/" : ", job/") + text_at(round, {"metadata", "name"});
    indexes = std::move(left);
  }
  if (indexes.empty() && !where.empty())
    return refuse(job, "what it has left is done, or runs, in " + where +
                           "; to run indexes again, choose them with --index");
  return indexes;
}

// Its name, or that of the round that completes it. `followers`: the indexes of a job that waits
// for it index by index; for this, earlier rounds must have done only those of them that the newest
// round does not run, and a failure in that one concerns no others.
Result<std::string> that_completes(ApiClient& client, const std::string& ns,
                                   const std::string& name, const core::IndexSet* followers) {
  auto found = with_rounds(client, ns, name);
  if (!found) return found.error();
  std::vector<Json>& rounds = *found;
  if (rounds.size() < 2 || end_of(rounds.front()) != JobEnd::failed) return name;
  const std::string newest = text_at(rounds.back(), {"metadata", "name"});
  if (!is_indexed(rounds.back())) return end_of(rounds.back()) == JobEnd::failed ? name : newest;
  if (followers) {
    core::IndexSet covered = own_indexes(rounds.back());
    for (const Json& round : rounds)
      covered.insert_all(index_set(text_at(round, {"status", "completedIndexes"})));
    return followers->without(covered).empty() ? newest : name;
  }
  // What still runs may succeed; if it does not, neither do those that wait for it.
  if (Json& last = rounds.back(); end_of(last) == JobEnd::none)
    last["status"]["completedIndexes"] = own_indexes(last).text();
  return all_succeeded(as_one(rounds)) ? newest : name;
}

}  // namespace

std::string root_of(const Json& job) {
  const std::string root = annotation(job, core::kRetryOfKey);
  return root.empty() ? text_at(job, {"metadata", "name"}) : root;
}

int round_of(const Json& job) {
  const std::string round = annotation(job, core::kRoundKey);
  return round.empty() ? 1 : std::atoi(round.c_str());
}

Result<core::IndexSet> chosen_indexes(const RetryWishes& o, const Json& job) {
  const core::IndexSet own = own_indexes(job);
  const core::IndexSet done = index_set(text_at(job, {"status", "completedIndexes"}));
  const core::IndexSet failed = failed_indexes(job);
  const bool over = end_of(job) != JobEnd::none;
  core::IndexSet wanted;
  if (!o.index.empty() || !o.task.empty()) {
    auto named = named_indexes(o, job);
    if (!named.ok()) return named.error();
    wanted = std::move(*named);
    if (core::IndexSet strange = wanted.without(own); !strange.empty())
      return refuse(job, "it has no index " + strange.text() + " (it runs " + own.text() + ")");
    if (core::IndexSet open = wanted.without(settled_indexes(job)); !over && !open.empty())
      return refuse(job, "index " + open.text() + " has not finished; see: muster why job/" +
                             text_at(job, {"metadata", "name"}) + "/" +
                             std::to_string(open.lowest()));
    return wanted;
  }
  if (o.failed && !failed.empty()) return failed;
  if (!over)
    return refuse(
        job,
        o.failed
            ? "it is still running and no index has failed"
            : "it is still running; wait until it has finished, or choose indexes with --index");
  wanted = own.without(done);
  if (wanted.empty()) return refuse(job, "all of its indexes have succeeded");
  if (!o.failed) return wanted;
  const core::IndexSet cancelled = cancelled_indexes(job);
  wanted = wanted.without(cancelled);
  const auto tasks = tasks_of(job);
  if (wanted.empty())
    return refuse(job, "none of its indexes has failed; run those that were cancelled with --" +
                           std::string(tasks ? "task " : "index ") +
                           (tasks ? tasks->numbers(cancelled) : cancelled.text()));
  return wanted;
}

Json as_one(const std::vector<Json>& rounds) {
  Json one = rounds.back();
  if (!is_indexed(one)) return one;
  core::IndexSet own, done, failed, cancelled;
  for (const Json& round : rounds) {
    own.insert_all(own_indexes(round));
    done.insert_all(index_set(text_at(round, {"status", "completedIndexes"})));
    failed.insert_all(index_set(text_at(round, {"status", "failedIndexes"})));
    cancelled = cancelled.without(own_indexes(round));  // a later round ran them after all
    cancelled.insert_all(cancelled_indexes(round));
  }
  one["status"]["completedIndexes"] = done.text();
  one["status"]["failedIndexes"] = failed.without(done).text();
  one["status"]["cancelledIndexes"] = cancelled.without(done).text();
  if (rounds.size() > 1)
    one["metadata"]["annotations"][std::string(core::kIndexesKey)] = own.text();
  return one;
}

bool all_succeeded(const Json& job) {
  return is_indexed(job) &&
         own_indexes(job).without(index_set(text_at(job, {"status", "completedIndexes"}))).empty();
}

Status wait_for_repairs(ApiClient& client, const std::string& ns, Json& manifest) {
  const std::vector<core::After> wanted = awaited_jobs(manifest);
  const core::IndexSet own = own_indexes(manifest);
  std::string after;
  for (const core::After& one : wanted) {
    std::string job = one.job;
    const bool each = one.needed == core::Needed::each;
    if (each || one.needed == core::Needed::ok) {
      auto repaired = that_completes(client, ns, one.job, each ? &own : nullptr);
      if (!repaired) return repaired.error();
      job = std::move(*repaired);
    }
    after.append(after.empty() ? "" : ",").append(core::name(one.needed)).append(":").append(job);
  }
  // Two names of one chain become one: then each waits as it was asked to.
  if (const auto replaced = core::parse_after(after); replaced && *replaced != wanted)
    manifest["metadata"]["annotations"][std::string(core::kAfterKey)] = after;
  return Nothing{};
}

Result<Json> create_round(ApiClient& client, const std::string& ns, const RetryWishes& wishes,
                          const Json& job) {
  std::string indexes;
  Json next;
  int round = round_of(job) + 1;
  if (!wishes.name.empty() && is_indexed(job))
    if (Status valid = check_job_name(wishes.name, number_at(job, {"spec", "completions"})); !valid)
      return valid.error();
  if (is_indexed(job)) {
    auto set = chosen_indexes(wishes, job);
    if (set && wishes.index.empty() && wishes.task.empty())
      set = left_by_others(client, ns, job, std::move(*set));
    if (!set) return set.error();
    indexes = set->text();
    next = next_round(wishes, ns, job, indexes, round);
    if (Status kept = keep_steps(client, ns, job, indexes, next); !kept) return kept.error();
  } else {
    if (!wishes.index.empty() || !wishes.task.empty())
      return refuse(job, "it is NonIndexed: omit --index and --task");
    if (end_of(job) != JobEnd::failed) return refuse(job, "it has not failed");
    next = next_round(wishes, ns, job, "", round);
    const int64_t left =
        number_at(job, {"spec", "completions"}) - number_at(job, {"status", "succeeded"});
    if (left > 0) next["spec"]["completions"] = left;
  }
  if (Status found = wait_for_repairs(client, ns, next); !found) return found.error();
  auto made = create_job(client, ns, next.dump(), false);
  // An earlier round has the name: try the next number.
  while (!made && made.error().code == Errc::exists && wishes.name.empty() &&
         ++round < kRoundsMax) {
    next["metadata"]["name"] = root_of(job) + "-r" + std::to_string(round);
    next["metadata"]["annotations"][core::kRoundKey] = std::to_string(round);
    made = create_job(client, ns, next.dump(), false);
  }
  return made;
}

std::string round_text(const Json& round) {
  const std::string indexes = annotation(round, core::kIndexesKey);
  const bool several = index_set(indexes).size() > 1;
  std::string of_tasks;
  if (const auto tasks = Tasks::of(round); tasks && !indexes.empty())
    of_tasks = std::string(several ? " (tasks " : " (task ") + tasks->numbers(index_set(indexes)) +
               " of its array)";
  return "job.batch/" + text_at(round, {"metadata", "name"}) + " created: round " +
         annotation(round, core::kRoundKey) + " of job/" + root_of(round) +
         (indexes.empty() ? "" : (several ? ", indexes " : ", index ") + indexes) + of_tasks;
}

}  // namespace muster::cli
