#include "api/kube/objects/status_rules.hpp"

#include "api/kube/schema/fields.hpp"
#include "base/text/time_text.hpp"
#include "core/index_set.hpp"
#include "core/job/shown/hold_text.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr size_t kJobConditionsMax = 100;  // for a job that muster manages

// The conditions that muster sets on a job.
constexpr const char* kOwned[] = {"Complete",
                                  "Failed",
                                  "FailureTarget",
                                  "SuccessCriteriaMet",
                                  "Suspended",
                                  core::kHeldCondition,
                                  core::kOverridesCondition};

bool owned(std::string_view type) {
  return std::find(std::begin(kOwned), std::end(kOwned), type) != std::end(kOwned);
}

struct Rules {
  const core::JobSpec& spec;
  const json& old;
  const json& now;
  core::Violations found{};

  static bool is_true(const json& status, const char* type) {
    if (!status.contains("conditions") || !status["conditions"].is_array()) return false;
    for (const json& c : status["conditions"])
      if (c.is_object() && text(c, "type") == type && text(c, "status") == "True") return true;
    return false;
  }
  static int64_t number(const json& status, const char* name) {
    auto it = status.find(name);
    return it != status.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
  }
  static std::string text(const json& status, const char* name) {
    auto it = status.find(name);
    return it != status.end() && it->is_string() ? it->get<std::string>() : std::string();
  }

  bool changed(const char* name) const {
    return old.value(name, json()) != now.value(name, json());
  }
  bool moved(const char* name) const { return number(old, name) != number(now, name); }
  bool turned(const char* type) const { return is_true(old, type) != is_true(now, type); }

  void kinds() {
    auto conditions = now.find("conditions");
    if (conditions == now.end() || !changed("conditions")) return;
    for (size_t i = 0; i < conditions->size(); ++i)
      if (text((*conditions)[i], "type").empty())
        found.required("status.conditions[" + std::to_string(i) + "].type");
  }

  void counters() {
    for (const char* name : {"active", "ready", "terminating", "succeeded", "failed"})
      found.nonnegative(std::string("status.") + name, number(now, name));
    if ((moved("ready") || moved("active")) && number(now, "ready") > number(now, "active"))
      found.invalid("status.ready", number(now, "ready"), "cannot set more ready pods than active");
    if (number(now, "failed") < number(old, "failed"))
      found.invalid("status.failed", number(now, "failed"), "cannot decrease the failed counter");
    bool elastic = spec.indexed() && spec.completions == spec.parallelism;
    if (!elastic && number(now, "succeeded") < number(old, "succeeded"))
      found.invalid("status.succeeded", number(now, "succeeded"),
                    "cannot decrease the succeeded counter");
  }

  // Checks the lists of UIDs; returns whether there are any.
  bool uncounted() {
    std::set<std::string> seen;
    const json lists = now.value("uncountedTerminatedPods", json());
    for (const char* name : {"succeeded", "failed"}) {
      const json list = lists.is_object() ? lists.value(name, json()) : json();
      if (!list.is_array()) continue;
      for (size_t i = 0; i < list.size(); ++i) {
        const std::string path =
            std::string("status.uncountedTerminatedPods.") + name + "[" + std::to_string(i) + "]";
        const std::string uid = list[i].is_string() ? list[i].get<std::string>() : std::string();
        if (uid.empty())
          found.invalid(path, std::string_view(uid), "must not be empty");
        else if (!seen.insert(uid).second)
          found.duplicate(path, std::string_view(uid));
      }
    }
    return !seen.empty();
  }

  void conditions() {
    auto both = [this](const char* a, const char* b) {
      if ((turned(a) || turned(b)) && is_true(now, a) && is_true(now, b))
        found.invalid_object("status.conditions", std::string("cannot set ") + a + "=True and " +
                                                      b + "=True conditions");
    };
    both("Complete", "Failed");
    both("Complete", "FailureTarget");
    both("SuccessCriteriaMet", "Failed");
    both("SuccessCriteriaMet", "FailureTarget");
    auto needs = [this](const char* end, const char* interim) {
      if ((turned(end) || turned(interim)) && is_true(now, end) && !is_true(now, interim))
        found.invalid_object("status.conditions", std::string("cannot set ") + end +
                                                      "=True condition without the " + interim +
                                                      "=True condition");
    };
    needs("Failed", "FailureTarget");
    needs("Complete", "SuccessCriteriaMet");
    for (const char* type : {"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"})
      if (is_true(old, type) && !is_true(now, type))
        found.invalid_object("status.conditions", std::string("cannot disable the terminal ") +
                                                      type + "=True condition");
    if (is_true(old, "Complete") && !is_true(old, "SuccessCriteriaMet") &&
        is_true(now, "SuccessCriteriaMet"))
      found.invalid_object("status.conditions",
                           "cannot set SuccessCriteriaMet=True for a job that is complete");
  }

  void times(bool any_uncounted) {
    const std::string start = text(now, "startTime"), done = text(now, "completionTime");
    bool complete = is_true(now, "Complete"), finished = complete || is_true(now, "Failed");
    const bool was_finished = is_true(old, "Complete") || is_true(old, "Failed");
    const bool ends = finished != was_finished;
    const bool starts = changed("startTime"), completes = changed("completionTime");
    const bool judged = turned("Complete") || completes;
    if (judged && complete && done.empty())
      found.required("status.completionTime", "completionTime is required for Complete jobs");
    if (judged && !complete && !done.empty())
      found.invalid("status.completionTime", std::string_view(done),
                    "cannot set completionTime when there is no Complete=True condition");
    if (const std::string was = text(old, "completionTime"); !was.empty() && was != done)
      found.invalid("status.completionTime", std::string_view(done), "field is immutable");
    // Both are UTC in whole seconds (conform_status), so comparing the texts compares the times.
    if ((starts || completes) && !start.empty() && !done.empty() && done < start)
      found.invalid("status.completionTime", std::string_view(done),
                    "completionTime cannot be set before startTime");
    bool suspended = spec.suspend.value_or(false);
    if (const std::string was = text(old, "startTime"); !was.empty() && was != start && !suspended)
      found.required("status.startTime",
                     "startTime cannot be removed or changed while the job is "
                     "not suspended");
    if (!finished) return;
    if ((ends || starts) && start.empty() && !suspended)
      found.required("status.startTime", "startTime is required for finished job");
    for (const char* name : {"active", "terminating"})
      if ((ends || moved(name)) && number(now, name) > 0)
        found.invalid(std::string("status.") + name, number(now, name),
                      std::string(name) + ">0 is invalid for finished job");
    if (any_uncounted && (ends || changed("uncountedTerminatedPods")))
      found.invalid_object("status.uncountedTerminatedPods",
                           "uncountedTerminatedPods needs to be empty for finished job");
  }

  void indexes() {
    core::IndexSet sets[2];
    const char* names[] = {"completedIndexes", "failedIndexes"};
    for (int i = 0; i < 2; ++i) {
      const std::string path = std::string("status.") + names[i], set = text(now, names[i]);
      const bool judged = now.contains(names[i]) && changed(names[i]);
      if (judged && i == 0 && !spec.indexed() && !set.empty())
        found.invalid(path, std::string_view(set),
                      "cannot set non-empty completedIndexes when "
                      "non-indexed completion mode");
      if (judged && i == 1 && !spec.backoff_limit_per_index)
        found.invalid(path, std::string_view(set),
                      "cannot set failedIndexes when backoffLimitPerIndex is not set");
      // An unchanged set may contain indexes beyond a lowered spec.completions.
      auto parsed = core::IndexSet::parse_strict(
          set, judged ? spec.completions.value_or(0) : core::kAnyIndex);
      if (judged && spec.indexed() && !parsed.ok())
        found.invalid(path, std::string_view(set),
                      "error parsing " + std::string(names[i]) + ": " + parsed.error().message);
      if (parsed.ok()) sets[i] = std::move(*parsed);
    }
    if (!changed(names[0]) && !changed(names[1])) return;
    for (const auto& [first, last] : sets[1].intervals())
      if (uint64_t both = sets[0].lowest(first); both <= last) {
        found.invalid(
            "status.failedIndexes", std::string_view(text(now, names[1])),
            "failedIndexes and completedIndexes overlap at index " + std::to_string(both));
        break;
      }
  }
};

}  // namespace

bool managed_elsewhere(const core::JobSpec& spec, const core::Gates& gates) {
  return gates.managed_by && spec.managed_by && *spec.managed_by != core::kReservedManager;
}

Result<std::vector<UnknownField>> conform_status(json& status) {
  auto unknown = conform(status, "JobStatus", "status");
  if (!unknown.ok()) return unknown.error();
  std::string problem;
  auto in_utc = [&problem](json& object, const char* name, const std::string& path) {
    auto it = object.find(name);
    if (it == object.end()) return;
    const auto instant = parse_time(it->get_ref<const std::string&>());
    if (instant)
      *it = time_text(*instant);
    else if (problem.empty())
      problem = path + name + ": not a time such as 2026-03-01T12:00:00Z: " + it->dump();
  };
  for (const char* name : {"startTime", "completionTime"}) in_utc(status, name, "status.");
  if (auto conditions = status.find("conditions"); conditions != status.end())
    for (size_t i = 0; i < conditions->size(); ++i)
      for (const char* name : {"lastProbeTime", "lastTransitionTime"})
        in_utc((*conditions)[i], name, "status.conditions[" + std::to_string(i) + "].");
  if (!problem.empty()) return Error{Errc::invalid, std::move(problem), {}};
  return std::move(*unknown);
}

core::Violations kept_by_us(const json& old_status, const json& status) {
  constexpr const char* kOurs =
      "muster manages the status of this job; clients can set it only on jobs with another "
      "spec.managedBy";
  core::Violations found;
  std::set<std::string> names;
  for (const json* one : {&old_status, &status})
    if (one->is_object())
      for (const auto& [name, value] : one->items()) names.insert(name);
  for (const std::string& name : names)
    if (name != "conditions" && old_status.value(name, json()) != status.value(name, json()))
      found.forbidden("status." + name, kOurs);

  const json was = old_status.value("conditions", json::array());
  const json is = status.value("conditions", json::array());
  if (was == is) return found;
  if (is.size() > kJobConditionsMax) {
    found.too_many("status.conditions", is.size(), kJobConditionsMax);
    return found;
  }
  auto ours = [](const json& list) {
    std::map<std::string, json> all;
    for (const json& one : list)
      if (const std::string type = Rules::text(one, "type"); owned(type)) all.emplace(type, one);
    return all;
  };
  const auto before = ours(was), after = ours(is);
  for (const char* type : kOwned) {
    auto a = before.find(type), b = after.find(type);
    const bool same =
        a == before.end() ? b == after.end() : b != after.end() && a->second == b->second;
    if (!same) found.forbidden(std::string("status.conditions[") + type + "]", kOurs);
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < is.size(); ++i) {
    const std::string path = "status.conditions[" + std::to_string(i) + "]";
    const std::string type = Rules::text(is[i], "type"), value = Rules::text(is[i], "status");
    if (type.empty()) found.required(path + ".type");
    if (!seen.insert(type).second) found.duplicate(path + ".type", std::string_view(type));
    if (value != "True" && value != "False" && value != "Unknown")
      found.not_supported(path + ".status", value, {"False", "True", "Unknown"});
  }
  return found;
}

std::string own_conditions(const json& status) {
  json list = json::array();
  for (const json& one : status.value("conditions", json::array()))
    if (!owned(Rules::text(one, "type"))) list.push_back(one);
  return list.empty() ? "" : list.dump();
}

core::Violations status_violations(const core::JobSpec& spec, const json& old_status,
                                   const json& status) {
  Rules rules{spec, old_status, status};
  if (!status.is_object()) {
    rules.found.invalid_object("status", "must be an object");
    return std::move(rules.found);
  }
  rules.kinds();
  rules.counters();
  bool any_uncounted = rules.uncounted();
  rules.conditions();
  rules.times(any_uncounted);
  rules.indexes();
  return std::move(rules.found);
}

}  // namespace muster::api
