// muster-planted: muster with one planted fault, so that tests can check that a drill finds it
// (tests/e2e/drill.py, standby_drill.py). There is a fault for each promise; PLANTED_FAULT selects
// one:
//
//   forgets      a restarted coordinator does not know an accepted job
//   miscounts    the end of a pod arrives with the wrong exit code
//   regresses    a restarted coordinator does not know a success, and runs the index again
//   duplicates   a pod counts as ended while it runs, so its index gets a second pod
//   drops        an agent that starts kills the pods of its predecessor
//   lingers      a coordinator goes on answering when another one may lead
//   poisons      the end of a pod of the job called "poison" crashes the coordinator
//
// The linker inserts these functions between muster's libraries (--wrap); nothing else differs.
#include "agent/agent.hpp"
#include "core/job/rules/decide.hpp"
#include "core/standby/leader.hpp"
#include "drill/process/process.hpp"
#include "storage/recovery.hpp"

#include <csignal>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <vector>

// The linker's names for a wrapped function and for its replacement.
#define MUSTER_REAL(symbol) asm("__real_" symbol)
#define MUSTER_WRAP(symbol) asm("__wrap_" symbol)

namespace muster {
namespace planted {

core::Decision real_decide(core::Job& job, const std::vector<core::Event>& events, Millis now,
                           const core::Knobs& knobs, core::Hearing& hearing)
    MUSTER_REAL(PLANTED_DECIDE);
core::Decision decide(core::Job& job, const std::vector<core::Event>& events, Millis now,
                      const core::Knobs& knobs, core::Hearing& hearing) MUSTER_WRAP(PLANTED_DECIDE);
Result<storage::Recovered> real_recover(storage::Journal& journal,
                                        const storage::LoadObject& load_object,
                                        const std::function<void(core::JobSummary)>& on_unloaded,
                                        const std::set<JobId>& aside) MUSTER_REAL(PLANTED_RECOVER);
Result<storage::Recovered> recover(storage::Journal& journal,
                                   const storage::LoadObject& load_object,
                                   const std::function<void(core::JobSummary)>& on_unloaded,
                                   const std::set<JobId>& aside) MUSTER_WRAP(PLANTED_RECOVER);
Result<int> real_run_agent(const agent::AgentOptions& options, agent::AgentControl* control)
    MUSTER_REAL(PLANTED_RUN_AGENT);
Result<int> run_agent(const agent::AgentOptions& options, agent::AgentControl* control)
    MUSTER_WRAP(PLANTED_RUN_AGENT);
Millis real_answers_until(const core::standby::Leader* leader) MUSTER_REAL(PLANTED_ANSWERS_UNTIL);
Millis answers_until(const core::standby::Leader* leader) MUSTER_WRAP(PLANTED_ANSWERS_UNTIL);

// Read at startup, since daemons remove variables from their environment.
const std::string chosen = [] {
  const char* word = std::getenv("PLANTED_FAULT");
  return std::string(word == nullptr ? "" : word);
}();

constexpr PodKey kVictim{4, 0};  // a pod of the long job, with the seed that the test uses

bool is_canary(const core::Job& job) {
  const std::string& name = job.object().meta.name;
  return name.starts_with("drill-") && name.find("-small-") == std::string::npos;
}

core::Decision decide(core::Job& job, const std::vector<core::Event>& events, Millis now,
                      const core::Knobs& knobs, core::Hearing& hearing) {
  if (chosen == "poisons" && job.object().meta.name == "poison")
    for (const core::Event& event : events)
      if (auto* report = std::get_if<core::PodsReported>(&event); report && !report->ends.empty())
        std::abort();
  if (!is_canary(job)) return real_decide(job, events, now, knobs, hearing);
  std::vector<core::Event> changed = events;
  for (core::Event& event : changed) {
    auto* report = std::get_if<core::PodsReported>(&event);
    if (report == nullptr) continue;
    if (chosen == "miscounts")
      for (auto& end : report->ends)
        if (end.pod == kVictim) end.exit_code = 77;
    if (chosen == "duplicates")
      for (const auto& start : report->starts)
        if (start.pod == kVictim) {
          core::PodsReported::Ended end;
          end.pod = kVictim;
          end.exit_code = 77;
          end.start = {start.pid.value_or(1), {}};
          report->ends.push_back(end);
        }
  }
  return real_decide(job, changed, now, knobs, hearing);
}

Result<storage::Recovered> recover(storage::Journal& journal,
                                   const storage::LoadObject& load_object,
                                   const std::function<void(core::JobSummary)>& on_unloaded,
                                   const std::set<JobId>& aside) {
  auto recovered = real_recover(journal, load_object, on_unloaded, aside);
  if (!recovered) return recovered;
  if (chosen == "forgets")
    std::erase_if(recovered->jobs, [](const storage::RecoveredJob& one) {
      return one.job.object().meta.name.ends_with("-small-1");
    });
  for (storage::RecoveredJob& one : recovered->jobs) {
    if (chosen != "regresses" || !is_canary(one.job)) continue;
    core::JobState state = one.job.state();
    if (!state.completed.empty())
      state.completed.erase(static_cast<uint32_t>(state.completed.lowest()));
    one.job = core::Job(one.job.id(), one.job.object_ptr(), std::move(state));
  }
  return recovered;
}

Millis answers_until(const core::standby::Leader* leader) {
  return chosen == "lingers" ? std::numeric_limits<Millis>::max() : real_answers_until(leader);
}

Result<int> run_agent(const agent::AgentOptions& options, agent::AgentControl* control) {
  namespace drill = cli::drill;
  if (chosen == "drops") {
    for (const pid_t pid : drill::all_pids()) {
      const std::vector<std::string> words = drill::command_of(pid);
      if (words.size() < 2 || !words[0].ends_with("muster-keeper") || words[1] != options.work_dir)
        continue;
      for (const drill::Process& pod : drill::descendants(pid)) (void)pod.send(SIGKILL);
    }
  }
  return real_run_agent(options, control);
}

}  // namespace planted
}  // namespace muster
