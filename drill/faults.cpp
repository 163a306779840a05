#include "drill/faults.hpp"

#include "base/text/time_text.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/text.hpp"
#include "drill/jobs.hpp"
#include "drill/lead_faults.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

namespace muster::cli::drill {
namespace {

constexpr Millis kAnswerMax = 60'000;  // until the API answers again
constexpr Millis kHour = 3'600'000;

void set_clock(const Scratch& scratch, Millis offset_ms) {
  std::ofstream file(scratch.clock_file());
  file << (offset_ms < 0 ? "-" : "+") << std::abs(offset_ms) / 1'000 << "\n";
}

}  // namespace

Injector::Injector(Site site, Pause pause) : site_(std::move(site)), pause_(std::move(pause)) {
  if (site_.scratch == nullptr) running_ = std::make_unique<Running>(site_, pause_);
}

Injector::~Injector() = default;

const std::optional<Gap>& Injector::gap() const {
  return running_ != nullptr ? running_->gap() : gap_;
}

Injected Injector::inject(const Step& step, Observer& observer) {
  Injected out;
  out.fault = step.fault;
  out.at_ms = boot_now();
  if (site_.scratch != nullptr)
    hit_scratch(step, observer, out);
  else
    running_->hit(step, observer, out);
  out.until_ms = boot_now();
  for (const Millis until = boot_now() + kAnswerMax; !out.down_ms && boot_now() < until;) {
    if (const auto answered = observer.answered_after(out.at_ms)) {
      out.down_ms = *answered - out.at_ms;
      break;
    }
    if (!pause_(kLook)) break;
  }
  return out;
}

void Injector::hit_scratch(const Step& step, Observer& observer, Injected& out) {
  Scratch& scratch = *site_.scratch;
  if (hits_node(step.fault)) out.node = Scratch::node_name(step.node);
  switch (step.fault) {
    case Fault::coordinator_kill:
      kill_coordinator(step, out);
      break;
    case Fault::coordinator_freeze:
      if (const auto& process = scratch.coordinator().process)
        freeze(*process, step.hold_ms, pause_, out);
      break;
    case Fault::agent_kill:
      kill_agent(step, out);
      break;
    case Fault::agent_freeze:
      if (const auto& process = scratch.agent(step.node).process)
        freeze(*process, step.hold_ms, pause_, out);
      break;
    case Fault::keeper_kill:
      kill_keeper(step, out);
      break;
    case Fault::node_loss:
      lose_node(step, out);
      break;
    case Fault::partition:
      cut_off(step, out);
      break;
    case Fault::disk_full:
      fill_disk(step, out);
      break;
    case Fault::clock_jump:
      jump_clock(step, out);
      break;
    case Fault::upgrade:
      upgrade(step, out);
      break;
    case Fault::restore:
      restore(step, observer, out);
      break;
    case Fault::takeover:
    case Fault::leader_freeze:
    case Fault::leader_cut:
    case Fault::store_loss:
      LeadFaults(site_, pause_).hit(step, observer, out);
      break;
  }
  // The fault is over once all nodes are back.
  if (Status s = scratch.wait_ready(); !s) {
    out.confirmed = false;
    out.proof += "; afterwards " + s.error().message;
  }
}

void Injector::kill_coordinator(const Step& step, Injected& out) {
  Scratch& scratch = *site_.scratch;
  auto before = Process::open(scratch.coordinator().process->pid());
  if (!before) return void(out.proof = before.error().message);
  Status ended = scratch.end(scratch.coordinator(), SIGKILL);
  if (!ended) return void(out.proof = ended.error().message);
  out.at_ms = boot_now();
  pause_(step.hold_ms);
  if (Status s = scratch.start_coordinator(); !s) return void(out.proof = s.error().message);
  const Process& after = *scratch.coordinator().process;
  out.confirmed = before->gone() && differ(*before, after);
  out.proof = change(*before, after);
}

void Injector::kill_agent(const Step& step, Injected& out) {
  Scratch& scratch = *site_.scratch;
  auto keeper = scratch.keeper(step.node);
  auto before = Process::open(scratch.agent(step.node).process->pid());
  if (!before) return void(out.proof = before.error().message);
  Status ended = scratch.end(scratch.agent(step.node), SIGKILL);
  if (!ended) return void(out.proof = ended.error().message);
  pause_(step.hold_ms);
  if (Status s = scratch.start_agent(step.node); !s) return void(out.proof = s.error().message);
  const Process& after = *scratch.agent(step.node).process;
  out.confirmed = before->gone() && differ(*before, after);
  out.proof = change(*before, after);
  if (keeper)
    out.proof += keeper->gone() ? "; its keeper also ended" : "; its keeper keeps running";
}

void Injector::kill_keeper(const Step& step, Injected& out) {
  auto keeper = site_.scratch->keeper(step.node);
  if (!keeper) return void(out.proof = keeper.error().message);
  (void)keeper->send(SIGKILL);
  out.confirmed = keeper->wait_gone(kGoneMax);
  out.proof = "keeper " + keeper->name() + (out.confirmed ? " is gone" : " did not end");
  pause_(step.hold_ms);
}

void Injector::lose_node(const Step& step, Injected& out) {
  Scratch& scratch = *site_.scratch;
  auto keeper = scratch.keeper(step.node);
  if (!keeper) return void(out.proof = keeper.error().message);
  if (Status s = scratch.end(scratch.agent(step.node), SIGKILL); !s)
    return void(out.proof = s.error().message);
  (void)keeper->send(SIGSTOP);  // so that it does not see its pods end
  keeper->wait_state('T', kStoppedMax);
  const std::vector<Process> pods = descendants(keeper->pid());
  for (const Process& pod : pods) (void)pod.send(SIGKILL);
  (void)keeper->send(SIGKILL);
  bool gone = keeper->wait_gone(kGoneMax);
  for (const Process& pod : pods) gone = pod.wait_gone(kGoneMax) && gone;
  pause_(step.hold_ms);
  if (Status s = scratch.start_agent(step.node); !s) return void(out.proof = s.error().message);
  out.confirmed = gone;
  out.proof = "agent, keeper " + keeper->name() + " and " + std::to_string(pods.size()) +
              " processes of pods " +
              (gone ? "are gone" : "were killed, but some are still running");
}

void Injector::cut_off(const Step& step, Injected& out) {
  Relay* relay = site_.scratch->relay(step.node);
  if (relay == nullptr) return void(out.proof = "the agents do not connect through a relay");
  const uint64_t before = relay->held();
  relay->hold(true);
  pause_(step.hold_ms);
  relay->hold(false);
  const uint64_t held = relay->held() - before;
  out.confirmed = held > 0;
  out.proof = std::to_string(held) + " bytes were held back";
}

void Injector::fill_disk(const Step& step, Injected& out) {
  Scratch& scratch = *site_.scratch;
  auto process = Process::open(scratch.coordinator().process->pid());
  if (!process) return void(out.proof = process.error().message);
  if (!fill_disk_of(*process, step.hold_ms, site_, pause_, probes_, out)) return;
  (void)scratch.end(scratch.coordinator(), SIGKILL);
  if (Status s = scratch.start_coordinator(); !s) {
    out.confirmed = false;
    out.proof = s.error().message;
  }
}

// The coordinator's wall clock minus ours, according to a job that it has created.
std::optional<Millis> Injector::clock_offset() {
  auto made =
      create_job(*site_.client, site_.target.ns,
                 tiny_job(site_.probe_prefix + "clock-" + std::to_string(probes_++)), false);
  if (!made) return std::nullopt;
  const auto created = parse_time(text_at(*made, {"metadata", "creationTimestamp"}));
  return created ? std::optional(*created - wall_now()) : std::nullopt;
}

void Injector::jump_clock(const Step& step, Injected& out) {
  set_clock(*site_.scratch, kHour);
  const auto ahead = clock_offset();
  pause_(step.hold_ms);
  set_clock(*site_.scratch, 0);
  const auto back = clock_offset();
  constexpr Millis kNear = 60'000;
  out.confirmed = ahead && back && std::abs(*ahead - kHour) < kNear && std::abs(*back) < kNear;
  out.proof = "a job created during the jump is dated " +
              (ahead ? std::to_string(*ahead / 1'000) + " s ahead, one created afterwards " +
                           (back ? std::to_string(*back / 1'000) + " s" : "has no date")
                     : "not at all");
}

bool Injector::restart_with(const std::string& executable, Injected& out) {
  Scratch& scratch = *site_.scratch;
  const auto fail = [&out](const Status& s) {
    if (!s) out.proof = s.error().message;
    return !s;
  };
  std::error_code ignored;
  const std::string path = std::filesystem::canonical(executable, ignored).string();
  if (fail(scratch.end(scratch.coordinator(), SIGTERM))) return false;
  if (out.proof.empty()) out.at_ms = boot_now();  // first switch, not the one back
  if (fail(scratch.start_coordinator(executable))) return false;
  bool all = scratch.coordinator().process->executable() == path;
  for (uint32_t node = 0; node < scratch.options().nodes; ++node) {
    // SIGUSR2: leave the pods running.
    if (fail(scratch.end(scratch.agent(node), SIGUSR2))) return false;
    if (fail(scratch.start_agent(node, executable))) return false;
    all = all && scratch.agent(node).process->executable() == path;
  }
  if (fail(scratch.wait_ready())) return false;
  out.proof += (out.proof.empty() ? "" : ", then ") + path;
  return all;
}

void Injector::upgrade(const Step& step, Injected& out) {
  const bool there = restart_with(site_.binary, out);
  pause_(step.hold_ms);
  const bool back = restart_with(site_.scratch->options().executable, out);
  out.confirmed = there && back;
  if (out.confirmed) out.proof = "coordinator and agents ran " + out.proof;
}

void Injector::restore(const Step& step, Observer& observer, Injected& out) {
  Scratch& scratch = *site_.scratch;
  const std::string number = std::to_string(probes_++);
  const std::string backup = scratch.options().dir + "/backup-" + number;
  Gap gap{boot_now(), 0};
  auto answer = site_.client->post("/apis/muster.dev/v1/backups", dumped(Json{{"dir", backup}}));
  if (!answer) return void(out.proof = answer.error().message);
  if (!answer->ok()) return void(out.proof = refusal(*answer).message);
  pause_(step.hold_ms);
  observer.pause();
  out.at_ms = boot_now();
  const std::string next = scratch.options().dir + "/coordinator-" + number;
  Status done = scratch.end(scratch.coordinator(), SIGKILL);
  if (done) done = scratch.run_verb({"restore", backup, "--data-dir", next});
  if (done) {
    scratch.use_data_dir(next);
    done = scratch.start_coordinator();
  }
  gap.restored_ms = boot_now();
  if (done) done = scratch.wait_ready();
  observer.resume();
  gap_ = gap;
  if (!done) return void(out.proof = done.error().message);
  out.confirmed = true;
  out.proof = "a backup " + std::to_string(out.at_ms - gap.backup_ms) +
              " ms older than the state that was lost was restored";
}

}  // namespace muster::cli::drill
