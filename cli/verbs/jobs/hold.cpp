// muster hold, release, set: what operators do to a job without touching its owner's object.
// Repeating a change is not an error.
#include "cli/verbs/jobs/hold.hpp"

#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/resources.hpp"
#include "client/news/attempts.hpp"
#include "client/terminal/exit_codes.hpp"
#include "core/spec/values/duration.hpp"

#include <charconv>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>

namespace muster::cli {
namespace {

constexpr const char* kNone = "none";
constexpr int64_t kPriorityMax = 1'000'000'000;  // as in Kubernetes; above are the system's classes

// The request for the job whose path is given.
using Send = std::function<Result<Response>(ApiClient& client, const std::string& path)>;

// Sends one request for each job, and tells what it did.
int change_each(const Target& target, const std::vector<std::string>& names, const char* what,
                const Send& send, const std::string& done) {
  const auto client = connect(target);
  int code = kDone;
  for (const std::string& name : names) {
    const auto answer = send(*client, own_path(target.ns, name, what));
    if (!answer || !answer->ok()) {
      code = fail(answer ? refusal(*answer) : answer.error());
      if (code == kUnreachable) return code;
      continue;
    }
    std::cout << kind_name(Kind::job) << "/" << name << " " << done << std::endl;
  }
  return code;
}

// "has priority 100, and the queue of its object"
std::string overrides_shown(const Json& overrides) {
  std::string text;
  for (const auto& [field, value] : overrides.items()) {
    const std::string what = field == "timeLimitSeconds" ? "time limit" : field;
    text += text.empty() ? "has " : ", and ";
    if (value.is_null())
      text += "the " + what + " of its object";
    else if (value.is_number() && what == "time limit")
      text += value == 0 ? "no time limit"
                         : what + " " + core::duration_text(value.get<int64_t>() * 1000);
    else
      text += what + " " + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

}  // namespace

int execute(const HoldOptions& options) {
  if (!options.hold)
    return change_each(
        options.target, options.names, "hold",
        [](ApiClient& client, const std::string& path) { return client.remove(path, ""); },
        "released");
  const std::string body = dumped(Json{{"reason", options.reason}});
  return change_each(
      options.target, options.names, "hold",
      [&body](ApiClient& client, const std::string& path) { return client.replace(path, body); },
      "held: no new pods start, running pods continue");
}

int execute(const SetOptions& options) {
  const std::string body = dumped(options.overrides);
  return change_each(
      options.target, options.names, "overrides",
      [&body](ApiClient& client, const std::string& path) { return client.patch(path, body); },
      overrides_shown(options.overrides));
}

Verb hold_verb() {
  auto w = std::make_shared<Raw<HoldOptions, std::vector<std::string>>>();
  return {
      .title = {"Jobs", "hold", "Keep a job from starting new pods; running pods continue"},
      .rows = {{"what", "job/NAME...", "Jobs, as job/NAME or NAME", &w->what, kAnything, kRequired},
               {"--reason", "TEXT", "Reason, shown by muster why, describe and get jobs -o wide",
                &w->o.reason}},
      .asks = {&w->o.target},
      .footer =
          "Pods that already have a node keep running. Only operators can release what an operator "
          "holds.\nTo see who holds a job, since when and why, use `muster why`.\n"
          "Example:\n  muster hold job/sweep --reason 'the license server is down'",
      .finish = [w](const Given&) -> Judged {
        if (auto wrong = check_reason(w->o.reason)) return *wrong;
        return judged(read_job_names(w->what, w->o.names), w->o);
      }};
}

Verb release_verb() {
  auto w = std::make_shared<Raw<HoldOptions, std::vector<std::string>>>();
  w->o.hold = false;
  return {.title = {"Jobs", "release", "Release a held job"},
          .rows = {{"what", "job/NAME...", "Jobs, as job/NAME or NAME", &w->what, kAnything,
                    kRequired}},
          .asks = {&w->o.target},
          .footer = "Example:\n  muster release job/sweep",
          .finish = [w](const Given&) -> Judged {
            return judged(read_job_names(w->what, w->o.names), w->o);
          }};
}

Verb set_verb() {
  struct Words {
    SetOptions o;
    std::vector<std::string> what;
    std::string priority, queue, time;
  };
  auto w = std::make_shared<Words>();
  return {
      .title = {"Jobs", "set",
                "Override the priority, queue or time limit of a job (operators only)"},
      .rows =
          {{"what", "job/NAME...", "Jobs, as job/NAME or NAME", &w->what, kAnything, kRequired},
           {"--priority", "N",
            "Priority that replaces the one in the job's template, or none for the "
            "template's again",
            &w->priority},
           {"-p,--queue", "NAME",
            "Queue that replaces the job's, even one that is not open to its owner, or none "
            "for the job's own again",
            &w->queue},
           {"-t,--time", "T",
            "Time limit of each pod, also of those that run, such as 90m or 1:30:00, unlimited, "
            "or none for the template's again",
            &w->time}},
      .asks = {&w->o.target},
      .footer =
          "The job's object stays as it is, and its owner cannot undo the override.\n"
          "Examples:\n  muster set job/urgent --priority 1000\n"
          "  muster set job/urgent --queue express --time 12h\n"
          "  muster set job/urgent --priority none",
      .finish = [w](const Given& given) -> Judged {
        Json& overrides = w->o.overrides;
        if (auto empty = check_filled(given, {{"--queue", {w->queue}}})) return *empty;
        if (given.flags.contains("--priority")) {
          const std::string& text = w->priority;
          int32_t number = 0;
          const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
          const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
          if (text != kNone && (!whole || std::abs(int64_t{number}) > kPriorityMax))
            return Usage{"--priority: `" + text + "`: must be a whole number from " +
                         std::to_string(-kPriorityMax) + " to " + std::to_string(kPriorityMax) +
                         ", or none"};
          overrides["priority"] = text == kNone ? Json() : Json(number);
        }
        if (given.flags.contains("--queue"))
          overrides["queue"] = w->queue == kNone ? Json() : Json(w->queue);
        if (given.flags.contains("--time")) {
          ResourceWishes wishes;
          if (w->time != kNone && w->time != "unlimited")
            if (Status right = read_time(w->time, wishes); !right)
              return Usage{right.error().message};
          if (wishes.time_s > std::numeric_limits<int32_t>::max())
            return Usage{"--time: `" + w->time + "`: must be at most " +
                         std::to_string(std::numeric_limits<int32_t>::max()) + "s"};
          overrides["timeLimitSeconds"] = w->time == kNone ? Json() : Json(wishes.time_s);
        }
        if (overrides.empty()) return Usage{"one of --priority, --queue and --time is required"};
        return judged(read_job_names(w->what, w->o.names), w->o);
      }};
}

}  // namespace muster::cli
