// muster notify: who is told when a job that is there already has finished. `muster submit` has the
// same flags for a new one.
#include "cli/verbs/jobs/notify.hpp"

#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/resources.hpp"
#include "client/news/attempts.hpp"
#include "client/terminal/exit_codes.hpp"
#include "core/spec/fields/annotations.hpp"

#include <iostream>
#include <memory>

namespace muster::cli {
namespace {

constexpr const char* kNobody = "none";

Status change(ApiClient& client, const NotifyOptions& options, const std::string& name) {
  const std::string path = object_path(Kind::job, options.target.ns, name);
  const auto job = object(client, path);
  if (!job) return job.error();
  if (end_of(*job) != JobEnd::none)
    return Error{Errc::conflict,
                 "job/" + name +
                     " has finished, so nobody will be told of its end any more; how it "
                     "ended: muster why job/" +
                     name,
                 {}};
  const auto changed =
      change_object(client, path, {{"metadata", {{"annotations", options.annotations}}}});
  if (!changed) return changed.error();
  return Nothing{};
}

struct Words {
  NotifyOptions o;
  std::vector<std::string> what;
  ResourceWishes wishes;
};

std::optional<Usage> read(Words& w, const Given& given) {
  const auto given_in = [&given](const char* flag) { return given.flags.contains(flag); };
  const bool mail = given_in("--mail"), notify = given_in("--notify"), on = given_in("--notify-on");
  if (!mail && !notify && !on) return Usage{"one of --mail, --notify and --notify-on is required"};
  if (auto empty =
          check_filled(given, {{"--mail", {w.wishes.mail}}, {"--notify", {w.wishes.notify}}}))
    return empty;
  const auto set = [&w](std::string_view key, std::string& value) {
    w.o.annotations[std::string(key)] = value == kNobody ? Json() : Json(value);
    if (value == kNobody) value.clear();
  };
  if (mail) set(core::kMailKey, w.wishes.mail);
  if (notify) set(core::kNotifyKey, w.wishes.notify);
  if (on) set(core::kNotifyOnKey, w.wishes.notify_on);
  w.wishes.notify_on.clear();  // the job may have the others
  if (Status right = check_notice(w.wishes); !right) return Usage{right.error().message};
  return read_job_names(w.what, w.o.names);
}

}  // namespace

int execute(const NotifyOptions& options) {
  const auto client = connect(options.target);
  int code = kDone;
  for (const std::string& name : options.names) {
    if (const Status changed = change(*client, options, name); !changed) {
      code = fail(changed.error());
      if (code == kUnreachable) return code;
      continue;
    }
    std::cout << kind_name(Kind::job) << "/" << name << " annotated: who is told of its end"
              << std::endl;
  }
  return code;
}

Verb notify_verb() {
  auto w = std::make_shared<Words>();
  return {
      .title = {"Jobs", "notify", "Set who is told when a job has finished"},
      .rows = {{"what", "job/NAME...", "Jobs, as job/NAME or NAME", &w->what, kAnything, kRequired},
               {"--mail", "ADDR,...",
                "Addresses to mail, through the mail system of the coordinator's machine, or "
                "none",
                &w->wishes.mail},
               {"--notify", "COMMAND",
                "Line of sh to run, as a job of its own with the job's environment and "
                "directory, or none",
                &w->wishes.notify},
               {"--notify-on", "WHEN", "When to use both (default: as before):",
                &w->wishes.notify_on, one_of({"end", "fail"})}},
      .asks = {&w->o.target},
      .footer =
          "What is not given stays as it is. `muster submit` has the same flags for a new "
          "job, and `muster wait` waits here.\n"
          "Examples:\n  muster notify job/sweep --mail ada@example.org\n"
          "  muster notify job/sweep --notify './plot.sh' --notify-on end",
      .finish = [w](const Given& given) -> Judged { return judged(read(*w, given), w->o); }};
}

}  // namespace muster::cli
