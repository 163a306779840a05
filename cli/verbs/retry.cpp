// muster retry: another round of some indexes of a job.
//
// A round is a Job of its own (JOB-r2 and so on) with the spec of the first one, fresh limits, and
// the annotation muster.dev/indexes: only these indexes run, under their old numbers. The failed
// job stays unchanged as a record of what happened.
#include "cli/client/attempts.hpp"
#include "cli/client/discovery.hpp"
#include "cli/client/objects.hpp"
#include "cli/output/exit_codes.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/index_set.hpp"
#include "core/spec/annotations.hpp"
#include "core/spec/owner.hpp"

#include <iostream>

namespace muster::cli {
namespace {

constexpr int kRoundsMax = 1'000;  // names to try

// The set difference `all` - `less`.
core::IndexSet without(const core::IndexSet& all, const core::IndexSet& less) {
  core::IndexSet rest;
  for (const auto& [first, last] : all.intervals()) {
    for (uint64_t index = less.lowest_missing(first); index <= last;
         index = less.lowest_missing(index)) {
      const uint64_t end = std::min<uint64_t>(less.lowest(index), uint64_t{last} + 1);
      rest.insert_range(static_cast<uint32_t>(index), static_cast<uint32_t>(end - 1));
      index = end;
    }
  }
  return rest;
}

std::string annotation(const Json& job, std::string_view key) {
  return text_at(job, {"metadata", "annotations", std::string(key).c_str()});
}

// The indexes that this job runs.
core::IndexSet own_indexes(const Json& job) {
  const std::string some = annotation(job, core::kIndexesKey);
  if (!some.empty()) return index_set(some);
  core::IndexSet all;
  const int64_t completions = number_at(job, {"spec", "completions"});
  if (completions > 0) all.insert_range(0, static_cast<uint32_t>(completions - 1));
  return all;
}

Error refuse(const std::string& job, const std::string& why) {
  return {Errc::invalid, "job/" + job + " cannot be retried: " + why, {}};
}

// The indexes of the new round.
Result<core::IndexSet> chosen(const RetryOptions& o, const Json& job) {
  const core::IndexSet own = own_indexes(job);
  const core::IndexSet done = index_set(text_at(job, {"status", "completedIndexes"}));
  const core::IndexSet failed = index_set(text_at(job, {"status", "failedIndexes"}));
  const bool over = end_of(job) != JobEnd::none;
  core::IndexSet wanted;
  if (!o.index.empty()) {
    auto named = core::IndexSet::parse_strict(o.index, core::kAnyIndex);
    if (!named.ok()) return Error{Errc::invalid, "--index: " + named.error().message, {}};
    wanted = std::move(*named);
    if (core::IndexSet strange = without(wanted, own); !strange.empty())
      return refuse(o.job, "it has no index " + strange.text() + " (it runs " + own.text() + ")");
    core::IndexSet terminal = done;
    terminal.insert_all(failed);
    if (core::IndexSet open = without(wanted, terminal); !over && !open.empty())
      return refuse(o.job, "index " + open.text() + " has not finished; see: muster why job/" +
                               o.job + "/" + std::to_string(open.lowest()));
    return wanted;
  }
  if (o.failed && !failed.empty()) return failed;
  if (!over)
    return refuse(
        o.job,
        o.failed
            ? "it is still running and no index has failed"
            : "it is still running; wait until it has finished, or choose indexes with --index");
  wanted = without(own, done);
  if (wanted.empty()) return refuse(o.job, "all of its indexes have succeeded");
  return wanted;
}

std::string root_of(const RetryOptions& o, const Json& job) {
  const std::string root = annotation(job, core::kRetryOfKey);
  return root.empty() ? o.job : root;
}

int round_after(const Json& job) {
  const std::string round = annotation(job, core::kRoundKey);
  return (round.empty() ? 1 : std::atoi(round.c_str())) + 1;
}

Json next_round(const RetryOptions& o, const Json& job, const std::string& indexes, int round) {
  const std::string root = root_of(o, job);
  Json next = {{"apiVersion", "batch/v1"}, {"kind", "Job"}};
  Json annotations = at(job, {"metadata", "annotations"});
  if (!annotations.is_object()) annotations = Json::object();
  erase_members(annotations, {"kubectl.kubernetes.io/last-applied-configuration"});
  for (const std::string_view key : core::kOwnerKeys) annotations.erase(std::string(key));
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
                      {"namespace", o.target.ns},
                      {"annotations", annotations}};
  if (labels.is_object() && !labels.empty()) next["metadata"]["labels"] = labels;
  next["spec"] = std::move(spec);
  return next;
}

// Creates the round, prints and returns its name.
Result<std::string> create_round(const RetryOptions& options) {
  const auto client = connect(options.target);
  auto job = object(*client, object_path(Kind::job, options.target.ns, options.job));
  if (!job) return job.error();
  if (at(*job, {"spec", "template", "spec", "containers"}).empty())  // only the owner sees them
    return refuse(options.job, "it belongs to another user");
  std::string indexes;
  Json next;
  int round = round_after(*job);
  if (text_at(*job, {"spec", "completionMode"}) == "Indexed") {
    auto set = chosen(options, *job);
    if (!set) return set.error();
    indexes = set->text();
    next = next_round(options, *job, indexes, round);
  } else {
    if (!options.index.empty()) return refuse(options.job, "it is NonIndexed: it has no --index");
    if (end_of(*job) != JobEnd::failed) return refuse(options.job, "it has not failed");
    next = next_round(options, *job, "", round);
    const int64_t left =
        number_at(*job, {"spec", "completions"}) - number_at(*job, {"status", "succeeded"});
    if (left > 0) next["spec"]["completions"] = left;
  }
  auto made = create_job(*client, options.target.ns, next.dump(), false);
  // An earlier round has the name: try the next number.
  while (!made && made.error().code == Errc::exists && options.name.empty() &&
         ++round < kRoundsMax) {
    next["metadata"]["name"] = root_of(options, *job) + "-r" + std::to_string(round);
    next["metadata"]["annotations"][core::kRoundKey] = std::to_string(round);
    made = create_job(*client, options.target.ns, next.dump(), false);
  }
  if (!made) return made.error();
  const std::string name = text_at(*made, {"metadata", "name"});
  std::cout << "job.batch/" << name << " created: round " << annotation(*made, core::kRoundKey)
            << " of job/" << annotation(*made, core::kRetryOfKey);
  if (!indexes.empty()) std::cout << ", index " << indexes;
  std::cout << std::endl;
  return name;
}

}  // namespace

int execute(const RetryOptions& options) {
  auto name = create_round(options);  // has destroyed its client: only one per thread
  if (!name) return fail(name.error());
  if (!options.wait) return kDone;
  WaitOptions wait;
  wait.target = options.target;
  wait.jobs = {*name};
  return execute(wait);
}

}  // namespace muster::cli
