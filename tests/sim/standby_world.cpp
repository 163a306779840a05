// Time, the network, faults and clients of the simulated cluster with standbys.
#include "tests/sim/standby_world.hpp"

#include "tests/sim/standby_process.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

namespace muster::sim::standby {

using core::standby::Configuration;

namespace {

constexpr Micros kMilli = 1'000, kSecond = 1'000'000;
// After the faults: everything must be well by then.
constexpr Micros kWellWithin = 40 * kSecond;

core::standby::Timing believed(Plant plant) {
  core::standby::Timing timing;
  // Of which relied_on() leaves the whole lease, and the whole promise.
  if (plant == Plant::drift_ignored) timing.lease_ms = timing.promise_ms = 3'157;
  return timing;
}

}  // namespace

World::World(Plan plan) : plan_(plan), random_(plan.seed), believed_(believed(plan.plant)) {
  // The fastest clock is faster than the slowest by one part in kDrift.
  const auto speed = [this] {
    if (!plan_.drift) return 1.0;
    const double most = 1.0 / core::standby::Timing::kDrift;
    return 1.0 + (chance(0.7) ? (chance(0.5) ? most : 0) : most * double(between(0, 100)) / 100);
  };
  Configuration first;
  first.cluster = "simulated";
  first.leader = "a";
  first.in_sync["a"] = "first";
  for (int i = 0; i < plan_.replicas; ++i) {
    Replica replica;
    replica.id = i;
    replica.name = std::string(1, static_cast<char>('a' + i));
    replica.speed = speed();
    if (i == 0) replica.disk.seats = {"first"};
    replicas_.push_back(std::move(replica));
  }
  sitting_["a"] = 1;
  const int one = static_cast<int>(between(0, plan_.replicas - 1));
  const int other = static_cast<int>(between(0, plan_.replicas - 1));
  far_ = {one, other == one ? kStore : other};
  if (plan_.far.second != 0) far_ = plan_.far;
  store_speed_ = speed();
  store_ = std::make_unique<Store>(first, timing_.lease_ms);
  store_->changed = [this, before = first.in_sync]() mutable {
    const auto& in_sync = store_->held().configuration.in_sync;
    for (const auto& [member, seat] : in_sync) {
      if (const auto it = before.find(member); it != before.end() && it->second == seat) continue;
      ++count_.added;
      for (const Replica& replica : replicas_)
        if (replica.name == member) sitting_[member] = replica.disk.seats.size();
    }
    before = in_sync;
    check_in_sync(true);
  };
}

World::~World() = default;

World::Count World::count() const {
  Count count = count_;
  count.acknowledged = history_.acknowledged;
  count.read = history_.read;
  count.leads = history_.leads_count;
  return count;
}

void World::trace(const Replica& replica, const std::string& what) const {
  if (plan_.verbose)
    std::printf("%9.3f %s %s\n", double(now_) / kSecond, replica.name.c_str(), what.c_str());
}

// ---- time

void World::at(Micros when, std::function<void()> what) {
  events_.push({when, ++order_, -1, 0, std::move(what)});
}

void World::in_life(const Replica& replica, uint64_t life, Micros when,
                    std::function<void()> what) {
  events_.push({when, ++order_, replica.id, life, std::move(what)});
}

void World::in(Replica& replica, Micros delay, std::function<void()> what) {
  in_life(replica, replica.life, now_ + delay, std::move(what));
}

Millis World::clock(const Replica& replica) const {
  return static_cast<Millis>(double(now_) * replica.speed / kMilli);
}

Micros World::local(const Replica& replica, Millis ms) const {
  return static_cast<Micros>(double(ms * kMilli) / replica.speed);
}

void World::run_event(Event event) {
  ++count_.events;
  if (event.replica < 0) return event.what();
  Replica& replica = replicas_[static_cast<size_t>(event.replica)];
  if (event.life != replica.life || !replica.process) return;
  if (now_ < replica.frozen_until) {
    replica.deferred.push_back(std::move(event));
    return;
  }
  try {
    event.what();
  } catch (const Crashed&) {
    crash(replica, plan_.power && chance(0.5));
  }
}

void World::advance(Micros until) {
  while (!events_.empty() && events_.top().at <= until && history_.broken.empty()) {
    Event event = events_.top();
    events_.pop();
    now_ = std::max(now_, event.at);
    run_event(std::move(event));
  }
  now_ = std::max(now_, until);
}

void World::step(Replica& replica) {
  if (calm_ || !chance(plan_.step_crash)) return;
  trace(replica, "crashes between two steps");
  throw Crashed();
}

void World::end(Replica& replica, const char* why) {
  trace(replica, why);
  throw Crashed();
}

// ---- the network

Micros World::travel(int a, int b) {
  if (!calm_ && chance(0.01)) return between(10 * kMilli, kSecond);
  const bool far = std::minmax(a, b) == std::minmax(far_.first, far_.second);
  return between(50, 1'500) + (far && !calm_ ? plan_.far_ms * kMilli : 0);
}

World::LinkPtr World::connect(Replica& from, Replica& to) {
  auto link = std::make_shared<Link>();
  link->ends = {from.id, to.id};
  link->lives = {from.life, to.life};
  link->busy_until = {now_, now_};
  links_.push_back(link);
  if (!to.process || cut(from.id, to.id)) break_link(link);
  return link;
}

void World::send(const LinkPtr& link, int to, std::function<void(Replica&)> what) {
  if (!link->open) return;
  const size_t end = link->ends[0] == to ? 0 : 1;
  Micros when = now_ + travel(link->ends[0], link->ends[1]);
  // What is on its way when the network is cut arrives late, if it is not cut any more.
  if (cut(link->ends[0], link->ends[1])) when += between(300 * kMilli, 5 * kSecond);
  when = std::max(link->busy_until[end] + 1, when);
  link->busy_until[end] = when;
  Replica& receiver = replicas_[static_cast<size_t>(to)];
  at(when, [this, link, end, &receiver, what = std::move(what)]() mutable {
    if (link->lost) return;
    if (cut(link->ends[0], link->ends[1])) {
      link->lost = true;
      return break_link(link);
    }
    in_life(receiver, link->lives[end], now_,
            [&receiver, what = std::move(what)] { what(receiver); });
  });
}

void World::break_link(const LinkPtr& link) {
  if (!link->open) return;
  link->open = false;
  link->lost = chance(0.5);
  for (size_t end = 0; end < 2; ++end) {
    const Replica& replica = replicas_[static_cast<size_t>(link->ends[end])];
    const Micros noticed =
        now_ + (chance(0.7) ? between(50, 2'000) : between(10 * kMilli, 3 * kSecond));
    in_life(replica, link->lives[end], std::max(link->busy_until[end] + 1, noticed),
            [this, link, end] { on_break(replicas_[static_cast<size_t>(link->ends[end])], link); });
  }
}

void World::on_break(Replica& replica, const LinkPtr& link) {
  Process& p = *replica.process;
  if (p.upstream == link) drop_upstream(replica);
  if (p.leader) session_gone(replica, link);
}

// ---- requests to the store

struct World::Asked {
  int replica = -1;
  uint64_t life = 0;
  std::function<Answer(Store&, Millis)> what;
  Answered answered;
  bool over = false;  // it has its answer, or is not waited for any more
};

void World::ask(Replica& replica, std::function<Answer(Store&, Millis)> what, Answered answered) {
  auto asked = std::make_shared<Asked>(
      Asked{replica.id, replica.life, std::move(what), std::move(answered)});
  in(replica, local(replica, 1'000), [asked] {
    if (!std::exchange(asked->over, true)) asked->answered(std::nullopt);
  });
  if (cut(replica.id, kStore) || (!calm_ && chance(plan_.lost_request))) return;
  Micros when = now_ + travel(replica.id, kStore);
  if (!calm_ && chance(plan_.late_request)) when += between(100 * kMilli, 8 * kSecond);
  at(when, [this, asked] { arrive(asked); });
  if (!calm_ && chance(plan_.twice_request))
    at(when + between(0, 8 * kSecond), [this, asked] { arrive(asked); });
}

void World::arrive(const std::shared_ptr<Asked>& asked) {
  Replica& replica = replicas_[static_cast<size_t>(asked->replica)];
  if (!quorum_) {
    if (chance(0.5)) at(now_ + 500 * kMilli, [this, asked] { arrive(asked); });
    return;
  }
  const Answer answer = asked->what(*store_, store_clock());
  if (cut(replica.id, kStore) || (!calm_ && chance(plan_.lost_request))) return;
  in_life(replica, asked->life, now_ + travel(kStore, replica.id), [asked, answer] {
    if (!std::exchange(asked->over, true)) asked->answered(answer);
  });
}

// ---- processes

void World::start(Replica& replica) {
  if (replica.process) return;
  if (chance(0.3)) put_newest_back(replica);
  if (replica.restore) put_older_copy(replica);
  ++replica.life;
  const core::EpochLine line = line_of(replica.disk.log);
  const uint64_t epoch = line.empty() ? 0 : line.last().epoch;
  core::standby::Timing timing = timing_;
  if (planted(Plant::promise_forgotten)) timing.promise_ms = 0;
  core::standby::Follower follower(
      timing, replica.name,
      std::set<std::string>(replica.disk.seats.begin(), replica.disk.seats.end()), epoch,
      clock(replica));
  replica.process = std::make_unique<Process>(std::move(follower));
  replica.process->patience = between(2'000, 6'000);
  replica.leader = -1;
  trace(replica, "starts at commit " + std::to_string(replica.disk.log.size()));
  in(replica, between(1'000, 100'000), [this, &replica] { tick_follower(replica); });
}

void World::crash(Replica& replica, bool power) {
  if (!replica.process) return;
  trace(replica, power ? "loses power" : "is down");
  ++count_.crashes;
  replica.process.reset();
  ++replica.life;
  replica.deferred.clear();
  replica.frozen_until = 0;
  for (const auto& weak : links_)
    if (const LinkPtr link = weak.lock();
        link && (link->ends[0] == replica.id || link->ends[1] == replica.id))
      break_link(link);
  std::erase_if(links_, [](const auto& weak) { return weak.expired() || !weak.lock()->open; });
  DataDir& disk = replica.disk;
  if (power) {
    disk.log.resize(static_cast<size_t>(
        between(static_cast<int64_t>(disk.synced), static_cast<int64_t>(disk.log.size()))));
    disk.synced = disk.log.size();
  }
  const Micros down =
      calm_ || chance(0.7) ? between(50 * kMilli, kSecond) : between(kSecond, 12 * kSecond);
  at(now_ + down, [this, &replica] { start(replica); });
}

void World::freeze(Replica& replica, Micros how_long) {
  if (!replica.process || now_ < replica.frozen_until) return;
  trace(replica, "freezes");
  replica.frozen_until = now_ + how_long;
  at(replica.frozen_until, [this, &replica] { thaw(replica); });
}

void World::thaw(Replica& replica) {
  if (now_ < replica.frozen_until) return;
  trace(replica, "goes on");
  for (Event& event : std::exchange(replica.deferred, {})) {
    event.at = now_ + between(0, 50);
    event.order = ++order_;
    // What a link brings stays in order.
    events_.push(std::move(event));
  }
}

// ---- faults

void World::repeat(Millis mean, std::function<void()> fault) {
  if (mean == 0) return;
  at(now_ + between(0, 2 * mean * kMilli), [this, mean, fault = std::move(fault)] {
    if (calm_) return;
    ++count_.faults;
    fault();
    repeat(mean, fault);
  });
}

void World::cut_off() {
  const int parties[] = {0, 1, plan_.replicas - 1, kStore, kClients};
  // One party from all others, or two from each other.
  const int one = parties[between(0, 3)], other = parties[between(0, 4)];
  const bool all = chance(0.3);
  const Micros how_long = between(100 * kMilli, 15 * kSecond);
  for (int party = 0; party < kParties; ++party)
    if (party != one && (all ? party != kStore || chance(0.5) : party == other))
      cut_for(one, party, 0, how_long);
}

void World::cut_for(int a, int b, Micros from, Micros how_long) {
  const auto change = [this, a, b](int by) {
    if (calm_) return;
    cut_[static_cast<size_t>(a)][static_cast<size_t>(b)] += by;
    cut_[static_cast<size_t>(b)][static_cast<size_t>(a)] += by;
  };
  at(now_ + from, [change] { change(1); });
  at(now_ + from + how_long, [change] { change(-1); });
}

// Around the end of the lease and of the promises; the leader may sleep through it.
void World::isolate_leader() {
  for (Replica& replica : replicas_) {
    if (!replica.process || !replica.process->serving) continue;
    for (int other = 0; other <= kStore; ++other) {
      if (other == replica.id) continue;
      const Micros from = between(0, 600 * kMilli);
      cut_for(replica.id, other, from, between(2'500 * kMilli, 4'500 * kMilli) - from);
    }
    if (!chance(plan_.sleeps)) continue;
    at(now_ + between(2'000 * kMilli, 3'300 * kMilli), [this, &replica, life = replica.life] {
      if (replica.life == life) freeze(replica, between(plan_.sleeps_ms * kMilli, 3'200 * kMilli));
    });
  }
}

void World::lose_quorum() {
  if (!quorum_) return;
  quorum_ = false;
  at(now_ + between(200 * kMilli, 12 * kSecond), [this] {
    store_->extend(store_clock());
    quorum_ = true;
  });
}

void World::take_backups() {
  for (Replica& replica : replicas_) {
    if (!chance(0.3)) continue;
    replica.backup = replica.disk;
    replica.backup->log.resize(replica.disk.synced);
  }
}

// A copy of the time before the data-dir got its present seat: what the protocol promises to
// notice.
void World::put_older_copy(Replica& replica) {
  replica.restore = false;
  if (!replica.backup) return;
  const DataDir& copy = *replica.backup;
  const auto& in_sync = store_->held().configuration.in_sync;
  const auto it = in_sync.find(replica.name);
  const bool sits = it != in_sync.end();
  const auto has_seat = [&](const DataDir& dir) {
    return sits && std::find(dir.seats.begin(), dir.seats.end(), it->second) != dir.seats.end();
  };
  if (copy.seats.size() >= replica.disk.seats.size()) return;
  if (planted(Plant::seat_kept) ? sits && copy.seats.size() >= sitting_[replica.name]
                                : has_seat(copy))
    return;
  trace(replica, "is on an older copy");
  ++count_.copies;
  if (!replica.newest || !has_seat(*replica.newest)) replica.newest = replica.disk;
  replica.disk = copy;
}

// An operator notices the older copy.
void World::put_newest_back(Replica& replica) {
  const auto& in_sync = store_->held().configuration.in_sync;
  const auto it = in_sync.find(replica.name);
  if (it == in_sync.end() || !replica.newest) return;
  const auto has_seat = [&](const DataDir& dir) {
    return std::find(dir.seats.begin(), dir.seats.end(), it->second) != dir.seats.end();
  };
  if (has_seat(replica.disk) || !has_seat(*replica.newest)) return;
  trace(replica, "is on its newest data-dir again");
  crash(replica, false);
  replica.disk = std::move(*replica.newest);
  replica.newest.reset();
  check_in_sync(true);
}

void World::hand_over() {
  for (Replica& replica : replicas_) {
    if (!replica.process || !replica.process->serving || now_ < replica.frozen_until) continue;
    Process& p = *replica.process;
    if (p.handing_to >= 0 || p.released || p.sessions.empty()) continue;
    auto to = p.sessions.begin();
    std::advance(to, between(0, static_cast<int64_t>(p.sessions.size()) - 1));
    p.handing_to = to->first;
    p.handing_since = clock(replica);
    trace(replica, "is to hand over");
  }
}

void World::remove_replica() {
  for (Replica& replica : replicas_) {
    if (!replica.process || !replica.process->serving || now_ < replica.frozen_until) continue;
    Process& p = *replica.process;
    if (p.released || p.sessions.empty()) continue;
    auto member = p.sessions.begin();
    std::advance(member, between(0, static_cast<int64_t>(p.sessions.size()) - 1));
    const LinkPtr link = member->second.link;
    const std::string& name = replicas_[static_cast<size_t>(member->first)].name;
    trace(replica, "is to forget " + name);
    p.leader->forgets(name);
    session_gone(replica, link);
    break_link(link);
  }
}

void World::plan_faults() {
  const auto any = [this]() -> Replica& {
    return replicas_[static_cast<size_t>(between(0, plan_.replicas - 1))];
  };
  repeat(plan_.crashes, [this, any] { crash(any(), plan_.power && chance(0.5)); });
  repeat(plan_.blackouts, [this] {
    for (Replica& replica : replicas_) crash(replica, plan_.power);
  });
  repeat(plan_.freezes, [this, any] {
    freeze(any(),
           chance(0.8) ? between(100 * kMilli, 8 * kSecond) : between(8 * kSecond, 60 * kSecond));
  });
  repeat(plan_.cuts, [this] { cut_off(); });
  repeat(plan_.isolations, [this] { isolate_leader(); });
  repeat(plan_.breaks, [this] {
    if (links_.empty()) return;
    const size_t which = static_cast<size_t>(between(0, static_cast<int64_t>(links_.size()) - 1));
    if (const LinkPtr link = links_[which].lock()) break_link(link);
  });
  repeat(plan_.quorum_losses, [this] { lose_quorum(); });
  repeat(plan_.hung_disks,
         [this, any] { any().hung_until = now_ + between(100 * kMilli, 10 * kSecond); });
  repeat(plan_.hand_overs, [this] { hand_over(); });
  repeat(plan_.removals, [this] { remove_replica(); });
  if (plan_.old_copies > 0) repeat(3'000, [this] { take_backups(); });
  repeat(plan_.old_copies, [any] { any().restore = true; });
}

// ---- clients

void World::to_replica(int from, int to, const std::shared_ptr<Request>& request) {
  at(now_ + travel(from, to), [this, from, to, request] {
    Replica& replica = replicas_[static_cast<size_t>(to)];
    if (!replica.process || cut(from, to)) return;
    in_life(replica, replica.life, now_,
            [this, &replica, from, request] { handle(replica, from, request); });
  });
}

void World::handle(Replica& replica, int from, const std::shared_ptr<Request>& request) {
  if (replica.process->leader) return serve(replica, request);
  if (from == kClients && replica.leader >= 0 && replica.leader != replica.id)
    to_replica(replica.id, replica.leader, request);
}

void World::write_next(size_t key) {
  auto request = std::make_shared<Request>();
  request->write = true;
  request->key = key;
  request->value = history_.write_begins(key);
  auto over = std::make_shared<bool>(false);
  request->answer = [this, key, value = request->value, over, calm = calm_](uint64_t) {
    history_.write_acknowledged(key, value);
    if (calm) answered_since_calm_[0] = true;
    if (!std::exchange(*over, true))
      at(now_ + between(5 * kMilli, 200 * kMilli), [this, key] { write_next(key); });
  };
  to_replica(kClients, static_cast<int>(between(0, plan_.replicas - 1)), request);
  at(now_ + 1'500 * kMilli, [this, key, over] {
    if (!std::exchange(*over, true)) write_next(key);
  });
}

void World::read_next() {
  auto request = std::make_shared<Request>();
  request->key = static_cast<size_t>(between(0, kKeys - 1));
  request->answer = [this, key = request->key, at_least = history_.read_begins(request->key),
                     calm = calm_](uint64_t value) {
    history_.read_answered(key, at_least, value);
    if (calm) answered_since_calm_[1] = true;
  };
  to_replica(kClients, static_cast<int>(between(0, plan_.replicas - 1)), request);
  at(now_ + between(2 * kMilli, 40 * kMilli), [this] { read_next(); });
}

// ---- what must hold

// Whether the commit that is counted as durable under this number is on this disk.
bool World::has_commit(const Replica& replica, uint64_t commit) const {
  return replica.disk.synced >= commit &&
         replica.disk.log[commit - 1]->id == history_.durable()[commit - 1];
}

// Every replica that may take over has every commit that is counted as durable. Of a log whose
// commits each name the one before it, the last one proves the others.
void World::check_in_sync(bool whole) {
  const auto& in_sync = store_->held().configuration.in_sync;
  const uint64_t last = history_.durable().size();
  for (const Replica& replica : replicas_) {
    const auto it = in_sync.find(replica.name);
    if (it == in_sync.end()) continue;
    const auto& seats = replica.disk.seats;
    if (std::find(seats.begin(), seats.end(), it->second) == seats.end()) continue;
    for (uint64_t commit = whole || last == 0 ? 1 : last; commit <= last; ++commit) {
      if (has_commit(replica, commit)) continue;
      history_.breaks(replica.name + " may take over, and lacks commit " + std::to_string(commit));
      return;
    }
  }
}

bool World::all_well() const {
  const auto& in_sync = store_->held().configuration.in_sync;
  if (!answered_since_calm_[0] || !answered_since_calm_[1]) return false;
  return std::all_of(replicas_.begin(), replicas_.end(), [&](const Replica& replica) {
    const auto it = in_sync.find(replica.name);
    const auto& seats = replica.disk.seats;
    return replica.process && it != in_sync.end() &&
           std::find(seats.begin(), seats.end(), it->second) != seats.end();
  });
}

std::string World::picture() const {
  const Held& held = store_->held();
  std::string text = "the store has term " + std::to_string(held.configuration.term) + " of " +
                     held.configuration.leader + " with";
  for (const auto& [member, seat] : held.configuration.in_sync) text += " " + member;
  text += held.key.created ? ", the key is held by " + held.key.holder + " under lease " +
                                 std::to_string(held.key.lease)
                           : ", there is no key";
  for (const Replica& replica : replicas_) {
    const DataDir& disk = replica.disk;
    text += "; " + replica.name + " (" + std::to_string(disk.log.size()) + " commits, " +
            std::to_string(disk.synced) + " synced)";
    if (!replica.process) {
      text += " is down";
      continue;
    }
    const Process& p = *replica.process;
    if (!p.leader) {
      text += p.role == Process::Role::taking ? " tries to lead" : " follows";
      text += p.joined ? ", joined" : p.upstream ? ", joining" : "";
      text +=
          ", term " + std::to_string(p.follower.term()) + (p.follower.taking() ? ", takes" : "");
      continue;
    }
    text += " leads" + std::string(p.serving ? ", serves" : "") +
            (p.writing ? ", changes the configuration" : "") + (p.renewing ? ", renews" : "") +
            ", lease " + std::to_string(p.lease) + (p.created == 0 ? " without key" : "") +
            (p.leader->may_answer(clock(replica)) ? "" : ", may not answer") +
            (p.released ? ", has given up" : "") + ", commit " + std::to_string(p.committing) +
            ", durable " + std::to_string(p.leader->durable());
    for (const auto& [name, follower] : p.leader->followers())
      text += ", " + name + " has " + std::to_string(follower.commit) +
              (follower.gone ? " gone" : "") + (follower.owes ? " owes" : "") +
              (follower.seat ? " seat" : "");
  }
  return text;
}

void World::calm() {
  calm_ = true;
  calm_at_ = now_;
  cut_ = {};
  if (!quorum_) store_->extend(store_clock());
  quorum_ = true;
  for (Replica& replica : replicas_) {
    replica.hung_until = 0;
    replica.restore = false;
    if (now_ < replica.frozen_until) {
      replica.frozen_until = now_;
      thaw(replica);
    }
  }
}

void World::run() {
  for (Replica& replica : replicas_) start(replica);
  plan_faults();
  for (size_t key = 0; key < kKeys; ++key) write_next(key);
  for (int reader = 0; reader < 2; ++reader) read_next();
  // Leases end some time after their life.
  const Micros each = 50 * kMilli, until = now_ + plan_.faults_ms * kMilli;
  Millis slack = 0;
  const auto expire = [&] {
    if (chance(0.05)) slack = calm_ || chance(0.5) ? 0 : between(0, 1'500);
    if (quorum_) store_->expire(store_clock(), slack);
  };
  while (now_ < until && history_.broken.empty()) {
    advance(now_ + each);
    expire();
  }
  calm();
  while (history_.broken.empty() && now_ < calm_at_ + kWellWithin) {
    advance(now_ + each);
    expire();
    const bool led = std::any_of(replicas_.begin(), replicas_.end(), [](const Replica& replica) {
      return replica.process && replica.process->leader;
    });
    for (Replica& replica : replicas_)
      if (!led) put_newest_back(replica);
    if (all_well()) break;
  }
  if (history_.broken.empty() && !all_well())
    history_.breaks("not all replicas are in sync and answering " +
                    std::to_string(kWellWithin / kSecond) +
                    " s after the last fault: " + picture());
  advance(now_ + kSecond);
}

Plan plan_of(uint64_t seed) {
  std::mt19937_64 random(seed * 7919);
  const auto one_in = [&](uint64_t n) { return random() % n == 0; };
  const auto some = [&](Millis least, Millis most) -> Millis {
    return one_in(2) ? 0 : least + static_cast<Millis>(random() % uint64_t(most - least));
  };
  Plan plan;
  plan.seed = seed;
  plan.replicas = one_in(2) ? 2 : 3;
  plan.power = one_in(2);
  plan.faults_ms = 20'000 + static_cast<Millis>(random() % 40'000);
  if (is_of_edge(seed)) {
    plan.isolations = 7'000;
    plan.freezes = some(5'000, 20'000);
    plan.breaks = some(500, 5'000);
    plan.late_request = one_in(2) ? 0 : 0.05;
    plan.far_ms = one_in(3) ? 0 : 50 + static_cast<Millis>(random() % 400);
    plan.drift = true;
    return plan;
  }
  plan.crashes = some(1'000, 8'000);
  plan.blackouts = some(5'000, 20'000);
  plan.freezes = some(2'000, 15'000);
  plan.cuts = some(1'500, 10'000);
  plan.isolations = some(5'000, 20'000);
  plan.breaks = some(500, 5'000);
  plan.quorum_losses = some(4'000, 20'000);
  plan.hung_disks = some(3'000, 20'000);
  plan.hand_overs = some(2'000, 15'000);
  plan.removals = some(4'000, 20'000);
  plan.old_copies = some(3'000, 15'000);
  plan.step_crash = one_in(2) ? 0 : 0.0003;
  plan.lost_batch = one_in(2) ? 0 : 0.01;
  plan.failed_sync = one_in(3) ? 0.0005 : 0;
  plan.lost_request = one_in(2) ? 0 : 0.1;
  plan.late_request = one_in(2) ? 0 : 0.1;
  plan.twice_request = one_in(2) ? 0 : 0.2;
  plan.far_ms = one_in(4) ? 50 + static_cast<Millis>(random() % 400) : 0;
  plan.drift = one_in(2);
  return plan;
}

}  // namespace muster::sim::standby
