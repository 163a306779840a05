#include "core/node/node.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <utility>

namespace muster::core::node {

namespace {
constexpr int kExitKilled = 137;  // 128 + SIGKILL: what is said of an exit code that nobody knows
}

bool Node::obeys(Term term) {
  if (term.epoch < term_.epoch) return false;
  if (term.epoch == term_.epoch && term_.nonce != 0 && term.nonce != term_.nonce) return false;
  term_ = term;
  return true;
}

bool Node::may_start(Millis now) const {
  return !stopping_ && now < lease_until_ && fencing_.empty();
}

bool Node::registered(const Welcome& welcome, Millis sent_at) {
  if (!obeys(welcome.term)) return false;
  disconnected();  // what an earlier session had under way belongs to the new one
  connected_ = true;
  lease_ms_ = welcome.lease_ms;
  lease_until_ = std::max(lease_until_, sent_at + lease_ms_);
  fence(welcome.end, sent_at);
  return true;
}

void Node::fence(const std::vector<PodId>& pods, Millis now) {
  for (PodId id : pods) {
    auto pod = pods_.find(id);
    if (pod == pods_.end()) continue;  // unknown, or ended already: its end is reported anyway
    if (pod->second.running) fencing_.insert(id);
    stop_pod(pod, Cause::fenced, 0, now);
  }
}

void Node::new_cluster() {
  MUSTER_CHECK(empty());
  term_ = {};
  lease_until_ = 0;
}

bool Node::launch(Term term, const std::vector<Launch>& pods, Millis now) {
  if (!obeys(term)) return false;
  for (const Launch& launch : pods) {
    if (knows(launch.pod)) continue;
    auto pod = pods_.emplace(launch.pod, Pod{.grace_ms = launch.grace_ms}).first;
    if (stopping_) {
      finish_unstarted(pod, Cause::agent_stopped, now);
    } else {
      waiting_.push_back(launch.pod);
    }
  }
  return true;
}

bool Node::kill(Term term, const std::vector<Kill>& kills, Millis now) {
  if (!obeys(term)) return false;
  for (const Kill& kill : kills) {
    if (auto pod = pods_.find(kill.pod); pod != pods_.end()) {
      stop_pod(pod, Cause::killed, kill.grace_ms, now);
    } else if (!unacked_.contains(kill.pod)) {
      // Its launch was lost, or is yet to come and is then known as ended.
      finish({.pod = kill.pod, .cause = Cause::never_started, .ended_at = now}, {});
    }
  }
  return true;
}

bool Node::heartbeat_answered(Term term, Millis sent_at) {
  if (!obeys(term)) return false;
  lease_until_ = std::max(lease_until_, sent_at + lease_ms_);
  return true;
}

void Node::report_returned(uint64_t id) {
  auto flight = flights_.find(id);
  if (flight == flights_.end()) return;
  for (PodId pod : flight->second.starts) {
    if (auto found = pods_.find(pod); found != pods_.end()) found->second.start_acked = true;
  }
  for (PodId pod : flight->second.ends) {
    auto found = unacked_.find(pod);
    forget_.insert(forget_.end(), found->second.entries.begin(), found->second.entries.end());
    unacked_.erase(found);
  }
  flights_.erase(flight);
}

void Node::disconnected() {
  connected_ = false;
  // Oldest first, so that what ended first is reported first again.
  for (auto flight = flights_.rbegin(); flight != flights_.rend(); ++flight) {
    const auto& [starts, ends] = flight->second;
    starts_.insert(starts_.begin(), starts.begin(), starts.end());
    ends_.insert(ends_.begin(), ends.begin(), ends.end());
  }
  flights_.clear();
}

void Node::stop_pod(Pods::iterator pod, Cause why, Millis grace_ms, Millis now) {
  Pod& p = pod->second;
  if (!p.running)
    return finish_unstarted(pod, why == Cause::killed ? Cause::never_started : why, now);
  if (p.stop) {
    if (why == Cause::fenced) p.stop = why;
    if (grace_ms >= p.stop_grace_ms) return;  // a repeated kill may only shorten the grace
  } else {
    p.stop = why;
  }
  p.stop_grace_ms = grace_ms;
  kills_.push_back({pod->first, p.step, grace_ms});
}

void Node::finish_unstarted(Pods::iterator pod, Cause why, Millis now) {
  PodId id = pod->first;
  auto entries = std::move(pod->second.entries);
  if (pod->second.running) --running_;
  pods_.erase(pod);
  fencing_.erase(id);
  finish({.pod = id, .cause = why, .ended_at = now}, std::move(entries));
}

void Node::finish(PodEnded end, std::vector<uint64_t> entries) {
  PodId id = end.pod;
  unacked_.insert_or_assign(id, Unacked{std::move(end), std::move(entries)});
  ends_.push_back(id);
  over_.push_back(id);
}

void Node::process_started(const ProcessStart& start) {
  auto found = pods_.find(start.pod);
  if (found == pods_.end() || !found->second.running || found->second.step != start.step) return;
  Pod& pod = found->second;
  if (pod.pid == 0) pod.started_at = start.at;
  if (pod.pid != start.pid) {
    pod.pid = start.pid;
    pod.start_acked = false;
    starts_.push_back(start.pod);
  }
  // The kill may have overtaken the start; ordered twice it does no harm.
  if (pod.stop) kills_.push_back({start.pod, pod.step, pod.stop_grace_ms});
}

void Node::process_ended(const ProcessEnd& end) {
  PodEnded pod_end{.pod = end.pod,
                   .cause = Cause::exited,
                   .exit_code = end.lost ? kExitKilled : end.exit_code,
                   .signal = end.signal,
                   .message = end.error,
                   .started_at = end.started_at,
                   .ended_at = end.ended_at,
                   .pid = end.pid};
  std::vector<uint64_t> entries;
  std::optional<Cause> stop;
  auto found = pods_.find(end.pod);
  if (found != pods_.end()) {
    Pod& pod = found->second;
    stop = pod.stop;
    entries = std::move(pod.entries);
    pod_end.restarts = pod.restarts;
    if (pod.running) --running_;
    pods_.erase(found);
    fencing_.erase(end.pod);
  } else if (auto known = unacked_.find(end.pod); known != unacked_.end()) {
    // Told again after a reconnect of the hands, or an end beside the one that counted: to be
    // forgotten with it.
    auto& had = known->second.entries;
    if (end.entry != 0 && std::find(had.begin(), had.end(), end.entry) == had.end()) {
      had.push_back(end.entry);
    }
    return;
  }
  if (end.entry != 0) entries.push_back(end.entry);
  if (stop == Cause::fenced) {
    pod_end.cause = Cause::fenced;
  } else if (end.lost) {
    pod_end.cause = Cause::keeper_lost;
  } else if (end.pid == 0 && !stop) {
    pod_end.cause = Cause::start_failed;
  } else if (end.pid == 0 && stop == Cause::killed) {
    pod_end.cause = Cause::never_started;
  } else {
    pod_end.cause = stop.value_or(Cause::exited);
  }
  finish(std::move(pod_end), std::move(entries));
}

void Node::hands_connected(const std::vector<Living>& living, const std::vector<ProcessEnd>& ended,
                           Millis now) {
  for (const ProcessEnd& end : ended) process_ended(end);
  std::set<PodId> alive;
  for (const Living& l : living) {
    alive.insert(l.process.pod);
    auto [pod, fresh] = pods_.try_emplace(l.process.pod);
    if (fresh) {
      pod->second.adopted = true;
      pod->second.grace_ms = l.grace_ms;
    }
    if (!pod->second.running) {
      pod->second.running = true;
      pod->second.step = l.process.step;
      ++running_;
    }
    if (l.killing && !pod->second.stop) {
      pod->second.stop = Cause::killed;
      pod->second.stop_grace_ms = l.grace_ms;  // not known; the keeper lets it only shrink
    }
    process_started(l.process);
  }
  std::vector<PodId> lost;
  for (const auto& [id, pod] : pods_) {
    if (pod.running && !alive.contains(id)) lost.push_back(id);
  }
  for (auto id = lost.rbegin(); id != lost.rend(); ++id) {
    auto pod = pods_.find(*id);
    Pod& p = pod->second;
    if (p.pid != 0 || p.adopted) {
      process_ended({.pod = *id,
                     .step = p.step,
                     .pid = p.pid,
                     .lost = true,
                     .error = "the keeper of its process is gone",
                     .started_at = p.started_at,
                     .ended_at = now});
    } else if (p.stop) {
      finish_unstarted(pod, *p.stop == Cause::killed ? Cause::never_started : *p.stop, now);
    } else {  // the order had not reached the old hands
      p.running = false;
      --running_;
      waiting_.push_front(*id);
    }
  }
}

void Node::stop(Millis now) {
  stopping_ = true;
  std::vector<PodId> all;
  for (const auto& entry : pods_) all.push_back(entry.first);
  for (PodId id : all) {
    auto pod = pods_.find(id);
    stop_pod(pod, Cause::agent_stopped, pod->second.grace_ms, now);
  }
}

Report Node::take_report() {
  Report report{.id = ++last_report_};
  Flight flight;
  while (!starts_.empty() && flight.starts.size() < kListMax) {
    PodId id = starts_.front();
    starts_.pop_front();
    auto pod = pods_.find(id);
    if (pod == pods_.end() || pod->second.pid == 0 || pod->second.start_acked) continue;
    flight.starts.push_back(id);
    report.starts.push_back({id, pod->second.pid, pod->second.started_at, pod->second.restarts});
  }
  while (!ends_.empty() && flight.ends.size() < kListMax) {
    PodId id = ends_.front();
    ends_.pop_front();
    flight.ends.push_back(id);
    report.ends.push_back(unacked_.at(id).end);
  }
  if (!flight.starts.empty() || !flight.ends.empty()) {
    flights_.emplace(report.id, std::move(flight));
  }
  return report;
}

Orders Node::next(Millis now) {
  Orders orders;
  orders.kills = std::exchange(kills_, {});
  while (running_ < slots_ && !waiting_.empty() && may_start(now)) {
    PodId id = waiting_.front();
    waiting_.pop_front();
    auto pod = pods_.find(id);
    if (pod == pods_.end() || pod->second.running) continue;
    pod->second.running = true;
    ++running_;
    orders.starts.push_back({id, pod->second.step});
  }
  bool send_now =
      starts_.size() + ends_.size() >= kListMax || pods_.size() + unacked_.size() < kGatherFrom;
  if (now < reported_at_ + gather_ms_ && !send_now) {
    if (!starts_.empty() || !ends_.empty()) orders.again_at = reported_at_ + gather_ms_;
  } else {
    take_reports(orders, now);
  }
  orders.forget = std::exchange(forget_, {});
  orders.over = std::exchange(over_, {});
  return orders;
}

void Node::take_reports(Orders& orders, Millis now) {
  while (connected_ && flights_.size() < kReportsMax && (!starts_.empty() || !ends_.empty())) {
    reported_at_ = now;
    Report report = take_report();
    if (!report.starts.empty() || !report.ends.empty()) orders.reports.push_back(std::move(report));
  }
}

std::vector<PodId> Node::running() const {
  std::vector<PodId> ids;
  for (const auto& [id, pod] : pods_) {
    if (pod.running) ids.push_back(id);
  }
  return ids;
}

std::vector<PodId> Node::waiting() const {
  std::vector<PodId> ids;
  for (const auto& [id, pod] : pods_) {
    if (!pod.running) ids.push_back(id);
  }
  return ids;
}

std::vector<PodId> Node::ended() const {
  std::vector<PodId> ids;
  for (const auto& entry : unacked_) ids.push_back(entry.first);
  return ids;
}

}  // namespace muster::core::node
