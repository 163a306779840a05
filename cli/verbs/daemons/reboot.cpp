// muster reboot: reboots nodes without loss of work, one after the other: drains a node, runs a
// command here that reboots it, waits until its agent is back after a boot, and uncordons it.
//
// muster has no right to reboot a machine and gets none: the command does it, with the rights of
// whoever runs this.
#include "base/process/shell_words.hpp"
#include "base/process/spawn_clean.hpp"
#include "cli/verbs/daemons/drain.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/status_line.hpp"
#include "client/terminal/text.hpp"

#include <cerrno>
#include <cstring>
#include <iostream>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::cli {

struct RebootOptions {
  DrainOptions drain;  // of each node
  std::vector<std::string> nodes;
  std::string command;
  std::optional<Millis> back_within_ms = 1'800'000;  // absent: however long it takes
};

namespace {

constexpr Millis kRebootLook = 500;  // between two looks at a node or at the command
// A command that ends with this one may have worked: ssh does, when the machine goes down.
constexpr int kConnectionLost = 255;

struct Boot {
  std::string id;
  bool ready = false, cordoned = false;
  std::string reason{};  // of the cordon
};

// Why the node is cordoned; empty: it is not, or nobody said.
std::string cordon_reason(const Json& node) {
  const Json reasons = read_json(text_at(node, {"metadata", "annotations", "muster.dev/reasons"}));
  if (reasons.is_array())
    for (const Json& one : reasons)
      if (text_at(one, {"what"}) == "cordon") return text_at(one, {"reason"});
  return "";
}

Result<Boot> boot_of(ApiClient& client, const std::string& node) {
  auto shown = object(client, object_path(Kind::node, "", node));
  if (!shown) return shown.error();
  Boot boot{text_at(*shown, {"status", "nodeInfo", "bootID"}), false,
            at(*shown, {"spec", "unschedulable"}) == Json(true), cordon_reason(*shown)};
  for (const Json& one : at(*shown, {"status", "conditions"}))
    if (text_at(one, {"type"}) == "Ready") boot.ready = text_at(one, {"status"}) == "True";
  return boot;
}

std::string command_for(const std::string& command, const std::string& node) {
  std::string text;
  size_t from = 0;
  for (size_t at; (at = command.find("{}", from)) != command.npos; from = at + 2)
    text += command.substr(from, at - from) + shell_quoted(node);
  return text + command.substr(from);
}

class Rebooting {
 public:
  // `rest`: the nodes after it.
  Rebooting(const RebootOptions& options, ApiClient& client, Signals& signals, std::string node,
            const std::string& rest)
      : options_(options),
        client_(client),
        signals_(signals),
        node_(std::move(node)),
        shown_("node/" + node_),
        resume_("muster reboot " + node_ + rest + " --command " + shell_quoted(options.command)) {}

  // Returns an exit code; has said why, unless it is kDone.
  int run() {
    const auto found = boot_of(client_, node_);
    if (!found) return fail(found.error());
    DrainOptions drain = options_.drain;
    drain.node = node_;
    // Cordoned by an earlier run that was interrupted, or by somebody else, whose reason stays.
    const bool by_others = found->cordoned && found->reason != drain.reason;
    if (by_others) drain.reason.clear();
    if (const int code = cli::drain(client_, drain, signals_, resume_); code != kDone) return code;
    const auto before = boot_of(client_, node_);  // it may have been rebooted meanwhile
    if (!before) return fail(before.error());
    if (const int code = order(); code != kDone) return code;
    if (const int code = await(before->id); code != kDone) return code;
    if (by_others) {
      std::cout << shown_ << " stays cordoned, as it was before" << std::endl;
      return kDone;
    }
    auto changed = change_object(client_, object_path(Kind::node, "", node_),
                                 Json{{"spec", {{"unschedulable", nullptr}}}});
    if (!changed) return fail(changed.error());
    std::cout << shown_ << " uncordoned" << std::endl;
    return kDone;
  }

 private:
  // `resume`: empty if the node has been told to reboot, which must not happen twice.
  int stays_cordoned(int code, const std::string& why, const std::string& resume) const {
    return fail(code, why + ": " + shown_ + " stays cordoned" + ways_on(node_, resume));
  }

  // Runs the command.
  int order() const {
    std::string text = command_for(options_.command, node_);
    std::cout << shown_ << ": " << text << std::endl;
    std::string shell = "sh", flag = "-c";
    char* argv[] = {shell.data(), flag.data(), text.data(), nullptr};
    int error = 0;
    const pid_t child = spawn_clean("/bin/sh", argv, environ, -1, STDERR_FILENO, 0, error);
    if (child == 0)
      return stays_cordoned(kFailed, std::string("cannot run sh: ") + strerror(error), resume_);
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0)
      if (const int signal = signals_.next(kRebootLook / 10); signal != 0) {
        kill(child, SIGTERM);
        waitpid(child, &status, 0);
        return stays_cordoned(kInterrupted, "interrupted", "");
      }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 0) return kDone;
    const std::string how = "the command ended with exit code " + std::to_string(code);
    if (code != kConnectionLost) return stays_cordoned(kFailed, how, resume_);
    std::cerr << "muster: " << how << ", as ssh does when the machine goes down: waiting for "
              << shown_ << std::endl;
    return kDone;
  }

  // Until the node is ready, after another boot than this one.
  int await(const std::string& boot) const {
    const Millis begin = boot_now();
    StatusLine line(begin, options_.drain.target.color);
    while (true) {
      const Millis now = boot_now();
      const auto shown = boot_of(client_, node_);
      // While the coordinator restarts, nobody knows.
      if (!shown && shown.error().code != Errc::unavailable) {
        line.clear();
        return fail(shown.error());
      }
      if (shown && shown->ready && shown->id != boot) break;
      if (options_.back_within_ms && now - begin >= *options_.back_within_ms) {
        line.clear();
        return stays_cordoned(kTimeout, shown_ + " is not back after " + short_span(now - begin),
                              "");
      }
      const bool down = shown && !shown->ready;
      line.show(now, down ? "down" : "up", [&] {
        return "waiting for " + shown_ + (down ? ", which is down" : " to go down") + "  " +
               clock_span(line.elapsed(now));
      });
      if (signals_.next(kRebootLook) != 0) {
        line.clear();
        return stays_cordoned(kInterrupted, "interrupted", "");
      }
    }
    line.clear();
    std::cout << shown_ << " is back after " << short_span(boot_now() - begin) << std::endl;
    return kDone;
  }

  const RebootOptions& options_;
  ApiClient& client_;
  Signals& signals_;
  const std::string node_, shown_, resume_;
};

}  // namespace

int execute(const RebootOptions& options) {
  Signals signals;
  const auto client = connect(options.drain.target);
  for (size_t i = 0; i < options.nodes.size(); ++i) {
    std::string rest;
    for (size_t later = i + 1; later < options.nodes.size(); ++later)
      rest += " " + options.nodes[later];
    const int code = Rebooting(options, *client, signals, options.nodes[i], rest).run();
    if (code != kDone) return code;  // the next one might not come back either
  }
  return kDone;
}

Verb reboot_verb() {
  struct Words {
    RebootOptions o;
    std::vector<std::string> nodes;
    bool when_idle = false;
    std::string deadline, back_within;
  };
  auto w = std::make_shared<Words>();
  w->o.drain.reason = "to be rebooted";
  return {
      .title = {"Nodes", "reboot", "Drain nodes, have them rebooted, and take them back"},
      .rows = {{"nodes", "NODE...", "Nodes to reboot, one after the other", &w->nodes, kAnything,
                kRequired},
               {"--command", "CMD",
                "Command for sh that reboots a node; it runs here, and {} stands for the "
                "node's name",
                &w->o.command, kAnything, kRequired},
               {"--when-idle", "", "Wait until the node's pods have ended (the default)",
                &w->when_idle},
               {"--now", "", "Evict pods immediately; their indexes run again on other nodes",
                &w->o.drain.now},
               {"--deadline", "T", "Evict pods that are still running after this time, such as 2h",
                &w->deadline},
               {"--back-within", "T",
                "Give up on a node that is not back after this time (default: 30m; 0: never)",
                &w->back_within},
               reason_row(w->o.drain.reason)},
      .asks = {&w->o.drain.target, ""},
      .footer =
          "Example:\n  muster reboot node-a node-b --command 'ssh root@{} systemctl reboot'\n"
          "A node is back when its agent is, after another boot. It is then uncordoned, unless "
          "it was\ncordoned before. Where something fails, the node stays cordoned and the next "
          "ones are left alone.\n"
          "Exit codes: 0 all are back, 1 the command failed, 124 a node is not back, 130 "
          "interrupted.",
      .finish = [w](const Given&) -> Judged {
        for (const std::string& word : w->nodes) w->o.nodes.push_back(node_name(word));
        if (w->o.command.empty()) return Usage{"--command: must not be empty"};
        if (auto wrong = check_reason(w->o.drain.reason)) return *wrong;
        if (w->when_idle + w->o.drain.now + !w->deadline.empty() > 1)
          return Usage{"--when-idle, --now and --deadline are mutually exclusive"};
        if (auto wrong = read_limit("--deadline", w->deadline, w->o.drain.deadline_ms))
          return *wrong;
        return judged(read_limit("--back-within", w->back_within, w->o.back_within_ms), w->o);
      }};
}

}  // namespace muster::cli
