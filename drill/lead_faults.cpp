#include "drill/lead_faults.hpp"

#include "client/connect/objects.hpp"
#include "drill/jobs.hpp"
#include "drill/process/question.hpp"
#include "drill/process/silence.hpp"
#include "drill/survey.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <optional>
#include <vector>

namespace muster::cli::drill {
namespace {

constexpr Millis kOtherServesMax = 30'000;  // until another coordinator serves
constexpr Millis kCountedMax = 10'000;      // from then until an end of a pod is counted
constexpr Millis kAskPause = 200;           // between requests to a stopped coordinator
constexpr Millis kLateMax = 1'000;  // for its answers, once it has been continued for kGoneMax

// Until a coordinator other than this one has answered a read that was asked after the fault;
// nothing: none did.
std::optional<Millis> wait_for_other(const std::string& hit, Millis at_ms, Observer& observer,
                                     const Pause& pause, const std::function<void()>& meanwhile) {
  for (const Millis until = boot_now() + kOtherServesMax; boot_now() < until;) {
    if (const auto served = observer.answered_after(at_ms, hit)) return served;
    meanwhile();
    if (!pause(kLook)) break;
  }
  return std::nullopt;
}

uint16_t port_at(const std::string& address) {
  uint16_t port = 0;
  const size_t begin = address.rfind(':') + 1;
  std::from_chars(address.data() + begin, address.data() + address.size(), port);
  return port;
}

}  // namespace

bool freeze_leader(const Process& leader, const std::string& api, Millis hold_ms,
                   const Pause& pause, Observer& observer, Injected& out) {
  std::vector<Question> questions;
  const std::string path = object_path(Kind::job, kDrillNamespace);
  Millis next = 0;
  const auto ask = [&] {
    if (boot_now() < next) return;
    next = boot_now() + kAskPause;
    if (auto question = Question::ask(api, path)) questions.push_back(std::move(*question));
  };
  std::optional<Millis> served;
  bool stopped = false;
  Millis held_ms = 0;
  {
    const Frozen frozen(leader);
    stopped = leader.wait_state('T', kStoppedMax);
    out.at_ms = boot_now();
    served = wait_for_other(api, out.at_ms, observer, pause, ask);
    for (const Millis until = boot_now() + hold_ms; boot_now() < until && pause(kLook);) ask();
    held_ms = boot_now() - out.at_ms;
    stopped = stopped && leader.state() == 'T';
  }
  const bool gone = leader.wait_gone(kGoneMax);
  for (const Question& question : questions)
    if (const std::string answer = question.answer(kLateMax); !answer.empty())
      out.answered_late.push_back("asked " + std::to_string(question.asked_ms() - out.at_ms) +
                                  " ms after it was stopped, " + leader.name() +
                                  " answered when it went on: " + answer);
  out.confirmed = stopped && served && gone && !questions.empty();
  out.proof = leader.name() + ": state " +
              (stopped ? "T for " + std::to_string(held_ms) + " ms" : "was not T the whole time") +
              ", " + std::to_string(questions.size()) + " requests sent meanwhile, " +
              (gone ? "ended" : "has not ended") +
              (served ? "" : "; no other coordinator took over");
  return gone;
}

void measure(const std::string& except, const Pause& pause, Observer& observer, Injected& out) {
  const auto since = [&out](std::optional<Millis> instant) {
    return instant ? std::optional(*instant - out.at_ms) : std::nullopt;
  };
  for (const Millis until = boot_now() + kCountedMax; boot_now() < until;) {
    out.down_ms = since(observer.answered_after(out.at_ms, except));
    out.accepted_ms = since(observer.accepted_after(out.at_ms, except));
    out.counted_ms = since(observer.counted_after(out.at_ms, except));
    if (out.accepted_ms && (out.counted_ms || observer.standing().ended)) break;
    if (!pause(kLook)) break;
  }
}

void LeadFaults::hit(const Step& step, Observer& observer, Injected& out) {
  Member* leader = standbys_.leader();
  if (leader == nullptr) return void(out.proof = "no coordinator leads");
  switch (step.fault) {
    case Fault::takeover:
      return kill_leader(*leader, observer, out);
    case Fault::leader_freeze:
      return stop_leader(step, *leader, observer, out);
    case Fault::leader_cut:
      return cut_leader(step, *leader, observer, out);
    case Fault::store_loss:
      return stop_store(step, *leader, observer, out);
    default:
      out.proof = std::string(name(step.fault)) + " does not hit a leader";
  }
}

// Starts the one that was hit again; it must follow the one that leads now.
void LeadFaults::take_back(Member& hit, const Process& before, Injected& out) {
  const Member* leads = standbys_.leader();
  Status done = standbys_.start(hit);
  if (done) done = standbys_.wait_in_sync();
  const bool followed = done.ok() && standbys_.leader() == leads && leads != nullptr;
  out.confirmed = out.confirmed && followed;
  if (!done)
    out.absent = done.error().message;
  else if (hit.daemon.process)
    out.proof += "; " + (leads == nullptr ? "none" : leads->name) + " leads; " +
                 change(before, *hit.daemon.process) + " and is in sync";
}

void LeadFaults::kill_leader(Member& leader, Observer& observer, Injected& out) {
  auto before = Process::open(leader.daemon.process->pid());
  if (!before) return void(out.proof = before.error().message);
  if (Status s = end_daemon(leader.daemon, SIGKILL); !s) return void(out.proof = s.error().message);
  out.at_ms = boot_now();
  const bool served = wait_for_other(leader.api, out.at_ms, observer, pause_, [] {}).has_value();
  measure(leader.api, pause_, observer, out);
  out.confirmed = served && before->gone();
  out.proof =
      leader.name + ", which led, is gone" + (served ? "" : "; no other coordinator took over");
  take_back(leader, *before, out);
}

void LeadFaults::stop_leader(const Step& step, Member& leader, Observer& observer, Injected& out) {
  auto before = Process::open(leader.daemon.process->pid());
  if (!before) return void(out.proof = before.error().message);
  freeze_leader(*before, leader.api, step.hold_ms, pause_, observer, out);
  for (const std::string& one : observer.answers_of(leader.api, out.at_ms, boot_now()))
    out.answered_late.push_back(leader.name + ", which had been stopped: " + one);
  measure(leader.api, pause_, observer, out);
  out.proof = leader.name + ", which led, " + out.proof;
  if (Status s = end_daemon(leader.daemon, SIGKILL); !s)
    return void(out.absent = s.error().message);
  take_back(leader, *before, out);
}

void LeadFaults::cut_leader(const Step& step, Member& leader, Observer& observer, Injected& out) {
  auto before = Process::open(leader.daemon.process->pid());
  if (!before) return void(out.proof = before.error().message);
  std::vector<const Process*> others;
  for (const Member& member : standbys_.members())
    if (&member != &leader && member.daemon.process) others.push_back(&*member.daemon.process);
  std::optional<Millis> served;
  uint64_t dropped = 0;
  const uint64_t held_before = leader.to_store->held();
  Status reached = Nothing{};
  bool gone = false;
  {
    leader.to_store->hold(true);
    auto silence = Silence::begin(*before, port_at(leader.peers), others);
    out.at_ms = boot_now();
    if (silence) {
      const auto refresh = [&] {
        if (Status s = silence->refresh(); !s) reached = s;
      };
      served = wait_for_other(leader.api, out.at_ms, observer, pause_, refresh);
      for (const Millis until = boot_now() + kGoneMax; boot_now() < until && pause_(kLook);) {
        refresh();
        gone = before->gone();
        if (gone && served && boot_now() - *served >= step.hold_ms) break;
      }
      dropped = silence->dropped();
    } else {
      reached = silence.error();
    }
  }
  const Millis gone_ms = boot_now();
  // What a follower passes on is the leader's answer.
  if (standbys_.leader(&leader) == nullptr) served.reset();
  leader.to_store->hold(false);
  const uint64_t held = leader.to_store->held() - held_before;
  if (served)
    for (const std::string& one : observer.answers_of(leader.api, *served, gone_ms))
      out.answered_late.push_back(leader.name + ", cut off: " + one);
  measure(leader.api, pause_, observer, out);
  out.confirmed = reached.ok() && served && gone && dropped > 0 && held > 0;
  out.proof = leader.name + ", which led: " + std::to_string(dropped) +
              " packets to and from the others were dropped, " + std::to_string(held) +
              " bytes to and from etcd held back; it " + (gone ? "ended" : "has not ended") +
              (served ? "" : "; no other coordinator took over") +
              (reached ? "" : "; " + reached.error().message);
  if (Status s = end_daemon(leader.daemon, SIGKILL); !s)
    return void(out.absent = s.error().message);
  take_back(leader, *before, out);
}

void LeadFaults::stop_store(const Step& step, Member& leader, Observer& observer, Injected& out) {
  const Daemon& etcd = standbys_.etcd();
  auto before = Process::open(leader.daemon.process->pid());
  if (!before || !etcd.process) return void(out.proof = "the leader or etcd does not run");
  freeze(*etcd.process, step.hold_ms, pause_, out);
  const Millis until = boot_now();
  out.down_ms = observer.longest_pause(out.at_ms, until, true);
  out.accepted_ms = observer.longest_pause(out.at_ms, until, false);
  out.proof = "etcd, " + out.proof;
  Status done = standbys_.wait_in_sync();
  const bool leads = !before->gone() && standbys_.leader() == &leader;
  out.confirmed = out.confirmed && leads;
  out.proof += leads ? "; " + leader.name + " led all the time"
                     : "; " + leader.name + ", which led, does not lead any more";
  if (!done) out.absent = done.error().message;
}

}  // namespace muster::cli::drill
