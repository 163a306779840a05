#include "drill/drill.hpp"

#include "base/network/address_list.hpp"
#include "base/process/own_executable.hpp"
#include "base/secret.hpp"
#include "base/version.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/follow/ephemeral.hpp"
#include "client/follow/signals.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/safe_output.hpp"
#include "client/terminal/status_line.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/values/duration.hpp"
#include "drill/jobs.hpp"
#include "drill/process/mark.hpp"
#include "drill/round.hpp"
#include "drill/running.hpp"
#include "drill/survey.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace muster::cli::drill {
namespace {

constexpr uint32_t kScratchSlots = 4;
constexpr Millis kScratchGrace = 3'000;  // for scenarios that wait until a node is lost
constexpr Millis kFinishMax = 30'000;    // until all jobs of a drill are deleted
constexpr Millis kPauseStep = 20;        // between checks for a signal

uint64_t random_number() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    number = static_cast<uint64_t>(boot_now());
  return number;
}

// Where packages install it; MUSTER_FAKETIME overrides the path.
std::string clock_library() {
  if (const char* named = std::getenv("MUSTER_FAKETIME"); named != nullptr) return named;
  for (const char* path :
       {"/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
        "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
        "/usr/lib64/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1"})
    if (access(path, R_OK) == 0) return path;
  return "";
}

bool has_fault(const Scenario& scenario, Fault fault) {
  for (const Fault one : scenario.faults)
    if (one == fault) return true;
  return false;
}

class Drill {
 public:
  Drill(const DrillOptions& options, const std::string& scenario) : o_(options), name_(scenario) {}

  int run() {
    if (Status s = prepare(); !s) return fail(kUsage, "drill: " + s.error().message);
    if (!o_.local)
      if (Status s = survey(); !s) return fail(s.error(), "drill");
    if (Status s = make_schedule(); !s) {
      withdraw();
      return fail(kUsage, "drill: " + s.error().message);
    }
    std::cout << headline() << std::endl;
    if (!o_.local && !consented()) {
      withdraw();
      return fail(kUsage, "drill: not confirmed; nothing was done");
    }
    report_.begun_ms = wall_now();
    if (o_.local) {
      auto made = Ephemeral::make("muster-drill-");
      if (!made) return fail(made.error());
      directory_.emplace(std::move(*made));
      std::error_code ignored;
      folder_ = std::filesystem::canonical(directory_->path(), ignored).string();
    }
    signals_.emplace();  // before the first thread starts
    Status done = o_.local ? Status(Nothing{}) : tidy_up();
    if (done) done = rounds();
    return conclude(done);
  }

 private:
  Status prepare() {
    Plan& plan = report_.plan;
    if (!o_.replay.empty()) {
      std::ifstream file(o_.replay);
      if (!file) return invalid("--replay: cannot read " + o_.replay);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      auto read = plan_of(read_json(text));
      if (!read) return invalid("--replay: " + o_.replay + ": " + read.error().message);
      plan = std::move(*read);
      if (plan.scenario != name_)
        return invalid("--replay: " + o_.replay + " is a drill of " + plan.scenario);
    } else {
      plan.scenario = name_;
      plan.seed = o_.seed ? *o_.seed : random_number() % 1'000'000;
      plan.times = o_.times;
      plan.nodes = o_.nodes;
      plan.coordinators = o_.coordinators;
      plan.for_ms = o_.for_ms;
      plan.canary.indexes = o_.canary;
      plan.canary.seed = plan.seed;
    }
    scenario_ = find_scenario(plan.scenario);
    const bool several = hits_lead(scenario_->faults.front());
    if (plan.coordinators == 0) plan.coordinators = several && o_.local ? 2 : 1;
    if (Status s = check_needs(); !s) return s;
    const bool waits = std::any_of(scenario_->faults.begin(), scenario_->faults.end(), [](Fault f) {
      return f == Fault::coordinator_freeze || waits_for_loss(f);
    });
    grace_ms_ = o_.local && waits ? kScratchGrace : o_.node_grace_ms;
    if (o_.local) plan.canary.parallelism = std::min(plan.canary.parallelism, plan.nodes * 4);
    report_.id = random_hex(3);
    report_.version = kVersion;
    report_.place =
        o_.local
            ? "a scratch cluster of " + std::to_string(plan.nodes) + " nodes" +
                  (several ? " and " + std::to_string(plan.coordinators) + " coordinators" : "")
            : o_.target.api;
    site_.each_address = several;
    site_.target = o_.target;
    site_.target.ns = kDrillNamespace;
    site_.binary = o_.binary;
    site_.probe_prefix = "drill-" + report_.id + "-";
    site_.pid_file = o_.pid_file;
    site_.node_grace_ms = grace_ms_;
    site_.restart_within_ms = o_.restart_within_ms;
    return Nothing{};
  }

  // Uses only the faults that are possible here.
  Status make_schedule() {
    possible_ = *scenario_;
    if (!o_.local) possible_.faults = survey_.faults;
    Plan& plan = report_.plan;
    if (plan.steps.empty()) plan.steps = schedule(possible_, plan, 0, grace_ms_);
    for (const Step& step : plan.steps)
      if (std::find(possible_.faults.begin(), possible_.faults.end(), step.fault) ==
          possible_.faults.end())
        return invalid(std::string("--replay: ") + name(step.fault) + " is not possible here");
    return Nothing{};
  }

  Status check_needs() {
    if (!o_.local)
      if (Status s = check_running(); !s) return s;
    if (has_fault(*scenario_, Fault::clock_jump)) {
      clock_library_ = clock_library();
      if (clock_library_.empty())
        return invalid(
            "clock-jump is not possible on this machine: it needs libfaketime "
            "(Debian: apt-get install faketime)");
    }
    if (Status s = check_coordinators(); !s) return s;
    if (has_fault(*scenario_, Fault::restore) && report_.plan.times != 1)
      return invalid("restore runs once per round: omit --times; --for repeats it");
    if (!has_fault(*scenario_, Fault::upgrade)) {
      if (!o_.binary.empty()) return invalid("--binary is only for upgrade");
      return Nothing{};
    }
    if (o_.binary.empty()) return invalid("upgrade needs --binary PATH, another muster");
    if (access(o_.binary.c_str(), X_OK) != 0)
      return invalid("--binary: " + o_.binary + " cannot be executed");
    return Nothing{};
  }

  Status check_coordinators() const {
    const std::string what = scenario_->name;
    const bool several = hits_lead(scenario_->faults.front());
    if (!o_.local || (!several && report_.plan.coordinators == 1)) return Nothing{};
    if (!several)
      return invalid(what +
                     " hits a coordinator that is alone: omit --coordinators; takeover, "
                     "leader-freeze, leader-cut and store-loss are for several");
    if (report_.plan.coordinators == 1)
      return invalid(what + " needs another coordinator: --coordinators 2, at least");
    if (etcd_program().empty())
      return invalid(what +
                     " is not possible on this machine: several coordinators need etcd "
                     "(Debian: apt-get install etcd-server)");
    return Nothing{};
  }

  // Running clusters only: checks that the required flags were given.
  Status check_running() const {
    const std::string what = scenario_->name;
    const bool upgrade = has_fault(*scenario_, Fault::upgrade);
    const bool restore = has_fault(*scenario_, Fault::restore);
    bool coordinator = false;
    for (const Fault fault : scenario_->faults) {
      if (const char* why = only_local(fault); why != nullptr)
        return invalid(what + " needs --local: in a running cluster, " + why);
      coordinator = coordinator || !hits_node(fault);
    }
    if (coordinator && o_.pid_file.empty())
      return invalid(what +
                     " needs --pid-file F, the pid or endpoints.json of the coordinator on "
                     "this machine, or --local");
    if (hits_lead(scenario_->faults.front()))
      if (Status s = check_leader(); !s) return s;
    if (o_.witness_dir.empty())
      return invalid(what +
                     " needs --witness-dir D, a directory that all nodes and this machine "
                     "share, or --local");
    if (upgrade && o_.hooks.switch_to.empty())
      return invalid(what +
                     " needs --switch CMD, which makes the daemons of a machine start {binary} "
                     "from now on, or --local");
    if (restore && o_.hooks.restore.empty())
      return invalid(what +
                     " needs --restore CMD, which stops the coordinator, puts {backup} in place "
                     "of its state and starts it, or --local");
    if (!upgrade && !o_.hooks.switch_to.empty()) return invalid("--switch is only for upgrade");
    if (!restore && !o_.hooks.restore.empty()) return invalid("--restore is only for restore");
    return check(hooks());
  }

  // For a takeover.
  Status check_leader() const {
    const std::string what = scenario_->name;
    if (split_addresses(o_.target.api).size() < 2)
      return invalid(what + " needs the addresses of all coordinators: --api A,B");
    if (report_.plan.times != 1)
      return invalid(what +
                     " runs once in a running cluster, whose next leader is elsewhere: omit "
                     "--times");
    if (!read_json(text_of_file(o_.pid_file)).is_object())
      return invalid(what + " needs the leader's endpoints.json as --pid-file, on its machine: " +
                     o_.pid_file + " is not one. `muster get coordinators` shows who leads");
    return Nothing{};
  }

  Hooks hooks() const {
    return {o_.hooks.on_node, o_.hooks.start, o_.hooks.switch_to, o_.hooks.restore};
  }

  // Running clusters only: checks that the drill can run here, and finds what it would hit.
  Status survey() {
    std::error_code error;
    witness_dir_ = std::filesystem::absolute(o_.witness_dir, error).string();
    auto mark = Mark::take(witness_dir_);
    if (!mark) return mark.error();
    mark_.emplace(std::move(*mark));
    if (Status s = look_around(); !s) {
      withdraw();
      return s;
    }
    return Nothing{};
  }

  // Backs out before anything was done. Keeps the mark if it records what an earlier drill left.
  void withdraw() {
    if (mark_ && mark_->left().drill.empty()) mark_->remove();
  }

  Status survey_coordinators() {
    auto lineup = lineup_of(*client_);
    if (!lineup) return lineup.error();
    if (lineup->leader.empty() || lineup->ready.size() < 2)
      return Error{Errc::conflict,
                   std::string(scenario_->name) +
                       " needs a second coordinator that is in sync, since no other one may take "
                       "over; `muster get coordinators` shows them",
                   {}};
    return Nothing{};
  }

  Status look_around() {
    // A drill that was killed together with its watcher left the coordinator stopped; nothing
    // answers until it continues.
    if (!mark_->left().drill.empty() && !o_.pid_file.empty())
      if (auto process = process_in_file(o_.pid_file, "coordinator");
          process && process->state() == 'T')
        (void)process->send(SIGCONT);
    client_ = connect(o_.target);
    if (hits_lead(scenario_->faults.front()))
      if (Status s = survey_coordinators(); !s) return s;
    auto found = survey_nodes(*client_);
    if (!found) return found.error();
    survey_ = std::move(*found);
    reach_.emplace(own_executable(), hooks(), [this] { return !signals_ || pause(0); });
    if (Status s = survey_daemons(*client_, *scenario_, o_.pid_file, *reach_, survey_); !s)
      return s;
    const Undone& undone = mark_->left();
    if (!undone.binary.empty() && o_.hooks.switch_to.empty())
      return Error{Errc::conflict,
                   "drill " + undone.drill + " was killed while daemons ran another binary than " +
                       undone.binary + "; `muster drill run upgrade` with its --switch goes back",
                   {}};
    const bool left = !undone.drill.empty() ||
                      std::any_of(survey_.nodes.begin(), survey_.nodes.end(),
                                  [](const DrillNode& n) { return at(n.seen, {"left"}) == true; });
    if (survey_.ready == 0 && !left)
      return Error{Errc::unavailable,
                   "no node with the label " + std::string(kDrillLabel) + "=true is Ready",
                   {}};
    site_.reach = &*reach_;
    site_.nodes = survey_.nodes;
    site_.backup_dir = witness_dir_ + "/" + site_.probe_prefix + "backup";
    site_.note_switch = [this](const std::string& binary) {
      switched_ = binary;
      return mark_->write({report_.id, binary});
    };
    if (o_.replay.empty()) report_.plan.nodes = static_cast<uint32_t>(survey_.nodes.size());
    site_.client = client_.get();
    report_.place = o_.target.api + ", " + std::to_string(survey_.nodes.size()) + " nodes with " +
                    kDrillLabel + "=true";
    return Nothing{};
  }

  // Undoes what a killed drill left behind.
  Status tidy_up() {
    for (const DrillNode& node : survey_.nodes)
      if (at(node.seen, {"left"}) == true)
        if (auto done = reach_->ask(node, "mend"); !done) return done.error();
    const Undone& left = mark_->left();
    if (!left.drill.empty())
      if (Status s = undo(left); !s) return s;
    tidy_ = true;
    return mark_->write({report_.id, ""});
  }

  Status undo(const Undone& left) {
    if (!left.binary.empty())
      if (Status s = Running(site_, pause_).back_to(left.binary); !s) return s;
    const std::string prefix = "drill-" + left.drill + "-";
    if (Status s = delete_jobs(*client_, kDrillNamespace, prefix, kFinishMax); !s) return s;
    remove_files(prefix);
    return Nothing{};
  }

  void remove_files(const std::string& prefix) const {
    std::error_code error;
    for (std::filesystem::directory_iterator at(witness_dir_, error), end; !error && at != end;
         at.increment(error)) {
      std::error_code ignored;
      if (at->path().filename().string().starts_with(prefix))
        std::filesystem::remove_all(at->path(), ignored);
    }
  }

  std::string headline() const {
    const Plan& plan = report_.plan;
    std::string text = "drill " + report_.id + "  " + plan.scenario + " x" +
                       std::to_string(plan.times) + "  seed " + std::to_string(plan.seed) +
                       "  on " + report_.place +
                       "  canary: " + std::to_string(plan.canary.indexes) +
                       " indexes, mostly short, some fail on purpose";
    if (plan.for_ms > 0) text += "  repeated for " + core::duration_text(plan.for_ms);
    return text;
  }

  bool consented() const {
    const Undone& left = mark_->left();
    if (!left.drill.empty())
      std::cout << "  first      clean up after drill " << left.drill
                << ", which was killed: delete its jobs"
                << (left.binary.empty() ? "" : ", and --switch to " + left.binary) << "\n";
    for (const DrillNode& node : survey_.nodes)
      if (at(node.seen, {"left"}) == true)
        std::cout << "  first      clean up after an earlier drill on " << node.name << "\n";
    for (const std::string& line : plan_lines(survey_, hooks(), witness_dir_))
      std::cout << line << "\n";
    std::cout << std::flush;
    if (o_.yes) return true;
    if (!isatty(STDIN_FILENO)) {
      std::cerr << "muster: drill: standard input is not a terminal: --yes confirms the plan\n";
      return false;
    }
    std::cout << "Go on? [y/N] " << std::flush;
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "yes";
  }

  bool pause(Millis span_ms) {
    const Millis until = boot_now() + span_ms;
    do {
      const Millis left = std::max<Millis>(until - boot_now(), 0);
      if (signals_->next(std::min(left, kPauseStep)) != 0) interrupted_ = true;
    } while (!interrupted_ && boot_now() < until);
    return !interrupted_;
  }

  Status rounds() {
    if (o_.local) {
      auto made = Scratch::start({.dir = folder_,
                                  .executable = own_executable(),
                                  .nodes = report_.plan.nodes,
                                  .slots = kScratchSlots,
                                  .grace_ms = grace_ms_,
                                  .relayed = has_fault(*scenario_, Fault::partition),
                                  .clock_lib = clock_library_,
                                  .coordinators = report_.plan.coordinators,
                                  .relayed_store = has_fault(*scenario_, Fault::leader_cut)},
                                 [this] { return !pause(0); });
      if (!made) return made.error();
      scratch_ = std::move(*made);
      site_.scratch = scratch_.get();
      site_.target.api = scratch_->api();
      site_.target.origin = "the scratch cluster";
      site_.client = &scratch_->client();
    }
    if (o_.baseline) {
      auto calm = one_round("calm", {});
      if (!calm) return calm.error();
      report_.calm_ms = calm->took_ms;
    }
    const Millis begin = boot_now();
    for (uint32_t number = 0;; ++number) {
      const std::vector<Step> steps =
          number == 0 ? report_.plan.steps : schedule(possible_, report_.plan, number, grace_ms_);
      auto round = one_round(std::to_string(number), steps);
      if (!round) return round.error();
      report_.rounds.push_back(std::move(*round));
      if (report_.verdict() == Verdict::broken) break;  // while the evidence is fresh
      if (boot_now() - begin >= report_.plan.for_ms) break;
    }
    return Nothing{};
  }

  Result<Round> one_round(const std::string& number, std::vector<Step> steps) {
    const std::string base = o_.local ? scratch_->witness_dir() : witness_dir_;
    RoundSettings settings;
    settings.site = site_;
    settings.canary = report_.plan.canary;
    settings.steps = std::move(steps);
    settings.job = "drill-" + report_.id + "-" + number;
    settings.witness_dir = base + "/" + settings.job;
    settings.executable = own_executable();
    if (!o_.local) settings.node_labels = {{kDrillLabel, "true"}};
    if (mkdir(settings.witness_dir.c_str(), 0777) != 0)
      return Error{Errc::unavailable, "cannot make " + settings.witness_dir, {}};
    StatusLine line(boot_now(), o_.target.color);
    RoundRun round(std::move(settings), pause_,
                   [&line](const Progress& progress) { show(line, progress); });
    return round.run();
  }

  static void show(StatusLine& line, const Progress& p) {
    const Millis now = boot_now();
    const std::string faults = p.of_faults == 0 ? ""
                                                : std::to_string(p.faults) + "/" +
                                                      std::to_string(p.of_faults) + " faults  ";
    line.show(now, faults + p.now, [&] {
      const std::string bar =
          line.terminal() ? bar_text(std::min(p.ended, p.of_ended), p.of_ended) : "";
      return bar + faults + "canary " + std::to_string(p.ended) + "/" + std::to_string(p.of_ended) +
             " ends  " + p.now + "  " + clock_span(line.elapsed(now));
    });
  }

  int conclude(const Status& done) {
    scratch_.reset();  // returns once its processes have ended
    const bool broken = report_.verdict() == Verdict::broken;
    if (directory_) {
      if (broken || (!done && !interrupted_)) {
        directory_->keep(true);
        report_.kept = directory_->path();
      } else {
        directory_->remove();
      }
    }
    Status left = Nothing{};
    if (!o_.local) left = leave_nothing(broken);
    if (interrupted_)
      return fail(kInterrupted, o_.local ? "drill: interrupted; the scratch cluster is gone"
                                : left
                                    ? "drill: interrupted; everything was cleaned up"
                                    : "drill: interrupted; " + left.error().message +
                                          "; the next drill with this --witness-dir tries again");
    if (!left) std::cerr << "muster: drill: " << left.error().message << "\n";
    if (!done) {
      if (!report_.kept.empty()) std::cerr << "the evidence is kept in " << report_.kept << "\n";
      return fail(kUnproven, "drill: inconclusive: " + done.error().message);
    }
    auto saved = save(report_, o_.report_dir);
    if (o_.output == Output::json)
      std::cout << dumped(to_json(report_), 2) << "\n";
    else
      raw_out() << "\n" << summary(report_, Paint(o_.target.color, STDOUT_FILENO));
    if (!report_.kept.empty()) std::cerr << "the evidence is kept in " << report_.kept << "\n";
    if (!saved) return fail(saved.error());
    if (o_.output != Output::json)
      std::cout << "\nreport   " << *saved << ".{md,json,xml}\nagain    muster drill run "
                << report_.plan.scenario << (o_.local ? " --local" : "") << " --replay " << *saved
                << ".json" << std::endl;
    switch (report_.verdict()) {
      case Verdict::held:
        return kDone;
      case Verdict::broken:
        return kFailed;
      case Verdict::inconclusive:
        return kUnproven;
    }
    return kUnproven;
  }

  // Cleans up a running cluster, but keeps the witnesses if something is broken. unavailable: says
  // what is left; the mark stays for the next drill.
  Status leave_nothing(bool broken) {
    if (!tidy_) return Nothing{};  // nothing to clean up
    if (broken) report_.kept = witness_dir_;
    remove_files(site_.probe_prefix + (broken ? "backup" : ""));
    if (Status s = delete_jobs(*client_, kDrillNamespace, site_.probe_prefix, kFinishMax); !s)
      return s;
    if (!switched_.empty())
      return Error{Errc::unavailable, "daemons could not go back to " + switched_, {}};
    mark_->remove();
    return Nothing{};
  }

  const DrillOptions& o_;
  const std::string& name_;  // of the scenario
  Report report_;
  const Scenario* scenario_ = nullptr;
  Site site_;
  Millis grace_ms_ = 0;
  Scenario possible_{};                 // the scenario with only the faults possible here
  std::string clock_library_, folder_;  // of the scratch cluster
  std::string witness_dir_;             // for a running cluster; absolute
  std::optional<Mark> mark_;            // for a running cluster, like the next four
  std::optional<Reach> reach_;
  Survey survey_;
  bool tidy_ = false;     // what an earlier drill left has been undone
  std::string switched_;  // the binary to go back to while another one runs
  const Pause pause_ = [this](Millis span_ms) { return pause(span_ms); };
  std::optional<Ephemeral> directory_;
  std::optional<Signals> signals_;
  std::unique_ptr<ApiClient> client_;
  std::unique_ptr<Scratch> scratch_;
  bool interrupted_ = false;
};

}  // namespace

int run_drills(const DrillOptions& options) {
  int worst = kDone;
  for (const std::string& scenario : options.scenarios) {
    if (options.scenarios.size() > 1) std::cerr << "==> " << scenario << " <==" << std::endl;
    const int code = Drill(options, scenario).run();
    if (code != kDone && code != kFailed && code != kUnproven) return code;
    if (worst != kFailed && code != kDone) worst = code;
  }
  return worst;
}

}  // namespace muster::cli::drill
