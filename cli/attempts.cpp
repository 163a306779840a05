// muster get attempts: a line an attempt that is over, newest last.
#include "cli/attempts.hpp"

#include "api/time_text.hpp"
#include "cli/discovery.hpp"
#include "cli/exit_codes.hpp"
#include "cli/failures.hpp"
#include "cli/objects.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "cli/verbs.hpp"

#include <iostream>

namespace muster::cli {
namespace {

std::string index_text(const Json& attempt) {
  return attempt.contains("index") ? attempt["index"].dump() : std::string("-");
}

// "2.100s", from two instants with milliseconds; "-": it never started.
std::string ran(const Json& attempt) {
  const auto from = api::parse_time(text_at(attempt, {"started"}));
  const auto to = api::parse_time(text_at(attempt, {"ended"}));
  if (!from || !to || *to < *from) return "-";
  const Millis ms = *to - *from;
  if (ms >= 100'000) return short_span(ms);
  std::string text = std::to_string(ms % 1000);
  return std::to_string(ms / 1000) + "." + std::string(3 - text.size(), '0') + text + "s";
}

}  // namespace

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
  const int64_t signal = number_at(attempt, {"signal"});
  const std::string code = "exit " + std::to_string(number_at(attempt, {"exitCode"}));
  std::string text = signal != 0 ? signal_name(signal) + " (" + code + ")" : code;
  const std::string cause = text_at(attempt, {"cause"});
  if (cause == "out-of-memory") text += ", OOMKilled";
  if (cause == "deadline") text += ", DeadlineExceeded";
  const std::string disruption = text_at(attempt, {"disruption"});
  if (!disruption.empty()) text += ", " + disruption;
  const std::string message = text_at(attempt, {"message"});
  return message.empty() ? text : text + ": " + message;
}

std::string attempt_counted(const Json& attempt) {
  const std::string counted = text_at(attempt, {"counted"}), rule = text_at(attempt, {"rule"});
  if (counted == "succeeded") return "success";
  if (counted == "failed") return rule.empty() ? "failure" : "failure (" + rule + ")";
  if (counted == "ignored") return "not counted (Ignore)";
  return "not counted (removed)";
}

int execute(const AttemptsOptions& options) {
  const auto client = connect(options.target);
  std::string query = options.failed ? "failed=true" : "";
  if (!options.index.empty())
    query += (query.empty() ? "" : "&") + ("index=" + url_encoded(options.index));
  Json all = Json::array();
  std::vector<std::vector<std::string>> rows;
  if (options.headers)
    rows.push_back({"INDEX", "ATTEMPT", "NODE", "STARTED", "RAN", "COUNTED AS", "CAUSE"});
  Status done =
      each_attempt(*client, options.target.ns, options.job, query, [&](const Json& attempt) {
        if (options.output == Output::json || options.output == Output::yaml) {
          all.push_back(attempt);
        } else if (options.output == Output::name) {
          rows.push_back({text_at(attempt, {"pod"})});
        } else {
          const std::string started = text_at(attempt, {"started"});
          rows.push_back({index_text(attempt), std::to_string(number_at(attempt, {"attempt"})),
                          text_at(attempt, {"node"}), started.empty() ? "-" : started, ran(attempt),
                          attempt_counted(attempt), attempt_cause(attempt)});
        }
      });
  if (!done) return fail(done.error());
  if (options.output == Output::json || options.output == Output::yaml) {
    const Json list = {{"kind", "AttemptList"}, {"apiVersion", "muster.dev/v1"}, {"items", all}};
    std::cout << (options.output == Output::json ? dumped(list, 2) + "\n" : to_yaml(list));
    return kDone;
  }
  if (options.output == Output::name) {
    for (size_t i = options.headers ? 1 : 0; i < rows.size(); ++i)
      std::cout << rows[i].front() << "\n";
    return kDone;
  }
  if (rows.size() <= (options.headers ? 1u : 0u))
    std::cerr << "no attempt of job/" << options.job << " is over yet\n";
  else
    std::cout << aligned(rows, "");
  return kDone;
}

}  // namespace muster::cli
