#include "client/news/attempts.hpp"

#include "base/text/exit_text.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/fields/annotations.hpp"

namespace muster::cli {
core::IndexSet index_set(const std::string& text) {
  return core::IndexSet::parse_lenient(text, core::kAnyIndex);
}

core::IndexSet own_indexes(const Json& job) {
  const std::string some = text_at(job, {"metadata", "annotations", core::kIndexesKey.data()});
  if (!some.empty()) return index_set(some);
  core::IndexSet all;
  const int64_t completions = number_at(job, {"spec", "completions"});
  if (completions > 0) all.insert_range(0, static_cast<uint32_t>(completions - 1));
  return all;
}

core::IndexSet failed_indexes(const Json& job) {
  return index_set(text_at(job, {"status", "failedIndexes"})).without(cancelled_indexes(job));
}

core::IndexSet cancelled_indexes(const Json& job) {
  return index_set(text_at(job, {"status", "cancelledIndexes"}));
}

core::IndexSet settled_indexes(const Json& job) {
  core::IndexSet settled = index_set(text_at(job, {"status", "completedIndexes"}));
  settled.insert_all(failed_indexes(job));
  settled.insert_all(cancelled_indexes(job));
  return settled;
}

std::string own_path(const std::string& ns, const std::string& job, const std::string& what) {
  return "/apis/muster.dev/v1/namespaces/" + url_encoded(ns) + "/jobs/" + url_encoded(job) + "/" +
         what;
}

Status each_attempt(ApiClient& client, const std::string& ns, const std::string& job,
                    const std::string& query, const std::function<void(const Json&)>& take) {
  std::string token;
  do {
    std::string path = own_path(ns, job, "attempts") + "?limit=1000";
    if (!query.empty()) path += "&" + query;
    if (!token.empty()) path += "&continue=" + url_encoded(token);
    auto page = object(client, path);
    if (!page) return page.error();
    for (const Json& attempt : at(*page, {"items"})) take(attempt);
    token = text_at(*page, {"metadata", "continue"});
  } while (!token.empty());
  return Nothing{};
}

std::string attempt_cause(const Json& attempt) {
  std::string text = exit_text(number_at(attempt, {"exitCode"}), number_at(attempt, {"signal"}));
  const std::string cause = text_at(attempt, {"cause"});
  if (cause == "out-of-memory") text += ", OOMKilled";
  if (cause == "deadline") text += ", DeadlineExceeded";
  const std::string disruption = text_at(attempt, {"disruption"});
  if (!disruption.empty()) text += ", " + disruption;
  if (const int64_t restarts = number_at(attempt, {"restarts"}); restarts > 0)
    text += ", after " + std::to_string(restarts) + (restarts == 1 ? " restart" : " restarts");
  const std::string message = text_at(attempt, {"message"});
  return message.empty() ? text : text + ": " + message;
}

std::string run_cause(const Json& run) {
  std::string text = exit_text(number_at(run, {"exitCode"}), number_at(run, {"signal"}));
  if (text_at(run, {"cause"}) == "out-of-memory") text += ", OOMKilled";
  return text + ", run " + std::to_string(number_at(run, {"run"})) + " of " +
         text_at(run, {"container"});
}

std::string runs_of(const Json& pod) {
  const Json runs =
      Json::parse(text_at(pod, {"metadata", "annotations", "muster.dev/runs"}), nullptr, false);
  std::string text;
  for (const Json& run : runs.is_array() ? runs : Json::array())
    text += (text.empty() ? "" : "; ") + run_cause(run);
  return text;
}

std::string attempt_counted(const Json& attempt) {
  const std::string counted = text_at(attempt, {"counted"}), rule = text_at(attempt, {"rule"});
  if (counted == "succeeded") return "success";
  if (counted == "failed") return rule.empty() ? "failure" : "failure (" + rule + ")";
  if (counted == "ignored") return "not counted (Ignore)";
  if (counted == "cancelled") return "cancelled";
  if (counted == "not-yet") return "not counted yet";
  return "not counted (removed)";
}

}  // namespace muster::cli
