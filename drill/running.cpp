#include "drill/running.hpp"

#include "client/connect/objects.hpp"
#include "client/terminal/text.hpp"
#include "drill/jobs.hpp"
#include "drill/lead_faults.hpp"
#include "drill/process/standbys.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace muster::cli::drill {
namespace {

constexpr char kUnreachableTaint[] = "node.kubernetes.io/unreachable";
constexpr Millis kHitMax = 60'000;    // until a hand answers
constexpr Millis kReplaced = 1'000;   // until a lost node's pods are placed elsewhere
constexpr Millis kHookMax = 600'000;  // for a command of the operator
constexpr Millis kLookNode = 50;      // between checks of a node
constexpr Millis kStarted = 100;      // between checks whether a daemon is back
constexpr useconds_t kStubbornUs = 50'000;

std::string process_text(const Json& process) {
  return "pid " + std::to_string(number_at(process, {"pid"})) + ", started at tick " +
         std::to_string(number_at(process, {"ticks"}));
}

// Lost according to the coordinator, not merely silent: the coordinator may be down.
bool is_lost(const Json& node) {
  for (const Json& taint : at(node, {"spec", "taints"}))
    if (text_at(taint, {"key"}) == kUnreachableTaint) return true;
  return false;
}

bool same(const Json& a, const Json& b) {
  return number_at(a, {"pid"}) == number_at(b, {"pid"}) &&
         number_at(a, {"ticks"}) == number_at(b, {"ticks"});
}

// The coordinator that has files in this data-dir open.
std::optional<Process> coordinator_in(const std::filesystem::path& data_dir) {
  std::error_code error;
  const std::string below = std::filesystem::canonical(data_dir, error).string() + "/";
  for (const pid_t pid : all_pids()) {
    const std::vector<std::string> words = command_of(pid);
    if (words.size() < 2 || words[1] != "coordinator") continue;
    const std::string fds = "/proc/" + std::to_string(pid) + "/fd";
    std::error_code failed;
    for (std::filesystem::directory_iterator at(fds, failed), end; !failed && at != end;
         at.increment(failed)) {
      std::error_code gone;
      if (!std::filesystem::read_symlink(at->path(), gone).string().starts_with(below)) continue;
      if (auto process = Process::open(pid)) return std::move(*process);
      break;
    }
  }
  return std::nullopt;
}

}  // namespace

bool Running::rest(bool stubborn) {
  if (!stubborn) return pause_(kLook);
  usleep(kStubbornUs);
  return true;
}

Result<Process> Running::coordinator() const {
  return process_in_file(site_.pid_file, "coordinator");
}

Result<Process> Running::successor(const Process& before, bool stubborn) {
  for (const Millis until = boot_now() + site_.restart_within_ms;
       boot_now() < until && rest(stubborn);) {
    auto after = coordinator();
    if (after && differ(before, *after)) return after;
  }
  return unavailable(
      "the coordinator, " + before.name() + ", ended, and nothing restarted it within " +
      short_span(site_.restart_within_ms) + ": " + site_.pid_file + " names no new process");
}

bool Running::ready(const std::string& node) {
  auto one = object(*site_.client, object_path(Kind::node, "", node));
  return one && !condition_of(*one, "Ready").is_null();
}

bool Running::wait_lost(const std::string& node, Millis patience_ms) {
  for (const Millis until = boot_now() + patience_ms; boot_now() < until;) {
    auto one = object(*site_.client, object_path(Kind::node, "", node));
    if (one && is_lost(*one)) return true;
    if (!pause_(kLookNode)) break;
  }
  return false;
}

Status Running::wait_ready(const std::string& node) {
  for (const Millis until = boot_now() + site_.restart_within_ms; boot_now() < until;) {
    if (ready(node)) return Nothing{};
    if (!pause_(kLookNode)) break;
  }
  return unavailable("node " + node + " was not Ready again within " +
                     short_span(site_.restart_within_ms));
}

Result<Json> Running::returned(const DrillNode& node, const char* what, const Json& before,
                               bool stubborn) {
  for (const Millis until = boot_now() + site_.restart_within_ms; boot_now() < until;) {
    auto seen = site_.reach->ask(node, "look");
    if (seen && seen->contains(what) && !same(at(*seen, {what}), before)) return seen;
    if (stubborn)
      usleep(kStubbornUs);
    else if (!pause_(kStarted))
      break;
  }
  const std::string hint = site_.reach->hooks().start.empty()
                               ? "; use --start CMD to restart it there"
                               : " after --start";
  return unavailable("the " + std::string(what) + " of " + node.name + ", " + process_text(before) +
                     ", ended, and no other runs there after " +
                     short_span(site_.restart_within_ms) + hint);
}

void Running::hit(const Step& step, Observer& observer, Injected& out) {
  switch (step.fault) {
    case Fault::coordinator_kill:
      return kill_coordinator(out);
    case Fault::coordinator_freeze:
      if (auto process = coordinator(); process)
        freeze(*process, step.hold_ms, pause_, out);
      else
        out.proof = process.error().message;
      return;
    case Fault::disk_full:
      return fill_disk(step, out);
    case Fault::agent_kill:
    case Fault::agent_freeze:
    case Fault::keeper_kill:
    case Fault::node_loss:
    case Fault::partition:
      return hit_node(step, out);
    case Fault::upgrade:
      return upgrade(step, out);
    case Fault::restore:
      return restore(step, observer, out);
    case Fault::takeover:
    case Fault::leader_freeze:
      return hit_leader(step, observer, out);
    case Fault::clock_jump:
    case Fault::leader_cut:
    case Fault::store_loss:
      out.proof = only_local(step.fault);
      return;
  }
}

void Running::kill_coordinator(Injected& out) {
  auto before = coordinator();
  if (!before) return void(out.proof = before.error().message);
  if (Status s = before->send(SIGKILL); !s) return void(out.proof = s.error().message);
  if (!before->wait_gone(kGoneMax)) return void(out.proof = before->name() + " did not end");
  out.at_ms = boot_now();
  out.confirmed = true;
  auto after = successor(*before);
  out.proof = after ? change(*before, *after) : before->name() + " is gone";
  if (!after) out.absent = after.error().message;
}

void Running::fill_disk(const Step& step, Injected& out) {
  auto process = coordinator();
  if (!process) return void(out.proof = process.error().message);
  if (!fill_disk_of(*process, step.hold_ms, site_, pause_, probes_, out)) return;
  auto after = successor(*process);
  if (after) return void(out.proof += "; " + change(*process, *after));
  out.absent = after.error().message;
}

void Running::hit_node(const Step& step, Injected& out) {
  const Reach& reach = *site_.reach;
  const DrillNode& node = site_.nodes[step.node % site_.nodes.size()];
  out.node = node.name;
  auto before = reach.ask(node, "look");
  if (!before) return void(out.proof = node.name + ": " + before.error().message);
  out.at_ms = boot_now();  // no later than the fault
  auto command = reach.begin(node, name(step.fault));
  if (!command) return void(out.proof = command.error().message);
  auto hit = reach.answer(*command, kHitMax, false);
  if (!hit) return void(out.proof = node.name + ": " + hit.error().message);
  bool lost = true;
  if (waits_for_loss(step.fault)) {
    lost = wait_lost(node.name, 3 * site_.node_grace_ms + kHitMax);
    if (lost && !pause_(kReplaced)) return;
  }
  // Revert the fault before anything else, even if the user interrupts.
  command->write("\n");
  auto done = reach.answer(*command, kHitMax, true);
  if (!done) return void(out.proof = node.name + ": " + done.error().message);
  out.confirmed = at(*done, {"confirmed"}) == true && lost;
  out.proof = node.name + ": " + text_at(*done, {"proof"});
  if (!lost) out.proof += "; the coordinator did not declare the node lost";
  const bool agent = step.fault == Fault::agent_kill || step.fault == Fault::node_loss;
  const bool keeper = step.fault == Fault::keeper_kill;
  const auto failed = [&out](const Error& error) { out.absent = error.message; };
  const std::string& start = reach.hooks().start;
  if (agent && !start.empty())
    if (Status s = reach.run(&node, start, kHookMax); !s) return failed(s.error());
  if (agent || keeper) {
    const char* what = agent ? "agent" : "keeper";
    auto after = returned(node, what, at(*before, {what}));
    if (!after) return failed(after.error());
    out.proof +=
        "; " + process_text(at(*before, {what})) + " became " + process_text(at(*after, {what}));
  }
  if (Status s = wait_ready(node.name); !s) failed(s.error());
}

// Restarts coordinator and agents one by one. `stubborn`: even if the user interrupts.
bool Running::restart_with(const std::string& binary, bool stubborn, Injected& out) {
  const Reach& reach = *site_.reach;
  const auto fail = [&out](const Error& error) {
    out.proof = error.message;
    return false;
  };
  const std::string digest = digest_of(binary);
  const std::string command = filled(reach.hooks().switch_to, "{binary}", binary);
  if (Status s = reach.run(nullptr, command, kHookMax, stubborn); !s) return fail(s.error());
  for (const DrillNode& node : site_.nodes)
    if (!node.here)
      if (Status s = reach.run(&node, command, kHookMax, stubborn); !s) return fail(s.error());
  auto before = coordinator();
  if (!before) return fail(before.error());
  (void)before->send(SIGTERM);
  if (!before->wait_gone(kGoneMax)) return fail(unavailable(before->name() + " did not end"));
  if (out.proof.empty()) out.at_ms = boot_now();  // first switch, not the one back
  auto after = successor(*before, stubborn);
  if (!after) return fail(after.error());
  bool all = digest_of(*after) == digest;
  std::string wrong = all ? "" : "the coordinator runs " + after->executable();
  for (const DrillNode& node : site_.nodes) {
    auto seen = reach.ask(node, "look");
    if (!seen) return fail(seen.error());
    if (auto left = reach.ask(node, "leave"); !left) return fail(left.error());
    const std::string& start = reach.hooks().start;
    if (!start.empty())
      if (Status s = reach.run(&node, start, kHookMax, stubborn); !s) return fail(s.error());
    auto back = returned(node, "agent", at(*seen, {"agent"}), stubborn);
    if (!back) return fail(back.error());
    auto runs = reach.ask(node, "digest");
    if (!runs || text_at(*runs, {"sha256"}) != digest) {
      all = false;
      wrong += (wrong.empty() ? "" : ", ") + ("the agent of " + node.name) + " runs " +
               text_at(*back, {"agent", "executable"});
    }
  }
  if (!stubborn)
    for (const DrillNode& node : site_.nodes)
      if (Status s = wait_ready(node.name); !s) return fail(s.error());
  out.proof += (out.proof.empty() ? "" : ", then ") + (all ? binary : wrong);
  return all;
}

void Running::upgrade(const Step& step, Injected& out) {
  auto before = coordinator();
  if (!before) return void(out.proof = before.error().message);
  const std::string old = before->executable();
  if (digest_of(*before) == digest_of(site_.binary))
    return void(out.proof = "--binary is the same program as " + old);
  if (digest_of(*before) != digest_of(old))
    return void(out.proof = "the coordinator no longer runs " + old);
  if (Status s = site_.note_switch(old); !s) return void(out.proof = s.error().message);
  const bool there = restart_with(site_.binary, false, out);
  const std::string why = out.proof;
  if (there) pause_(step.hold_ms);
  // Always switch back.
  const bool back = restart_with(old, true, out);
  if (back) (void)site_.note_switch("");
  out.confirmed = there && back;
  if (out.confirmed)
    out.proof = "coordinator and agents ran " + out.proof;
  else if (!there)
    out.proof = why + (back ? "; " + old + " runs again" : "; then " + out.proof);
}

void Running::restore(const Step& step, Observer& observer, Injected& out) {
  Gap gap{boot_now(), 0};
  const std::string backup = site_.backup_dir + "-" + std::to_string(gap.backup_ms);
  auto answer = site_.client->post("/apis/muster.dev/v1/backups", dumped(Json{{"dir", backup}}));
  if (!answer) return void(out.proof = answer.error().message);
  if (!answer->ok()) return void(out.proof = "no backup: " + refusal(*answer).message);
  auto before = coordinator();
  if (!before) return void(out.proof = before.error().message);
  if (!pause_(step.hold_ms)) return;
  observer.pause();
  // This job exists now but not in the restored state.
  const std::string mark = site_.probe_prefix + "mark-" + std::to_string(gap.backup_ms);
  auto made = create_job(*site_.client, site_.target.ns, tiny_job(mark), false);
  out.at_ms = boot_now();
  Status done =
      made ? site_.reach->run(nullptr, filled(site_.reach->hooks().restore, "{backup}", backup),
                              kHookMax, true)
           : Status(made.error());
  if (done)
    if (auto after = successor(*before, true); !after) done = after.error();
  gap.restored_ms = boot_now();
  bool gone = false;
  for (const Millis until = boot_now() + site_.restart_within_ms; done && boot_now() < until;
       usleep(kStubbornUs)) {
    auto there = site_.client->get(object_path(Kind::job, site_.target.ns, mark));
    if (!there || (!there->ok() && there->status != 404)) continue;
    gone = there->status == 404;
    break;
  }
  gap.restored_ms = std::max(gap.restored_ms, boot_now());
  for (const DrillNode& node : site_.nodes)
    if (done) done = wait_ready(node.name);
  observer.resume();
  gap_ = gap;
  if (!done) return void(out.proof = done.error().message);
  out.confirmed = gone;
  out.proof = gone ? "a job created " + std::to_string(out.at_ms - gap.backup_ms) +
                         " ms after the backup is missing from the restored state"
                   : "a job submitted after the backup still exists: the state was not restored";
}

// The pid file is the leader's endpoints.json. The process that follows afterwards is not in it, so
// it is known by its data-dir.
void Running::hit_leader(const Step& step, Observer& observer, Injected& out) {
  auto before = coordinator();
  if (!before) return void(out.proof = before.error().message);
  auto led = lineup_of(*site_.client);
  if (!led) return void(out.proof = led.error().message);
  const std::string api = text_at(read_json(text_of_file(site_.pid_file)), {"api"});
  if (step.fault == Fault::takeover) {
    if (Status s = before->send(SIGKILL); !s) return void(out.proof = s.error().message);
    out.confirmed = before->wait_gone(kGoneMax);
    out.at_ms = boot_now();
    out.proof = before->name() + (out.confirmed ? " is gone" : " did not end");
  } else {
    freeze_leader(*before, api, step.hold_ms, pause_, observer, out);
  }
  measure("", pause_, observer, out);
  std::optional<Process> after;
  for (const Millis until = boot_now() + site_.restart_within_ms; !after && boot_now() < until;) {
    after = coordinator_in(std::filesystem::path(site_.pid_file).parent_path());
    if (after && !differ(*before, *after)) after.reset();
    if (!after && !pause_(kStarted)) return;
  }
  if (!after)
    return void(out.absent = "the coordinator, " + before->name() +
                             ", ended, and nothing restarted it within " +
                             short_span(site_.restart_within_ms));
  out.proof += "; " + change(*before, *after);
  Result<Lineup> now = lineup_of(*site_.client);
  for (const Millis until = boot_now() + site_.restart_within_ms;
       (!now || now->ready.size() < led->ready.size()) && boot_now() < until && pause_(kStarted);)
    now = lineup_of(*site_.client);
  if (!now) return void(out.absent = now.error().message);
  if (now->ready.size() < led->ready.size())
    out.absent = "coordinator " + led->leader + " is not in sync again";
  const bool other = now->leader != led->leader && now->term > led->term;
  out.confirmed = out.confirmed && other;
  out.proof += other ? "; " + now->leader + " leads"
                     : "; no other coordinator took over, and " + now->leader +
                           " leads again: its supervisor must wait for longer than the lease of "
                           "3 s, as with systemd's RestartSec=5";
}

Status Running::back_to(const std::string& binary) {
  Injected out;
  if (restart_with(binary, true, out)) return Nothing{};
  return unavailable(out.proof);
}

}  // namespace muster::cli::drill
