#include "client/terminal/policy_text.hpp"

#include "client/terminal/text.hpp"

#include <cstdio>

namespace muster::cli {
namespace {

std::string number(const Json& spec, const char* key, const char* otherwise) {
  const Json& value = at(spec, {key});
  return value.is_number() ? dumped(value) : otherwise;
}

std::string joined(const Json& list) {
  std::string text;
  if (!list.is_array()) return text;
  for (const Json& value : list)
    text +=
        (text.empty() ? "" : ",") + (value.is_string() ? value.get<std::string>() : dumped(value));
  return text;
}

// "exit code in 42,43: FailIndex"; "DisruptionTarget: Ignore".
std::string failure_rule(const Json& rule) {
  std::string when;
  const Json& codes = at(rule, {"onExitCodes"});
  if (codes.is_object()) {
    const std::string container = text_at(codes, {"containerName"});
    when = "exit code " + std::string(container.empty() ? "" : "of " + container + " ") +
           (text_at(codes, {"operator"}) == "NotIn" ? "not in " : "in ") +
           joined(at(codes, {"values"}));
  }
  const Json& conditions = at(rule, {"onPodConditions"});
  if (conditions.is_array()) {
    for (const Json& condition : conditions) {
      const std::string status = text_at(condition, {"status"});
      when += (when.empty() ? "" : " or ") + text_at(condition, {"type"}) +
              (status.empty() || status == "True" ? "" : "=" + status);
    }
  }
  return when + ": " + text_at(rule, {"action"});
}

// "any 3 of 0-9"; "all of 0-9"; "any 3".
std::string success_rule(const Json& rule) {
  const std::string indexes = text_at(rule, {"succeededIndexes"});
  const std::string count = number(rule, "succeededCount", "");
  if (count.empty()) return "all of " + indexes;
  return "any " + count + (indexes.empty() ? "" : " of " + indexes);
}

template <class Text>
std::string rules(const Json& list, const Text& text) {
  std::string out;
  if (!list.is_array()) return out;
  for (const Json& rule : list) out += (out.empty() ? "" : "; ") + text(rule);
  return out;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> policy_rows(const Json& spec) {
  std::vector<std::pair<std::string, std::string>> rows;
  if (at(spec, {"backoffLimitPerIndex"}).is_number()) {
    rows.emplace_back("Retries:", number(spec, "backoffLimitPerIndex", "") + " per index, " +
                                      number(spec, "maxFailedIndexes", "any number of") +
                                      " indexes may fail");
  } else {
    const bool in_place = text_at(spec, {"template", "spec", "restartPolicy"}) == "OnFailure";
    rows.emplace_back("Retries:", number(spec, "backoffLimit", "6") + " for the whole job" +
                                      (in_place ? "; restarts in place count as well" : ""));
  }
  const std::string failure = rules(at(spec, {"podFailurePolicy", "rules"}), failure_rule);
  if (!failure.empty())
    rows.emplace_back("On failure:", failure + "; otherwise, the failure counts");
  const std::string success = rules(at(spec, {"successPolicy", "rules"}), success_rule);
  if (!success.empty()) rows.emplace_back("Success:", "as soon as " + success + " succeeded");
  if (const std::string span = number(spec, "activeDeadlineSeconds", ""); !span.empty())
    rows.emplace_back("Deadline:", "active for at most " + span + "s");
  if (const std::string span = number(spec, "ttlSecondsAfterFinished", ""); !span.empty())
    rows.emplace_back("Removed:", span + "s after its end");
  if (text_at(spec, {"podReplacementPolicy"}) == "Failed")
    rows.emplace_back("Replaced:", "a pod only when it has ended");
  return rows;
}

std::string pace_text(int64_t succeeded, int64_t left, Millis running_ms) {
  if (succeeded <= 0 || running_ms <= 0) return "";
  const double per_minute =
      60'000.0 * static_cast<double>(succeeded) / static_cast<double>(running_ms);
  char pace[48];
  std::snprintf(pace, sizeof pace, per_minute < 10 ? "%.1f indexes/min" : "%.0f indexes/min",
                per_minute);
  if (left <= 0) return pace;
  return std::string(pace) + ", about " +
         short_span(static_cast<Millis>(60'000.0 * static_cast<double>(left) / per_minute)) +
         " left";
}

}  // namespace muster::cli
