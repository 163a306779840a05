#include "api/status_rules.hpp"

#include "core/index_set.hpp"
#include "core/spec/well_known.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace muster::api {
namespace {

using nlohmann::json;

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

  // What stands there is of the right kind: the rules below look no further.
  void kinds() {
    auto conditions = now.find("conditions");
    if (conditions != now.end()) {
      const bool good =
          conditions->is_array() &&
          std::all_of(conditions->begin(), conditions->end(), [](const json& c) {
            return c.is_object() && !text(c, "type").empty() && !text(c, "status").empty();
          });
      if (!good)
        found.invalid_object("status.conditions",
                             "has to be a list of objects with a type and a status");
    }
    for (const char* name : {"startTime", "completionTime", "completedIndexes", "failedIndexes"})
      if (now.contains(name) && !now[name].is_string())
        found.invalid_object(std::string("status.") + name, "has to be a text");
    if (now.contains("uncountedTerminatedPods") && !now["uncountedTerminatedPods"].is_object())
      found.invalid_object("status.uncountedTerminatedPods", "has to be an object");
  }

  void counters() {
    for (const char* name : {"active", "ready", "terminating", "succeeded", "failed"}) {
      const std::string path = std::string("status.") + name;
      if (now.contains(name) && !now[name].is_number_integer())
        found.invalid(path, now[name].dump(), "must be a whole number");
      else
        found.nonnegative(path, number(now, name));
    }
    if (number(now, "ready") > number(now, "active"))
      found.invalid("status.ready", number(now, "ready"), "cannot set more ready pods than active");
    if (number(now, "failed") < number(old, "failed"))
      found.invalid("status.failed", number(now, "failed"), "cannot decrease the failed counter");
    bool elastic = spec.indexed() && spec.completions == spec.parallelism;
    if (!elastic && number(now, "succeeded") < number(old, "succeeded"))
      found.invalid("status.succeeded", number(now, "succeeded"),
                    "cannot decrease the succeeded counter");
  }

  // Whether any UID is listed.
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
      if (is_true(now, a) && is_true(now, b))
        found.invalid_object("status.conditions", std::string("cannot set ") + a + "=True and " +
                                                      b + "=True conditions");
    };
    both("Complete", "Failed");
    both("Complete", "FailureTarget");
    both("SuccessCriteriaMet", "Failed");
    both("SuccessCriteriaMet", "FailureTarget");
    auto needs = [this](const char* end, const char* interim) {
      if (is_true(now, end) && !is_true(now, interim))
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
    if (complete && done.empty())
      found.required("status.completionTime", "completionTime is required for Complete jobs");
    if (!complete && !done.empty())
      found.invalid("status.completionTime", std::string_view(done),
                    "cannot set completionTime when there is no Complete=True condition");
    if (const std::string was = text(old, "completionTime"); !was.empty() && was != done)
      found.invalid("status.completionTime", std::string_view(done), "field is immutable");
    // RFC 3339 in UTC: texts of one form compare as instants do.
    if (!start.empty() && !done.empty() && done < start)
      found.invalid("status.completionTime", std::string_view(done),
                    "completionTime cannot be set before startTime");
    bool suspended = spec.suspend.value_or(false);
    if (const std::string was = text(old, "startTime"); !was.empty() && was != start && !suspended)
      found.required("status.startTime",
                     "startTime cannot be removed or changed while the job is "
                     "not suspended");
    if (!finished) return;
    if (start.empty() && !suspended)
      found.required("status.startTime", "startTime is required for finished job");
    for (const char* name : {"active", "terminating"})
      if (number(now, name) > 0)
        found.invalid(std::string("status.") + name, number(now, name),
                      std::string(name) + ">0 is invalid for finished job");
    if (any_uncounted)
      found.invalid_object("status.uncountedTerminatedPods",
                           "uncountedTerminatedPods needs to be empty for finished job");
  }

  void indexes() {
    core::IndexSet sets[2];
    const char* names[] = {"completedIndexes", "failedIndexes"};
    for (int i = 0; i < 2; ++i) {
      if (!now.contains(names[i])) continue;
      const std::string path = std::string("status.") + names[i], set = text(now, names[i]);
      if (i == 0 && !spec.indexed() && !set.empty())
        found.invalid(path, std::string_view(set),
                      "cannot set non-empty completedIndexes when "
                      "non-indexed completion mode");
      if (i == 1 && !spec.backoff_limit_per_index)
        found.invalid(path, std::string_view(set),
                      "cannot set failedIndexes when backoffLimitPerIndex is not set");
      auto parsed = core::IndexSet::parse_strict(set, spec.completions.value_or(0));
      if (spec.indexed() && !parsed.ok())
        found.invalid(path, std::string_view(set),
                      "error parsing " + std::string(names[i]) + ": " + parsed.error().message);
      if (parsed.ok()) sets[i] = std::move(*parsed);
    }
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

core::Violations kept_by_us(const json& old_status, const json& status) {
  core::Violations found;
  std::set<std::string> names;
  for (const json* one : {&old_status, &status})
    if (one->is_object())
      for (const auto& [name, value] : one->items()) names.insert(name);
  for (const std::string& name : names)
    if (old_status.value(name, json()) != status.value(name, json()))
      found.forbidden("status." + name,
                      "muster itself keeps the status of a job without a foreign managedBy");
  return found;
}

core::Violations status_violations(const core::JobSpec& spec, const json& old_status,
                                   const json& status) {
  Rules rules{spec, old_status, status};
  if (!status.is_object()) {
    rules.found.invalid_object("status", "has to be an object");
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
