#include "client/news/trace.hpp"

#include "base/text/time_text.hpp"
#include "client/news/attempts.hpp"
#include "client/news/usage.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <utility>

namespace muster::cli {
namespace {

// How its start reads if there is none, of an attempt that has ended.
std::string no_start(const std::string& cause) {
  const bool never = cause == "never-started" || cause == "start-failed" || cause == "returned";
  return never ? "never" : "not reported";
}

// Puts a step that comes between others where its time belongs, but never after the end.
void put_between(TraceSteps& steps, TraceStep step) {
  const auto at = parse_time(step.at);
  const auto next = std::ranges::find_if(steps, [&at](const TraceStep& one) {
    const auto time = parse_time(one.at);
    const bool last = one.name == "ended" || one.name == "counted";
    return at && time && (last ? *time >= *at : *time > *at);
  });
  steps.insert(next, std::move(step));
}

void add_spans(TraceSteps& steps) {
  std::optional<Millis> before;
  for (TraceStep& step : steps) {
    const auto at = parse_time(step.at);
    if (!at) continue;
    step.precedes = before && *at < *before;
    if (before && !step.precedes) step.since_ms = *at - *before;
    before = at;
  }
}

std::string or_dash_of(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string since_text(const TraceStep& step) {
  if (step.precedes) return "?";
  return step.since_ms ? precise_span(static_cast<double>(*step.since_ms) / 1000) : "-";
}

// How long it ran: "2.100s"; "-": it did not, or that is not known.
std::string run_span(const Json& attempt) {
  const auto from = parse_time(text_at(attempt, {"started"}));
  const auto to = parse_time(text_at(attempt, {"ended"}));
  if (!from || !to || *to < *from) return "-";
  return precise_span(static_cast<double>(*to - *from) / 1000);
}

}  // namespace

TraceSteps trace_steps(const Json& attempt, const std::string& job_created) {
  const std::string bound = text_at(attempt, {"bound"}), started = text_at(attempt, {"started"}),
                    ended = text_at(attempt, {"ended"}), counted = text_at(attempt, {"recorded"}),
                    stopping = text_at(attempt, {"stopping"}), node = text_at(attempt, {"node"});
  TraceSteps steps;
  if (!job_created.empty()) steps.push_back({"accepted", job_created, false, "its job"});
  steps.push_back({"created", text_at(attempt, {"created"}), false, ""});
  if (!bound.empty()) steps.push_back({"bound", bound, false, node.empty() ? "" : "to " + node});
  if (!started.empty())
    steps.push_back({"started", started, true, ""});
  else if (!ended.empty() && !bound.empty())
    steps.push_back({"started", "", true, no_start(text_at(attempt, {"cause"}))});
  if (!ended.empty()) {
    // What ends an attempt without its node is recorded, not reported.
    const std::string cause = text_at(attempt, {"cause"});
    const bool reported = !bound.empty() && cause != "node-lost" && cause != "node-deleted";
    steps.push_back({"ended", ended, reported, attempt_cause(attempt)});
  }
  if (!counted.empty()) steps.push_back({"counted", counted, false, attempt_counted(attempt)});
  const Json& runs = at(attempt, {"runs"});
  for (const Json& run : runs.is_array() ? runs : Json::array())
    put_between(steps, {"restarted", text_at(run, {"ended"}), true, "after " + run_cause(run)});
  if (!stopping.empty()) put_between(steps, {"stopping", stopping, false, "its end was ordered"});
  add_spans(steps);
  return steps;
}

std::vector<std::vector<std::string>> trace_rows(const TraceSteps& steps) {
  std::vector<std::vector<std::string>> rows = {{"STEP", "AT", "SINCE LAST", "BY", "WHAT"}};
  for (const TraceStep& step : steps)
    rows.push_back({step.name, or_dash_of(step.at), since_text(step),
                    step.by_node ? "node" : "coordinator", or_dash_of(step.what)});
  return rows;
}

std::vector<std::vector<std::string>> short_rows(const std::vector<Json>& attempts) {
  std::vector<std::vector<std::string>> rows = {
      {"ATTEMPT", "POD", "NODE", "CREATED", "WAITED", "RAN", "COUNTED AS", "CAUSE"}};
  for (const Json& attempt : attempts) {
    const bool ended = !text_at(attempt, {"ended"}).empty();
    rows.push_back({std::to_string(number_at(attempt, {"attempt"})), text_at(attempt, {"pod"}),
                    or_dash_of(text_at(attempt, {"node"})), text_at(attempt, {"created"}),
                    waited(attempt), run_span(attempt), ended ? attempt_counted(attempt) : "-",
                    ended ? attempt_cause(attempt) : "-"});
  }
  return rows;
}

Json trace_json(const TraceSteps& steps) {
  Json list = Json::array();
  for (const TraceStep& step : steps) {
    Json one = {{"step", step.name}, {"by", step.by_node ? "node" : "coordinator"}};
    if (!step.at.empty()) one["at"] = step.at;
    if (step.since_ms) one["sinceSeconds"] = static_cast<double>(*step.since_ms) / 1000;
    if (!step.what.empty()) one["what"] = step.what;
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace muster::cli
