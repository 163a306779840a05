// The shell of a follower in the simulated cluster with standbys (standby_world.hpp).
#include "tests/sim/standby_process.hpp"

#include <algorithm>
#include <set>

namespace muster::sim::standby {

using core::standby::Configuration;
using Why = core::standby::Follower::Why;
using Next = core::standby::Follower::Next;

core::EpochLine World::line_of(const Log& log) const {
  std::vector<core::EpochEntry> entries;
  for (CommitPtr commit : log)
    if (commit->epoch.epoch != 0) entries.push_back(commit->epoch);
  return core::EpochLine(std::move(entries));
}

void World::sync(Replica& replica, size_t commits, std::function<void()> done) {
  in(replica, between(200, 4'000), [this, &replica, commits, done = std::move(done)]() mutable {
    if (now_ < replica.hung_until)
      return in(replica, replica.hung_until - now_,
                [this, &replica, commits, done]() { sync(replica, commits, done); });
    if (!calm_ && chance(plan_.failed_sync)) end(replica, "its disk fails");
    DataDir& disk = replica.disk;
    disk.synced = std::max(disk.synced, std::min(commits, disk.log.size()));
    step(replica);
    done();
  });
}

void World::tick_follower(Replica& replica) {
  Process& p = *replica.process;
  if (p.role == Process::Role::leader) return tick_leader(replica);
  const Millis now = clock(replica);
  if (p.upstream && now - p.heard > p.patience) {
    if (planted(Plant::old_term_applied)) p.upstream = nullptr;
    drop_upstream(replica);
  }
  const bool fresh = p.joined && now - p.beat < 1'500;
  if (p.role == Process::Role::follower && !fresh && !p.polling) poll(replica);
  in(replica, local(replica, 100), [this, &replica] { tick_follower(replica); });
}

void World::poll(Replica& replica) {
  replica.process->polling = true;
  ask(
      replica, [](Store& store, Millis) { return store.read(); },
      [this, &replica](const std::optional<Answer>& answer) {
        replica.process->polling = false;
        if (answer) polled(replica, answer->held);
      });
}

void World::polled(Replica& replica, const Held& held) {
  Process& p = *replica.process;
  if (p.role != Process::Role::follower) return;
  const Configuration& seen = held.configuration;
  p.follower.sees(seen.term);
  int leader = -1;
  for (const Replica& other : replicas_)
    if (other.name == seen.leader && other.id != replica.id) leader = other.id;
  if (p.upstream && p.upstream_to != leader && !planted(Plant::old_term_applied))
    drop_upstream(replica);
  // The former process of this data-dir is dead: its lock is ours.
  const bool key_held = held.key.created != 0 && held.key.holder != replica.name;
  Why why = p.follower.may_take(seen, key_held, clock(replica));
  if (planted(Plant::taken_from_outside) && why == Why::not_in_sync) why = Why::may;
  if (planted(Plant::seat_ignored) && why == Why::outdated) why = Why::may;
  if (planted(Plant::taken_while_promised) && why == Why::promised) why = Why::may;
  if (why == Why::may && !p.seating) return take(replica, held);
  if (leader < 0) return;
  replica.leader = leader;
  if (!p.upstream || p.upstream_to != leader) join(replica, leader);
}

// ---- following

void World::drop_upstream(Replica& replica) {
  Process& p = *replica.process;
  const LinkPtr link = std::move(p.upstream);
  p.upstream = nullptr;
  p.joined = false;
  if (link) break_link(link);
}

void World::join(Replica& replica, int leader) {
  Process& p = *replica.process;
  p.upstream = connect(replica, replicas_[static_cast<size_t>(leader)]);
  p.upstream_to = leader;
  p.joined = false;
  p.heard = clock(replica);
  const LinkPtr link = p.upstream;
  if (planted(Plant::unsynced_reported)) return say_hello(replica, link);
  sync(replica, replica.disk.log.size(), [this, &replica, link] {
    if (replica.process->upstream == link) say_hello(replica, link);
  });
}

void World::say_hello(Replica& replica, const LinkPtr& link) {
  const DataDir& disk = replica.disk;
  const core::EpochLine line = line_of(disk.log);
  trace(replica, "says hello at commit " + std::to_string(disk.log.size()));
  core::KnownHistory known;
  if (!line.empty()) known = {line.last().epoch, line.last().nonce, disk.log.size()};
  step(replica);
  send(link, replica.process->upstream_to,
       [this, link, from = replica.id, known, seats = disk.seats](Replica& leader) {
         on_hello(leader, link, from, known, seats);
       });
}

void World::on_batch(Replica& replica, const LinkPtr& link, uint64_t term, uint64_t number,
                     CommitPtr commit) {
  Process& p = *replica.process;
  if (!planted(Plant::old_term_applied)) {
    if (link != p.upstream) return;
    if (!p.follower.obeys(term)) return;
  } else if (p.role != Process::Role::follower) {
    return;
  }
  p.follower.sees(term);
  p.heard = clock(replica);
  Log& log = replica.disk.log;
  Next next = core::standby::Follower::judge(number, log.size());
  if (next == Next::gap && planted(Plant::gap_applied)) next = Next::apply;
  if (next == Next::has_it && planted(Plant::replayed_twice)) next = Next::apply;
  if (next == Next::gap) return drop_upstream(replica);
  step(replica);
  if (next == Next::apply) {
    if ((log.empty() ? 0 : log.back()->id) != commit->before)
      history_.breaks(replica.name + " applies commit " + std::to_string(number) +
                      " to another history than its leader's");
    log.push_back(commit);
  }
  if (planted(Plant::synced_early)) reply_has(replica, link, number);
  sync(replica, log.size(), [this, &replica, link, number] { reply_has(replica, link, number); });
}

void World::reply_has(Replica& replica, const LinkPtr& link, uint64_t number) {
  send(link, link->ends[1], [this, link, from = replica.id, number](Replica& leader) {
    on_has(leader, link, from, number);
  });
}

void World::on_beat(Replica& replica, const LinkPtr& link, uint64_t term, Millis sent) {
  Process& p = *replica.process;
  if (link != p.upstream) return;
  const bool taking = planted(Plant::promised_while_taking) && p.follower.taking();
  if (!taking && !p.follower.obeys(term)) return;
  p.follower.sees(term);
  p.follower.promises(clock(replica));
  p.heard = p.beat = clock(replica);
  p.joined = true;
  step(replica);
  send(link, link->ends[1], [this, link, from = replica.id, sent](Replica& leader) {
    on_promise(leader, link, from, sent);
  });
}

void World::on_checkpoint(Replica& replica, const LinkPtr& link, uint64_t term,
                          const std::shared_ptr<Log>& log) {
  const auto is_mine = [this, &replica, link, term] {
    const Process& p = *replica.process;
    if (planted(Plant::checkpoint_of_older)) return p.role == Process::Role::follower;
    return link == p.upstream && p.follower.obeys(term);
  };
  if (!is_mine()) return;
  replica.process->heard = clock(replica);
  const Micros takes = between(5'000, chance(0.3) ? 3'000'000 : 300'000);
  in(replica, takes, [this, &replica, is_mine, log] {
    if (!is_mine()) return;
    step(replica);
    replica.disk.log = *log;
    replica.disk.synced = log->size();
    ++count_.checkpoints;
    check_in_sync(true);
    step(replica);
    drop_upstream(replica);
  });
}

void World::on_seat(Replica& replica, const LinkPtr& link, const std::string& seat) {
  if (link != replica.process->upstream) return;
  in(replica, between(500, 20'000), [this, &replica, link, seat] {
    step(replica);
    replica.disk.seats.push_back(seat);
    replica.process->follower.sits(seat);
    step(replica);
    send(link, link->ends[1], [this, link, from = replica.id, seat](Replica& leader) {
      on_seated(leader, link, from, seat);
    });
  });
}

// ---- taking the lead

void World::take(Replica& replica, const Held& seen) {
  replica.process->seating = true;
  in(replica, between(500, 20'000), [this, &replica, seen, seat = draw_seat()] {
    Process& p = *replica.process;
    p.seating = false;
    if (p.role != Process::Role::follower) return;
    replica.disk.seats.push_back(seat);
    p.follower.sits(seat);
    step(replica);
    // A beat may have been answered meanwhile.
    const Why why = p.follower.may_take(seen.configuration, false, clock(replica));
    if (why == Why::promised && !planted(Plant::taken_while_promised)) return;
    const core::EpochLine line = line_of(replica.disk.log);
    const Configuration wanted =
        p.follower.takes(seen.configuration, line.empty() ? 0 : line.last().epoch, seat, {});
    p.role = Process::Role::taking;
    trace(replica, "tries to take the lead with term " + std::to_string(wanted.term));
    const Millis asked = clock(replica);
    ask(
        replica, [](Store& store, Millis now) { return store.grant(now); },
        [this, &replica, seen, wanted, asked](const std::optional<Answer>& lease) {
          if (!lease) return settle(replica);
          step(replica);
          write_take(replica, wanted, seen, lease->lease, asked);
        });
  });
}

void World::write_take(Replica& replica, const Configuration& wanted, const Held& seen,
                       uint64_t lease, Millis asked) {
  Transaction write{seen.revision,         seen.key.created, wanted,
                    Transaction::Key::put, replica.name,     lease};
  if (planted(Plant::taken_unguarded)) write.revision.reset();
  ask(
      replica, [write](Store& store, Millis) { return store.write(write); },
      [this, &replica, wanted, seen, lease, asked](const std::optional<Answer>& answer) {
        step(replica);
        if (!answer)
          return in(replica, local(replica, between(50, 300)),
                    [=, this, &replica] { write_take(replica, wanted, seen, lease, asked); });
        const Configuration& held = answer->held.configuration;
        if (held.leader == replica.name && held.term == wanted.term)
          return lead(replica, answer->held, lease, asked);
        settle(replica);
      });
}

void World::settle(Replica& replica) {
  Process& p = *replica.process;
  p.follower.settled();
  p.role = Process::Role::follower;
}

}  // namespace muster::sim::standby
