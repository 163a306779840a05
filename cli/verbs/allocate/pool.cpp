#include "cli/verbs/allocate/pool.hpp"

#include "client/terminal/text.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace muster::cli::allocate {
namespace {

constexpr Millis kBackoffFirst = 10'000, kBackoffMax = 600'000;
// How long an agent may take to leave before its allocation is ended.
constexpr Millis kLeaveMax = 120'000;

std::string count_text(uint64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string hours_text(Millis ms) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", static_cast<double>(ms) / 3'600'000);
  return text;
}

std::string waiting_text(const Need& need) {
  return need.pods == 1 ? "1 pod waits" : std::to_string(need.pods) + " pods wait";
}

}  // namespace

std::string node_of(const std::string& pool, const std::string& id) {
  return pool + "-" + id.substr(0, id.find('.'));
}

Pool::Pool(PoolSettings settings, Books books)
    : settings_(std::move(settings)), books_(std::move(books)) {}

const PoolNode* Pool::node(const Look& look, const std::string& id) const {
  const auto found = look.nodes.find(node_of(settings_.name, id));
  return found == look.nodes.end() ? nullptr : &found->second;
}

Plan Pool::look(const Look& look) {
  Plan plan;
  follow_allocations(look, plan);
  follow_nodes(look, plan);
  const Need need = need_of(look.demand, shape_, settings_.time_ms);
  give_back(look, need, plan);
  ask(look, need, plan);
  first_ = false;
  return plan;
}

void Pool::submitted(const std::string& id, Millis now) {
  known_[id] = {.first_ms = now, .seen_ms = now};
}

News Pool::submission_failed(const std::string& why, Millis now) {
  return failed("the batch system accepts no allocation: " + why, now, now);
}

// Waits longer after each failure, except for those of allocations that were asked for before the
// last one: they fail for the same cause.
News Pool::failed(const std::string& why, Millis now, Millis asked_ms) {
  if (failures_.count == 0 || asked_ms > failures_.at_ms) {
    const Millis wait =
        std::min(kBackoffMax, kBackoffFirst << std::min<uint32_t>(failures_.count, 10));
    failures_ = {failures_.count + 1, now, now + wait};
  }
  return {true, why + " (" + count_text(failures_.count, "failure") +
                    " in a row; the next request is in " +
                    short_span(std::max<Millis>(0, failures_.retry_ms - now)) + ")"};
}

void Pool::follow_allocations(const Look& look, Plan& plan) {
  std::set<std::string> shown;
  for (const Allocation& one : look.allocations) {
    shown.insert(one.id);
    if (over_.contains(one.id)) continue;
    if (one.phase != Phase::ended) {
      follow(one, look.now, plan);
    } else if (known_.contains(one.id) || books_.open.contains(one.id)) {
      over(one.id, one, look, plan);
    } else if (const PoolNode* const its = node(look, one.id); its != nullptr && !its->ready) {
      plan.actions.push_back({Action::Kind::forget, node_of(settings_.name, one.id)});
    }
    if (one.phase == Phase::ended) over_.insert(one.id);
  }
  std::erase_if(over_, [&](const std::string& id) { return !shown.contains(id); });
  std::vector<std::string> gone;
  for (auto& [id, known] : known_)
    if (!shown.contains(id) && std::exchange(known.missing, true)) gone.push_back(id);
  for (const std::string& id : gone)
    over(id, {.id = id, .phase = Phase::ended, .state = "no longer known"}, look, plan);
  // Allocations that ended while nobody looked are charged as if they had run until now.
  for (const auto& [id, started_ms] : std::exchange(books_.open, {}))
    if (!shown.contains(id)) charge({.started_ms = started_ms}, {}, look.now);
}

void Pool::follow(const Allocation& one, Millis now, Plan& plan) {
  const auto [at, added] = known_.try_emplace(one.id);
  Known& known = at->second;
  if (added) {
    known.first_ms = now;
    plan.news.push_back({false, "found allocation " + one.id + " (" +
                                    (one.phase == Phase::queued ? "queued" : "running") + ")"});
  }
  known.missing = false;
  known.seen_ms = now;
  if (one.phase == Phase::running && known.phase == Phase::queued) {
    known.phase = Phase::running;
    const auto kept = books_.open.find(one.id);
    known.started_ms = one.started_ms                                  ? *one.started_ms
                       : kept != books_.open.end() && kept->second > 0 ? kept->second
                                                                       : now;
    if (!added) plan.news.push_back({false, "allocation " + one.id + " runs"});
  }
  books_.open.erase(one.id);
}

void Pool::charge(const Known& known, const Allocation& last, Millis now) {
  const std::optional<Millis> started = last.started_ms ? last.started_ms : known.started_ms;
  if (!started) return;
  const Millis ended = last.ended_ms.value_or(std::min(now, *started + settings_.time_ms));
  books_.spent_ms += std::max<Millis>(0, ended - *started);
}

void Pool::over(const std::string& id, const Allocation& last, const Look& look, Plan& plan) {
  const auto at = known_.find(id);
  Known known;
  if (at != known_.end()) {
    known = at->second;
    known_.erase(at);
  } else {
    known.registered = true;  // it ended while nobody looked, so that is not known
    if (const Millis started_ms = books_.open[id]; started_ms > 0) known.started_ms = started_ms;
    books_.open.erase(id);
  }
  charge(known, last, look.now);
  const std::string what = "allocation " + id;
  if (known.given_back)
    plan.news.push_back({false, what + " is over: it was given back"});
  else if (known.registered)
    plan.news.push_back({false, what + " is over: " + last.state});
  else
    plan.news.push_back(
        failed(what + " was over before it had a node: " + last.state, look.now, known.first_ms));
  if (node(look, id) != nullptr)
    plan.actions.push_back({Action::Kind::forget, node_of(settings_.name, id)});
}

void Pool::follow_nodes(const Look& look, Plan& plan) {
  for (auto& [id, known] : known_)
    if (known.phase == Phase::running) follow_node(id, known, node(look, id), look.now, plan);
}

void Pool::follow_node(const std::string& id, Known& known, const PoolNode* node, Millis now,
                       Plan& plan) {
  const std::string name = node_of(settings_.name, id);
  if (node == nullptr || !node->ready) {
    known.idle_ms.reset();
    if (!known.silent_ms) known.silent_ms = known.registered ? now : *known.started_ms;
    if (known.cancelled_ms || now - *known.silent_ms < settings_.start_ms) return;
    const std::string span = short_span(now - *known.silent_ms);
    plan.news.push_back(
        failed("allocation " + id + " runs and has had no node for " + span, now, known.first_ms));
    known.given_back = true;  // this is its failure
    cancel(id, known, false, now, plan);
    return;
  }
  known.silent_ms.reset();
  if (!std::exchange(known.registered, true))
    plan.news.push_back(
        {false, "node " + name + " is there, with " + count_text(node->shape.slots, "slot")});
  shape_ = node->shape;
  if (node->pods == 0) {
    if (!known.idle_ms) known.idle_ms = now;
    return;
  }
  known.idle_ms.reset();
  if (!std::exchange(known.used, true) && known.first_ms > failures_.at_ms) failures_ = {};
}

// Allocations that have not been told to end.
size_t Pool::staying() const {
  return static_cast<size_t>(std::count_if(known_.begin(), known_.end(), [](const auto& one) {
    return !one.second.cancelled_ms && !one.second.cordoned;
  }));
}

void Pool::cancel(const std::string& id, Known& known, bool gently, Millis now, Plan& plan) {
  known.cancelled_ms = now;
  plan.actions.push_back({gently ? Action::Kind::cancel : Action::Kind::end, id});
}

void Pool::give_back(const Look& look, const Need& need, Plan& plan) {
  give_back_queued(look.now, need, plan);
  const bool joins_gang = need.gang && std::any_of(known_.begin(), known_.end(), [](auto& one) {
                            return !one.second.registered && !one.second.cancelled_ms;
                          });
  for (auto& [id, known] : known_) {
    if (known.cancelled_ms) {
      if (look.now - *known.cancelled_ms >= kLeaveMax) cancel(id, known, false, look.now, plan);
      continue;
    }
    const PoolNode* const its = node(look, id);
    if (known.phase != Phase::running || its == nullptr || !its->ready) continue;
    if (known.cordoned && its->pods > 0) {
      known.cordoned = false;
      plan.actions.push_back({Action::Kind::uncordon, node_of(settings_.name, id)});
    } else if (known.idle_ms && look.now - *known.idle_ms >= settings_.idle_ms && !joins_gang) {
      give_back_node(id, known, *its, look.now, need, plan);
    }
  }
}

void Pool::give_back_node(const std::string& id, Known& known, const PoolNode& node, Millis now,
                          const Need& need, Plan& plan) {
  const std::string name = node_of(settings_.name, id);
  if (!known.cordoned) {
    if (staying() <= settings_.min_nodes) return;
    known.cordoned = true;
    plan.news.push_back({false, "node " + name + " has been without pods for " +
                                    short_span(now - *known.idle_ms) + ": giving back allocation " +
                                    id});
    if (may_cordon_) {
      plan.actions.push_back({Action::Kind::cordon, name});
      return;
    }
  }
  if (may_cordon_ && !node.cordoned) {
    plan.actions.push_back({Action::Kind::cordon, name});
    return;
  }
  known.given_back = true;
  cancel(id, known, true, now, plan);
  if (!known.used && need.pods > 0)
    plan.news.push_back(failed("node " + name + " ran no pod, although " + waiting_text(need) +
                                   ": `muster why` says what they wait for",
                               now, known.first_ms));
}

// Without demand for a while, what is still in the queue is not wanted.
void Pool::give_back_queued(Millis now, const Need& need, Plan& plan) {
  if (need.pods > 0) {
    no_demand_ms_.reset();
    return;
  }
  if (!no_demand_ms_) no_demand_ms_ = now;
  if (now - *no_demand_ms_ < settings_.idle_ms) return;
  size_t staying = this->staying();
  for (auto& [id, known] : known_) {
    if (staying <= settings_.min_nodes) return;
    if (known.phase != Phase::queued || known.cancelled_ms) continue;
    --staying;
    known.given_back = true;
    cancel(id, known, false, now, plan);
    plan.news.push_back({false, "no pods wait: cancelling allocation " + id + ", which is queued"});
  }
}

// Nodes on the way, and those that are there and empty.
uint64_t Pool::supply(const Look& look) const {
  uint64_t nodes = 0;
  for (const auto& [id, known] : known_) {
    if (known.cancelled_ms || known.cordoned) continue;
    const PoolNode* const its = node(look, id);
    if (!known.registered || (its != nullptr && its->ready && !its->cordoned && its->pods == 0))
      ++nodes;
  }
  return nodes;
}

// What those that have not ended may still take, and have taken.
Millis Pool::promised_ms() const {
  return static_cast<Millis>(known_.size()) * settings_.time_ms;
}

void Pool::ask(const Look& look, const Need& need, Plan& plan) {
  const uint64_t coming = supply(look);
  // Pods that have only just been created may get slots that are free.
  const bool waited = std::exchange(waited_, need.pods > 0);
  uint64_t wanted = waited && need.nodes > coming ? need.nodes - coming : 0;
  if (const size_t stays = staying(); stays < settings_.min_nodes)
    wanted = std::max<uint64_t>(wanted, settings_.min_nodes - stays);
  if (wanted == 0) {
    plan.standing = need.pods == 0
                        ? "no pods wait for nodes"
                        : waiting_text(need) + "; " + count_text(coming, "node") + " for them " +
                              (coming == 1 ? "is" : "are") + " there or on the way";
    return;
  }
  const std::string waits =
      need.pods == 0 ? "the minimum is " + std::to_string(settings_.min_nodes) : waiting_text(need);
  const uint64_t there = known_.size(), queued = count(Phase::queued);
  const auto short_of = [&](uint64_t most, uint64_t have, const std::string& why) {
    if (const uint64_t room = most > have ? most - have : 0; room < wanted) {
      wanted = room;
      plan.standing = waits + "; " + why;
    }
  };
  short_of(settings_.max_nodes, there,
           std::to_string(there) + " of at most " + count_text(settings_.max_nodes, "allocation") +
               " are there (--max-nodes)");
  short_of(settings_.backlog, queued,
           count_text(queued, "allocation") + " in the queue, at most " +
               std::to_string(settings_.backlog) + " at a time (--backlog)");
  if (settings_.budget_ms) {
    const Millis taken = books_.spent_ms + promised_ms();
    const Millis left = std::max<Millis>(0, *settings_.budget_ms - taken);
    short_of(static_cast<uint64_t>(left / settings_.time_ms), 0,
             "of " + hours_text(*settings_.budget_ms) + " node hours, " +
                 hours_text(books_.spent_ms) + " are spent and " + hours_text(promised_ms()) +
                 " promised to allocations (--budget)");
  }
  if (look.now < failures_.retry_ms) {
    wanted = 0;
    plan.standing = waits + "; the next request is in " +
                    short_span(failures_.retry_ms - look.now) + ", after " +
                    count_text(failures_.count, "failure");
  }
  if (wanted == 0) return;
  plan.news.push_back({false, waits + ": asking for " + count_text(wanted, "allocation")});
  plan.actions.insert(plan.actions.end(), wanted, {Action::Kind::submit});
}

Books Pool::books() const {
  Books books = books_;
  for (const auto& [id, known] : known_) books.open[id] = known.started_ms.value_or(0);
  return books;
}

std::vector<PoolAllocation> Pool::allocations() const {
  std::vector<PoolAllocation> all;
  for (const auto& [id, known] : known_) {
    PoolAllocation one{id, "Running", known.registered ? node_of(settings_.name, id) : "",
                       known.started_ms.value_or(known.first_ms)};
    if (known.cancelled_ms) {
      one.state = "Leaving";
      one.since_ms = *known.cancelled_ms;
    } else if (known.phase == Phase::queued) {
      one.state = "Queued";
    } else if (!known.registered) {
      one.state = "Starting";
    } else if (known.silent_ms) {
      one.state = "Silent";
      one.since_ms = *known.silent_ms;
    } else if (known.idle_ms) {
      one.state = "Idle";
      one.since_ms = *known.idle_ms;
    }
    all.push_back(std::move(one));
  }
  return all;
}

size_t Pool::count(Phase phase) const {
  return static_cast<size_t>(std::count_if(
      known_.begin(), known_.end(), [&](const auto& one) { return one.second.phase == phase; }));
}

bool Pool::is_running(const std::string& id) const {
  const auto found = known_.find(id);
  return found != known_.end() && found->second.phase == Phase::running;
}

std::vector<std::string> Pool::ids() const {
  std::vector<std::string> all;
  for (const auto& [id, known] : known_) all.push_back(id);
  return all;
}

}  // namespace muster::cli::allocate
