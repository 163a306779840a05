// RoundRun: runs one canary under the faults of a schedule, collects the evidence and judges it.
#pragma once

#include "client/connect/http.hpp"
#include "drill/faults.hpp"
#include "drill/observer.hpp"
#include "drill/proof/judge.hpp"
#include "drill/proof/report.hpp"
#include "drill/proof/scenario.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::cli::drill {

// What the progress line shows.
struct Progress {
  size_t faults = 0, of_faults = 0;
  uint32_t ended = 0, of_ended = 0;  // attempts
  std::string now;                   // "coordinator-kill", "settling"
};

struct RoundSettings {
  Site site;
  Canary canary;
  std::vector<Step> steps;  // empty: a calm round, for comparison
  std::string job;          // name of the canary
  std::string witness_dir;  // of this round; exists
  std::string executable;   // muster, on the nodes
  std::vector<std::pair<std::string, std::string>> node_labels;
};

class RoundRun {
 public:
  // `pause` sleeps and returns false once the user has interrupted the drill.
  using Show = std::function<void(const Progress&)>;
  RoundRun(RoundSettings settings, Pause pause, Show show);

  // unavailable: the canary could not be submitted or the drill was interrupted.
  Result<Round> run();

 private:
  bool wait_for_ends(uint32_t ends);
  bool wait_for_job();
  bool look();  // supervises, reads the witnesses, shows progress; false: interrupted
  uint32_t in_flight() const;
  void collect(Evidence& evidence);
  void read_shown(Evidence& evidence);
  void read_logs(Evidence& evidence);
  std::optional<std::string> log_on_disk(const CountedAttempt& attempt, const Evidence& evidence);
  void check_accepted(Evidence& evidence);
  void recount(Evidence& evidence);
  void clean_up();

  const RoundSettings settings_;
  const Pause pause_;
  const Show show_;
  ApiClient& client_;
  Injector injector_;
  std::unique_ptr<Observer> observer_;
  Testimony testimony_;
  Progress progress_;
  std::vector<std::string> doubts_;
  std::string job_uid_;
  std::map<std::string, Json> node_logs_;  // from nodes of a running cluster, by pod
};

}  // namespace muster::cli::drill
