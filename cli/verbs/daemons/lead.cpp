// muster promote, demote, remove: change which coordinator leads, or forget one.
//
// A hand-over is over once another coordinator serves, so promote and demote ask until one does.
#include "cli/verbs/daemons/lead.hpp"

#include "base/clock.hpp"
#include "cli/verbs/show/coordinators.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/follow/signals.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/text.hpp"

#include <iostream>
#include <memory>

namespace muster::cli {
namespace {

using LeadWhat = LeadOptions::What;

constexpr Millis kHandOverMax = 30'000;  // then somebody must look
constexpr Millis kHandOverLook = 50;     // between two looks
constexpr Millis kLookTimeout = 2'000;

const char* part_of(LeadWhat what) {
  switch (what) {
    case LeadWhat::promote:
      return "/promotion";
    case LeadWhat::demote:
      return "/demotion";
    case LeadWhat::remove:
      break;
  }
  return "";
}

// Waits until a coordinator other than `former`, which led in this term, answers as the leader.
int await_leader(ApiClient& client, const LeadOptions& options, const std::string& former,
                 int64_t term, Millis since) {
  Signals signals;
  client.set_timeout(kLookTimeout);
  client.set_patience(0);
  for (;;) {
    auto all = coordinators(client);
    const std::string leader = all ? leader_of(*all) : "";
    const Millis took = boot_now() - since;
    const bool again = leader == former && term_of(*all) > term;
    if (!leader.empty() && (leader != former || again)) {
      const std::string leads = "coordinator/" + leader + " leads" + (again ? " again" : "") +
                                ", after " + precise_span(static_cast<double>(took) / 1000);
      const bool meant = options.what == LeadWhat::demote ? !again : leader == options.name;
      if (!meant) return fail(kRejected, leads + ": see the logs of the coordinators");
      std::cout << leads << std::endl;
      return kDone;
    }
    if (!all && all.error().code != Errc::unavailable) return fail(all.error());
    if (took > kHandOverMax)
      return fail(kUnreachable,
                  "no coordinator has taken the lead from " + former + " within " +
                      short_span(kHandOverMax) +
                      (all ? ": see the logs of the coordinators" : ": " + all.error().message));
    if (signals.next(kHandOverLook) != 0)
      return fail(kInterrupted, "interrupted: the hand-over goes on; see: muster get coordinators");
  }
}

Verb lead_verb(LeadWhat what, const char* name, const char* help, FlagRow row, const char* footer) {
  auto w = std::make_shared<LeadOptions>();
  w->what = what;
  row.into = &w->name;
  return {.title = {"Daemons", name, help},
          .rows = {std::move(row)},
          .asks = {&w->target, ""},
          .footer = footer,
          .finish = [w](const Given&) -> Judged {
            const std::string word = w->name;
            w->name = coordinator_name(word);
            if (!word.empty() && (w->name.empty() || w->name.find('/') != std::string::npos))
              return Usage{"`" + word + "`: must be a coordinator: NAME or coordinator/NAME"};
            return *w;
          }};
}

}  // namespace

int execute(const LeadOptions& options) {
  const auto client = connect(options.target);
  std::string former, name = options.name;
  int64_t term = 0;
  if (options.what != LeadWhat::remove) {
    auto all = coordinators(*client);
    if (!all) return fail(all.error());
    former = leader_of(*all);
    term = term_of(*all);
    if (name.empty()) name = former;
  }
  const Millis since = boot_now();
  const std::string path = kCoordinatorsPath + ("/" + url_encoded(name)) + part_of(options.what);
  auto answer =
      options.what == LeadWhat::remove ? client->remove(path, "{}") : client->post(path, "{}");
  // The one that hands over may end before it has answered.
  const bool unheard = !answer && answer.error().code == Errc::unavailable;
  if (!answer && (!unheard || options.what == LeadWhat::remove)) return fail(answer.error());
  if (answer && !answer->ok()) return fail(refusal(*answer));
  if (options.what != LeadWhat::remove) return await_leader(*client, options, former, term, since);
  std::cout << "coordinator/" << name << " removed" << std::endl;
  return kDone;
}

Verb promote_verb() {
  return lead_verb(
      LeadWhat::promote, "promote", "Hand over the lead to a coordinator",
      {"coordinator", "NAME", "Coordinator that shall lead, as NAME or coordinator/NAME",
       static_cast<std::string*>(nullptr), kAnything, kRequired},
      "Waits until it leads. It must be in sync: `muster get coordinators` says so.\n"
      "Pods go on, and requests wait.\nExample:\n  muster promote head2:7119");
}

Verb demote_verb() {
  return lead_verb(
      LeadWhat::demote, "demote", "Hand over the lead to any other coordinator",
      {"coordinator", "[NAME]",
       "Coordinator that shall no longer lead, as NAME or coordinator/NAME (default: "
       "the one that leads)",
       static_cast<std::string*>(nullptr)},
      "Waits until another one leads. One must be in sync: `muster get coordinators` says so.\n"
      "Pods go on, and requests wait.\nExample:\n  muster demote");
}

Verb remove_verb() {
  return lead_verb(LeadWhat::remove, "remove", "Forget a coordinator that is not connected",
                   {"coordinator", "NAME", "Coordinator to forget, as NAME or coordinator/NAME",
                    static_cast<std::string*>(nullptr), kAnything, kRequired},
                   "Stop it first. Started again, it joins again.\n"
                   "Example:\n  muster remove coordinator/head2:7119");
}

}  // namespace muster::cli
