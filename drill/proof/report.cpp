#include "drill/proof/report.hpp"

#include "base/printable.hpp"
#include "base/text/time_text.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace muster::cli::drill {
namespace {

std::string seconds(Millis span_ms) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", static_cast<double>(span_ms) / 1'000);
  return text;
}

std::string spans(const std::vector<Millis>& sorted) {
  return seconds(sorted[sorted.size() / 2]) + " median, " + seconds(sorted.back()) + " worst";
}

Json to_json(const std::vector<Millis>& sorted) {
  if (sorted.empty()) return Json::object();
  return {{"medianMs", sorted[sorted.size() / 2]}, {"worstMs", sorted.back()}};
}

std::string count(uint64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

// The sums over all rounds.
struct Totals {
  uint64_t injected = 0, confirmed = 0, witnessed = 0, counted = 0, disturbed = 0, excused = 0;
  uint64_t logs = 0, on_disk = 0, accepted = 0, forgotten = 0, reads = 0;
  uint64_t broken[kPromises] = {};
  Millis late_ms = 0, took_ms = 0;
  std::vector<Millis> down, accept, end;  // sorted: until a read, a submission, an end
  bool several = false;                   // coordinators

  explicit Totals(const Report& report) {
    for (const Round& round : report.rounds) {
      for (const Injected& fault : round.faults) {
        ++injected;
        confirmed += fault.confirmed ? 1 : 0;
        if (fault.down_ms) down.push_back(*fault.down_ms);
        if (fault.accepted_ms) accept.push_back(*fault.accepted_ms);
        if (fault.counted_ms) end.push_back(*fault.counted_ms);
        several = several || hits_lead(fault.fault);
      }
      const Judgement& j = round.judgement;
      witnessed += j.witnessed;
      counted += j.counted;
      disturbed += j.disturbed;
      excused += j.excused;
      logs += j.logs;
      on_disk += round.logs_on_disk;
      late_ms = std::max(late_ms, j.backoff_late_ms);
      took_ms = std::max(took_ms, round.took_ms);
      accepted += round.accepted;
      forgotten += round.forgotten;
      reads += round.reads;
      for (const Finding& finding : j.findings)
        broken[static_cast<int>(finding.promise)] += finding.count;
    }
    for (std::vector<Millis>* sorted : {&down, &accept, &end})
      std::sort(sorted->begin(), sorted->end());
  }
  bool ok(Promise promise) const { return broken[static_cast<int>(promise)] == 0; }
  std::string of(Promise promise) const {
    return std::to_string(broken[static_cast<int>(promise)]);
  }
};

// Label, finding and its evidence.
std::vector<std::vector<std::string>> rows_of(const Report& report) {
  const Totals t(report);
  std::vector<std::vector<std::string>> rows;
  const auto add = [&rows](std::string label, std::string what, std::string why) {
    rows.push_back({std::move(label), std::move(what), std::move(why)});
  };
  add("fault",
      count(t.injected, "fault") + " injected, " + std::to_string(t.confirmed) + " confirmed",
      report.rounds.empty() || report.rounds[0].faults.empty()
          ? ""
          : report.rounds[0].faults.back().proof);
  add("lost", t.of(Promise::nothing_lost) + " terminations",
      count(t.witnessed, "end") + " witnessed, " + std::to_string(t.counted) + " counted" +
          (t.disturbed > 0 ? ", " + count(t.disturbed, "attempt") + " ended by faults" : "") +
          (t.excused > 0 ? ", " + std::to_string(t.excused) + " between backup and restore" : ""));
  add("twice", t.of(Promise::counted_once), "no attempt started or counted twice");
  add("invented", t.of(Promise::nothing_invented), "nothing counted without a witness");
  add("resurrected", t.of(Promise::stays_succeeded), "no succeeded index ran again");
  add("two live", t.of(Promise::one_live), "no index had two live pods unless its node was lost");
  add("outlived", t.of(Promise::outlives_managers) + " pods died",
      "pods outlive coordinator and agent");
  add("went back", t.of(Promise::never_back), "status read " + count(t.reads, "time"));
  std::string outcome;
  for (const Round& round : report.rounds) {
    if (!outcome.empty()) break;
    outcome =
        "succeeded " + (round.shown.succeeded.empty() ? "none" : round.shown.succeeded.text());
    outcome += "  failed " + (round.shown.failed.empty() ? "none" : round.shown.failed.text());
  }
  const bool predicted = t.ok(Promise::as_predicted) && t.ok(Promise::backoff_kept);
  add("result", predicted ? "as predicted" : "not as predicted",
      cut(outcome, 60) + "; latest retry " + std::to_string(t.late_ms) + " ms after its backoff");
  add("logs", t.ok(Promise::logs_complete) ? "complete" : t.of(Promise::logs_complete) + " damaged",
      count(t.logs, "attempt") + ", each byte compared" +
          (t.on_disk > 0 ? "; " + std::to_string(t.on_disk) + " read on nodes that were lost"
                         : ""));
  if (t.several)
    add("two leaders", t.of(Promise::one_leads) + " answers",
        "no coordinator answered once another one had taken over");
  add("serving", t.down.empty() ? "not measured" : "down " + spans(t.down),
      "accepted and forgotten submissions: " + std::to_string(t.forgotten) + " of " +
          std::to_string(t.accepted));
  if (!t.accept.empty())
    add("accepting", "down " + spans(t.accept),
        t.end.empty() ? "" : "an end of a pod counted after " + spans(t.end));
  if (report.calm_ms)
    add("cost", seconds(t.took_ms) + " for the canary",
        "without faults " + seconds(*report.calm_ms));
  add("recount", t.ok(Promise::state_sound) ? "sound" : "NOT SOUND",
      "the coordinator verified its own state");
  return rows;
}

std::string verdict_text(const Report& report) {
  std::string text = name(report.verdict());
  if (report.verdict() != Verdict::broken) return text;
  for (const Round& round : report.rounds)
    if (!round.judgement.findings.empty())
      return text + ": " + round.judgement.findings.front().text;
  return text;
}

// What is broken or in doubt, line by line.
std::vector<std::string> remarks(const Report& report, const std::string& indent) {
  std::vector<std::string> lines;
  for (const Round& round : report.rounds) {
    for (const Finding& finding : round.judgement.findings) {
      lines.push_back(std::string(name(finding.promise)) + ": " + finding.text + " (" + round.job +
                      ")");
      for (const std::string& fact : finding.facts) lines.push_back(indent + fact);
    }
    for (const std::string& doubt : round.judgement.doubts) lines.push_back("not proven: " + doubt);
  }
  return lines;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t')
      out += '?';
    else
      out += c;
  }
  return out;
}

std::string title(const Report& report) {
  return report.plan.scenario + " x" + std::to_string(report.plan.times) + "  seed " +
         std::to_string(report.plan.seed) + "  on " + report.place + "  canary " +
         std::to_string(report.plan.canary.indexes) + " indexes";
}

}  // namespace

Verdict Report::verdict() const {
  Verdict worst = rounds.empty() ? Verdict::inconclusive : Verdict::held;
  for (const Round& round : rounds) {
    if (round.judgement.verdict == Verdict::broken) return Verdict::broken;
    if (round.judgement.verdict == Verdict::inconclusive) worst = Verdict::inconclusive;
  }
  return worst;
}

std::string summary(const Report& report, const Paint& paint) {
  std::string verdict = verdict_text(report);
  verdict = report.verdict() == Verdict::held ? paint.green(verdict) : paint.red(verdict);
  std::string text = "VERDICT   " + verdict + "\n";
  for (const std::string& line : remarks(report, "  ")) text += "  " + visible(line) + "\n";
  return text + "\n" + aligned(rows_of(report), " ");
}

Json to_json(const Report& report) {
  Json rounds = Json::array();
  for (const Round& round : report.rounds) {
    Json faults = Json::array(), findings = Json::array();
    for (const Injected& fault : round.faults) {
      Json one = {{"fault", name(fault.fault)}, {"confirmed", fault.confirmed},
                  {"proof", fault.proof},       {"atMs", fault.at_ms},
                  {"untilMs", fault.until_ms},  {"inFlight", fault.in_flight}};
      if (!fault.node.empty()) one["node"] = fault.node;
      if (fault.down_ms) one["downMs"] = *fault.down_ms;
      if (fault.accepted_ms) one["acceptedMs"] = *fault.accepted_ms;
      if (fault.counted_ms) one["countedMs"] = *fault.counted_ms;
      if (!fault.absent.empty()) one["absent"] = fault.absent;
      faults.push_back(std::move(one));
    }
    const Judgement& j = round.judgement;
    for (const Finding& finding : j.findings)
      findings.push_back({{"promise", name(finding.promise)},
                          {"count", finding.count},
                          {"text", finding.text},
                          {"facts", finding.facts}});
    rounds.push_back({{"job", round.job},
                      {"verdict", name(j.verdict)},
                      {"tookMs", round.took_ms},
                      {"faults", std::move(faults)},
                      {"findings", std::move(findings)},
                      {"doubts", j.doubts},
                      {"witnessed", j.witnessed},
                      {"counted", j.counted},
                      {"disturbed", j.disturbed},
                      {"excused", j.excused},
                      {"logs", j.logs},
                      {"logsOnDisk", round.logs_on_disk},
                      {"statusReads", round.reads},
                      {"accepted", round.accepted},
                      {"forgotten", round.forgotten},
                      {"backoffLateMs", j.backoff_late_ms},
                      {"succeededIndexes", round.shown.succeeded.text()},
                      {"failedIndexes", round.shown.failed.text()},
                      {"failedPods", round.shown.failed_pods},
                      {"predicted",
                       {{"succeededIndexes", j.expected.succeeded.text()},
                        {"failedIndexes", j.expected.failed.text()},
                        {"failedPods", j.expected.failed_pods},
                        {"condition", j.expected.condition}}}});
  }
  const Totals t(report);
  Json out = {{"drill", report.id},
              {"version", report.version},
              {"begun", time_text(report.begun_ms)},
              {"place", report.place},
              {"verdict", name(report.verdict())},
              {"plan", to_json(report.plan)},
              {"down", to_json(t.down)},
              {"rounds", std::move(rounds)}};
  if (!t.accept.empty()) out["accepting"] = to_json(t.accept);
  if (!t.end.empty()) out["counting"] = to_json(t.end);
  if (report.calm_ms) out["withoutFaultsMs"] = *report.calm_ms;
  if (!report.kept.empty()) out["evidence"] = report.kept;
  return out;
}

std::string markdown(const Report& report) {
  std::ostringstream out;
  out << "# Drill " << report.id << ": " << verdict_text(report) << "\n\n"
      << title(report) << ", begun " << time_text(report.begun_ms) << ", muster " << report.version
      << ".\n\n| checked | found | evidence |\n| --- | --- | --- |\n";
  for (const auto& row : rows_of(report))
    out << "| " << row[0] << " | " << row[1] << " | " << one_line(row[2]) << " |\n";
  if (const auto lines = remarks(report, "- "); !lines.empty()) {
    out << "\n## Findings\n\n";
    for (const std::string& line : lines)
      out << (line.starts_with("- ") ? "  " + line : "- " + line) << "\n";
  }
  out << "\n## Faults\n\n| at | fault | node | in flight | confirmed | proof | down |\n"
      << "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Round& round : report.rounds) {
    for (const Injected& fault : round.faults)
      out << "| " << fault.at_ms << " ms | " << name(fault.fault) << " | "
          << (fault.node.empty() ? "-" : fault.node) << " | " << fault.in_flight << " | "
          << (fault.confirmed ? "yes" : "no") << " | " << one_line(fault.proof) << " | "
          << (fault.down_ms ? seconds(*fault.down_ms) : "-") << " |\n";
  }
  out << "\nTimes are on the boot clock. To repeat this schedule: `muster drill run "
      << report.plan.scenario << " --replay muster-drill-" << report.id << ".json`.\n";
  if (!report.kept.empty()) out << "\nThe evidence is kept in `" << report.kept << "`.\n";
  return out.str();
}

std::string junit(const Report& report) {
  std::ostringstream cases;
  size_t failures = 0, skipped = 0;
  const Totals totals(report);
  const Verdict verdict = report.verdict();
  for (int i = 0; i < kPromises; ++i) {
    const auto promise = static_cast<Promise>(i);
    cases << "  <testcase classname=\"muster.drill." << escaped(report.plan.scenario)
          << "\" name=\"" << escaped(name(promise)) << "\"";
    if (!totals.ok(promise)) {
      ++failures;
      cases << ">\n    <failure message=\"BROKEN\">";
      for (const Round& round : report.rounds)
        for (const Finding& finding : round.judgement.findings)
          if (finding.promise == promise)
            for (const std::string& fact : finding.facts) cases << escaped(fact) << "\n";
      cases << "</failure>\n  </testcase>\n";
    } else if (verdict == Verdict::inconclusive) {
      ++skipped;
      cases << ">\n    <skipped message=\"INCONCLUSIVE\"/>\n  </testcase>\n";
    } else {
      cases << "/>\n";
    }
  }
  std::ostringstream out;
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"muster drill "
      << escaped(report.id) << "\" tests=\"" << kPromises << "\" failures=\"" << failures
      << "\" skipped=\"" << skipped << "\" timestamp=\"" << time_text(report.begun_ms) << "\">\n"
      << cases.str() << "</testsuite>\n";
  return out.str();
}

Result<std::string> save(const Report& report, const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  const std::string begin = (std::filesystem::path(dir) / ("muster-drill-" + report.id)).string();
  const std::pair<const char*, std::string> files[] = {{".md", markdown(report)},
                                                       {".json", dumped(to_json(report), 2) + "\n"},
                                                       {".xml", junit(report)}};
  for (const auto& [suffix, text] : files) {
    std::ofstream file(begin + suffix, std::ios::binary);
    file << text;
    file.close();
    if (!file) return Error{Errc::unavailable, "cannot write " + begin + suffix, {}};
  }
  return begin;
}

Result<std::string> history(const std::string& dir) {
  std::vector<std::vector<std::string>> rows;
  std::error_code error;
  for (std::filesystem::directory_iterator at(dir, error), end; !error && at != end;
       at.increment(error)) {
    const std::string file = at->path().filename().string();
    if (!file.starts_with("muster-drill-") || !file.ends_with(".json")) continue;
    std::ifstream in(at->path());
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const Json json = read_json(text);
    if (!json.is_object() || text_at(json, {"drill"}).empty()) continue;
    const Json& down = cli::at(json, {"down", "worstMs"});
    rows.push_back({text_at(json, {"begun"}), text_at(json, {"drill"}),
                    text_at(json, {"plan", "scenario"}),
                    std::to_string(number_at(json, {"plan", "times"})),
                    std::to_string(number_at(json, {"plan", "seed"})), text_at(json, {"verdict"}),
                    down.is_number_integer() ? seconds(down.get<Millis>()) : "-"});
  }
  if (error) return Error{Errc::not_found, "cannot read " + dir + ": " + error.message(), {}};
  std::sort(rows.begin(), rows.end());
  rows.insert(rows.begin(), {"BEGUN", "DRILL", "SCENARIO", "TIMES", "SEED", "VERDICT", "DOWN"});
  return aligned(rows, "");
}

}  // namespace muster::cli::drill
