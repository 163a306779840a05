// Report: what a drill found, as a summary for the terminal, Markdown for people, JSON for programs
// and `--replay`, and JUnit for CI. Pure, except for save() and history().
#pragma once

#include "base/result.hpp"
#include "base/text/json.hpp"
#include "client/terminal/color.hpp"
#include "drill/proof/judge.hpp"
#include "drill/proof/scenario.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::cli::drill {

// One canary and the faults injected while it ran.
struct Round {
  std::string job;
  Millis took_ms = 0;  // from its creation to its end
  std::vector<Injected> faults;
  Judgement judgement;
  Shown shown;
  uint32_t accepted = 0, forgotten = 0;  // small submissions
  uint64_t reads = 0;                    // of the status
  uint64_t logs_on_disk = 0;             // logs that the API no longer serves
};

struct Report {
  std::string id;
  std::string version;  // of muster
  Millis begun_ms = 0;  // wall clock
  std::string place;    // "a scratch cluster of 3 nodes"
  Plan plan;
  std::optional<Millis> calm_ms;  // the same canary without faults
  std::vector<Round> rounds;
  std::string kept;  // where the evidence is; empty: it was removed

  Verdict verdict() const;
};

// The verdict, remarks and results for the terminal; by default not colored.
std::string summary(const Report& report, const Paint& paint = {});
Json to_json(const Report& report);
std::string markdown(const Report& report);
std::string junit(const Report& report);

// Writes DIR/muster-drill-ID.{md,json,xml}; returns their common prefix.
Result<std::string> save(const Report& report, const std::string& dir);
// A table of the reports in a directory, oldest first.
Result<std::string> history(const std::string& dir);

}  // namespace muster::cli::drill
