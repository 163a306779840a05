// muster shell: an interactive job. Its only pod holds what was requested, and the user's shell
// joins it like any command of `muster exec -it`.
//
// The pod ends by itself: with the shell, or if none has joined it for a minute. So nothing stays
// if this client is killed or its machine fails, since the session then ends, too.
#include "cli/verbs/run/shell.hpp"

#include "cli/verbs/run/exec.hpp"
#include "cli/verbs/run/job_flags.hpp"
#include "cli/verbs/run/wanted_job.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/follow/signals.hpp"
#include "client/inputs/user_terminal.hpp"
#include "client/news/attempts.hpp"
#include "client/terminal/exit_codes.hpp"

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

namespace muster::cli {
namespace {

constexpr Millis kShellFirst = 20, kShellMax = 500;  // between two polls
constexpr Millis kSayEvery = 2'000;                  // what the job waits for, if it has changed

// Runs in the pod until the shell whose process id is in the file has ended. The file is the
// pod's own: it must not exist before, and only its user can write to it.
constexpr const char* kHolder =
    "umask 077; f=/tmp/.muster-shell-$MUSTER_POD_UID; set -C; : >\"$f\" || exit 1\n"
    "trap 'rm -f \"$f\"' EXIT; trap 'exit 143' TERM; n=0\n"
    "while [ $n -lt 60 ]; do\n"
    "  if read -r p <\"$f\"; then [ -d \"/proc/$p\" ] || exit 0; else n=$((n + 1)); fi\n"
    "  sleep 1\n"
    "done\n"
    "echo 'muster shell: nobody joined within a minute' >&2; exit 1";

// Runs on the terminal: leaves its process id to the holder, and becomes the shell.
constexpr const char* kJoin =
    "f=/tmp/.muster-shell-$MUSTER_POD_UID\n"
    "until [ -e \"$f\" ]; do sleep 0.1; done\n"
    "echo $$ >>\"$f\" || exit 1\n"
    "[ $# -gt 0 ] || set -- \"${SHELL:-/bin/sh}\"\n"
    "exec \"$@\"";

// Waits until the pod runs, and says what it waits for. Returns an exit code if it does not.
std::optional<int> await_pod(ApiClient& client, Signals& signals, const std::string& ns,
                             const std::string& name) {
  std::string said;
  Millis pause = kShellFirst, next_say = boot_now() + kSayEvery / 4;
  for (;;) {
    auto job = object(client, object_path(Kind::job, ns, name));
    if (!job) return fail(job.error());
    if (number_at(*job, {"status", "ready"}) > 0) return std::nullopt;
    if (end_of(*job) != JobEnd::none) {
      const Json& failed = condition_of(*job, "Failed");
      return fail(kFailed, "job/" + name + " ended before the shell could start: " +
                               text_at(failed, {"reason"}) + ": " + text_at(failed, {"message"}));
    }
    if (boot_now() >= next_say) {
      next_say = boot_now() + kSayEvery;
      if (const auto why = object(client, own_path(ns, name, "why"))) {
        std::string now = text_at(*why, {"summary"});
        if (now != said) std::cerr << "job/" << name << ": " << now << std::endl;
        said = std::move(now);
      }
    }
    if (signals.next(pause) != 0)
      return fail(kInterrupted, "interrupted; job/" + name + " is cancelled");
    pause = std::min(pause * 3 / 2, kShellMax);
  }
}

void cancel_job(ApiClient& client, const std::string& ns, const std::string& name) {
  (void)client.replace(own_path(ns, name, "cancel"), "{}");
}

}  // namespace

int execute(const ShellOptions& options) {
  if (!UserTerminal::is_there())
    return fail(kUsage,
                "shell: standard input is not a terminal; for a command without one, use "
                "muster run -n 1 -- CMD");
  RunOptions run = options.run;
  run.completions = run.parallelism = 1;
  run.command = {"sh", "-c", kHolder};
  run.disruptions_max = 0;  // a shell cannot go on elsewhere
  if (run.name.empty()) {
    run.name = "shell";
    run.exists = IfExists::number;
  }
  auto wanted = wanted_job(run, 1, std::nullopt, "");
  if (!wanted) return fail(wanted.error(), "shell");
  Signals signals;
  std::string name;
  {
    const auto client = connect(run.target);  // only one per thread
    auto created = create_wanted(*client, *wanted, run.exists);
    if (!created) return fail(created.error());
    name = text_at(*created, {"metadata", "name"});
    std::cerr << "job/" << name << " created on " << client->address() << std::endl;
    if (const auto code = await_pod(*client, signals, wanted->ns, name)) {
      cancel_job(*client, wanted->ns, name);
      return *code;
    }
  }
  ExecOptions join;
  join.target = run.target;
  join.target.ns = wanted->ns;
  join.job = name;
  join.index = 0;
  join.input = join.terminal = true;
  join.command = {"sh", "-c", kJoin, "sh"};
  join.command.insert(join.command.end(), options.run.command.begin(), options.run.command.end());
  return execute(join);
}

Verb shell_verb() {
  auto w = std::make_shared<JobWords>();
  FlagRows rows = {
      {"command", "-- CMD ARG...", "Command to run on the terminal (default: your shell)",
       &w->rest},
      {"-J,--name", "J", "Name of the job (default: shell, shell-2 and so on)", &w->o.name},
      {"-D,--chdir", "DIR", "Working directory (default: the current directory)", &w->dir},
      {"--export", "NAMES", "Environment variables to pass on: ALL, NONE or NAME,NAME... (default)",
       &w->exported},
      {"--env", "NAME=VALUE", "Set an environment variable; repeatable", &w->variables}};
  add_place_rows(rows, *w);
  return {
      .title = {"Jobs", "shell", "Start an interactive shell on a node, with resources of its own"},
      .rows = std::move(rows),
      .asks = {&w->o.target, "--namespace"},
      .footer =
          "Examples:\n  muster shell\n  muster shell --cpus 4 --mem 16Gi --time 2h\n"
          "  muster shell --gpus 1 --node-selector zone=a -- python3\n"
          "The job waits for its place like any other, and says what for. It ends with the shell, "
          "or "
          "a minute after this command is gone. muster exec -it job/J joins it a second time.\n"
          "Exit codes: that of the shell (128+S if signal S ended it); 1 the job failed, 130 "
          "interrupted while waiting.",
      .takes_command = true,
      .finish = [w](const Given& given) -> Judged {
        if (auto wrong = read_surroundings(*w)) return *wrong;
        if (auto wrong = read_resources(*w)) return *wrong;
        if (auto wrong = read_command(w->rest, given.tail, w->o.command)) return *wrong;
        return ShellOptions{w->o};
      }};
}

}  // namespace muster::cli
