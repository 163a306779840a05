// The shell of a leader in the simulated cluster with standbys (standby_world.hpp).
#include "tests/sim/standby_process.hpp"

#include <algorithm>
#include <set>

namespace muster::sim::standby {

using core::standby::Configuration;

// ---- the log

void World::lead(Replica& replica, const Held& held, uint64_t lease, Millis asked) {
  const auto begin = [this, &replica, held, lease, asked] {
    Process& p = *replica.process;
    const Log& log = replica.disk.log;
    trace(replica, "leads term " + std::to_string(held.configuration.term) + " from commit " +
                       std::to_string(log.size()));
    p.role = Process::Role::leader;
    p.term = held.configuration.term;
    p.lease = lease;
    p.revision = held.revision;
    p.created = held.key.holder == replica.name && held.key.lease == lease ? held.key.created : 0;
    drop_upstream(replica);
    replica.leader = replica.id;
    history_.leads(p.term);
    for (uint64_t commit = 1; commit <= history_.durable().size(); ++commit)
      if (!has_commit(replica, commit)) {
        history_.breaks("the leader of term " + std::to_string(p.term) + " lacks commit " +
                        std::to_string(commit));
        break;
      }
    p.leader.emplace(believed_, replica.name, held.configuration, asked, log.size());
    for (CommitPtr commit : log) apply(replica, *commit);
    p.early = p.state;
    if (planted(Plant::served_before_first_commit)) p.serving = true;
    Commit first;
    first.epoch = {p.term, random_(), log.size() + 1};
    begin_commit(replica, std::move(first));
  };
  if (planted(Plant::served_before_first_commit)) return begin();
  sync(replica, replica.disk.log.size(), begin);
}

void World::begin_commit(Replica& replica, Commit commit) {
  Process& p = *replica.process;
  Log& log = replica.disk.log;
  const uint64_t number = log.size() + 1;
  commit.id = commits_.size() + 1;
  commit.before = log.empty() ? 0 : log.back()->id;
  for (const auto& [key, value] : commit.writes) p.early[key] = std::max(p.early[key], value);
  commits_.push_back(std::move(commit));
  p.leader->begins(number, clock(replica));
  p.committing = number;
  step(replica);
  log.push_back(&commits_.back());
  const auto written = [this, &replica, number] {
    replica.process->leader->synced(number);
    advance_commit(replica);
  };
  const bool disk_first = chance(0.5);
  if (disk_first) sync(replica, number, written);
  for (const auto& [member, session] : p.sessions) {
    if (!session.following) continue;
    step(replica);
    send_batch(replica, member, number);
  }
  if (!disk_first) sync(replica, number, written);
  if (planted(Plant::acknowledged_before_own_sync)) advance_commit(replica);
}

void World::send_batch(Replica& replica, int member, uint64_t number) {
  Process& p = *replica.process;
  if (!calm_ && chance(plan_.lost_batch)) return;
  const LinkPtr link = p.sessions.at(member).link;
  send(link, member,
       [this, link, term = p.term, number, commit = replica.disk.log[number - 1]](Replica& to) {
         on_batch(to, link, term, number, commit);
       });
}

bool World::is_durable(Replica& replica, uint64_t commit) const {
  const Leader& leader = *replica.process->leader;
  const auto on_others = [&] {
    for (const auto& [member, seat] : leader.configuration().in_sync) {
      const auto it = leader.followers().find(member);
      if (member != replica.name && (it == leader.followers().end() || it->second.commit < commit))
        return false;
    }
    return true;
  };
  const bool own = replica.disk.synced >= commit;
  if (planted(Plant::acknowledged_before_replicas)) return own;
  if (planted(Plant::acknowledged_before_own_sync)) return on_others();
  if (planted(Plant::asked_uncounted)) return own && on_others();
  return leader.durable() >= commit;
}

void World::apply(Replica& replica, const Commit& commit) {
  for (const auto& [key, value] : commit.writes) {
    uint64_t& held = replica.process->state[key];
    held = std::max(held, value);
  }
}

void World::advance_commit(Replica& replica) {
  Process& p = *replica.process;
  if (p.committing == 0 || !is_durable(replica, p.committing)) return;
  const uint64_t number = p.committing;
  p.committing = 0;
  const Log& log = replica.disk.log;
  for (uint64_t commit = std::min<uint64_t>(history_.durable().size() + 1, number);
       commit <= number; ++commit)
    history_.durable(commit, log[commit - 1]->id);
  check_in_sync(false);
  p.serving = true;
  apply(replica, *log[number - 1]);
  for (auto& request : std::exchange(p.batch, {}))
    in(replica, between(0, 1'500), [this, &replica, request] { answer(replica, request, 0); });
  step(replica);
  next_commit(replica);
}

void World::next_commit(Replica& replica) {
  Process& p = *replica.process;
  if (p.committing != 0 || p.waiting.empty() || p.handing_to >= 0 || p.released) return;
  Commit commit;
  while (!p.waiting.empty() && commit.writes.size() < 4) {
    p.batch.push_back(p.waiting.front());
    p.waiting.pop_front();
    commit.writes.emplace_back(p.batch.back()->key, p.batch.back()->value);
  }
  begin_commit(replica, std::move(commit));
}

// ---- clients

void World::serve(Replica& replica, const std::shared_ptr<Request>& request) {
  Process& p = *replica.process;
  if (!p.serving) return;
  if (request->write) {
    p.waiting.push_back(request);
    return next_commit(replica);
  }
  const uint64_t value = (planted(Plant::read_early) ? p.early : p.state)[request->key];
  in(replica, between(0, 1'500),
     [this, &replica, request, value] { answer(replica, request, value); });
}

bool World::may_answer(Replica& replica) {
  const Process& p = *replica.process;
  if (planted(Plant::answered_unleased)) return !p.released;
  if (p.released && !planted(Plant::served_after_release)) return false;
  return p.leader->may_answer(clock(replica));
}

void World::answer(Replica& replica, const std::shared_ptr<Request>& request, uint64_t value) {
  const Process& p = *replica.process;
  if (!may_answer(replica)) end(replica, "it may not answer any more");
  history_.answers(p.term);
  for (Replica& other : replicas_) {
    if (other.id == replica.id || !other.process || !other.process->leader) continue;
    const Process& q = *other.process;
    if ((!q.released || planted(Plant::served_after_release)) && q.serving && may_answer(other))
      history_.breaks("the leaders of terms " + std::to_string(p.term) + " and " +
                      std::to_string(q.term) + " may both answer");
  }
  at(now_ + travel(replica.id, kClients), [this, from = replica.id, request, value] {
    if (!cut(from, kClients)) request->answer(value);
  });
}

// ---- followers

void World::on_hello(Replica& replica, const LinkPtr& link, int member, core::KnownHistory known,
                     const std::vector<std::string>& seats) {
  Process& p = *replica.process;
  const std::string& name = replicas_[static_cast<size_t>(member)].name;
  if (!p.serving || p.released) return break_link(link);
  if (const auto it = p.sessions.find(member); it != p.sessions.end()) {
    const LinkPtr former = it->second.link;
    session_gone(replica, former);
    break_link(former);
  }
  const Log& log = replica.disk.log;
  bool ours = line_of(log).judge(known, log.size()) == core::EpochLine::Standing::ours;
  if (planted(Plant::joined_unchecked)) ours = known.commit <= log.size();
  core::standby::Place place;
  place.peers = name;
  p.leader->resides(name, place);
  Session& session = p.sessions[member];
  session.link = link;
  step(replica);
  const auto kept = p.kept_since.find(member);
  const bool is_kept = known.commit + kRing >= log.size() ||
                       (kept != p.kept_since.end() && known.commit >= kept->second &&
                        !planted(Plant::checkpoint_overtaken));
  if (!ours || !is_kept) return send_checkpoint(replica, member);
  p.kept_since.erase(member);
  session.following = true;
  std::set<std::string> held(seats.begin(), seats.end());
  const auto& in_sync = p.leader->configuration().in_sync;
  if (const auto it = in_sync.find(name); it != in_sync.end() && planted(Plant::copy_uncounted))
    held.insert(it->second);
  p.leader->follows(name, known.commit, std::move(held));
  const uint64_t again = std::min<uint64_t>(known.commit, static_cast<uint64_t>(between(0, 2)));
  for (uint64_t number = known.commit + 1 - again; number <= log.size(); ++number)
    send_batch(replica, member, number);
  advance_commit(replica);
}

void World::send_checkpoint(Replica& replica, int member) {
  const LinkPtr link = replica.process->sessions.at(member).link;
  in(replica, between(5'000, 200'000), [this, &replica, member, link] {
    Process& p = *replica.process;
    const auto it = p.sessions.find(member);
    if (it == p.sessions.end() || it->second.link != link) return;
    auto copy = std::make_shared<Log>(replica.disk.log);
    p.kept_since[member] = copy->size();
    trace(replica, "sends a checkpoint at commit " + std::to_string(copy->size()));
    in(replica, between(20'000, 2'000'000), [this, &replica, member, link, copy] {
      step(replica);
      send(link, member, [this, link, term = replica.process->term, copy](Replica& to) {
        on_checkpoint(to, link, term, copy);
      });
    });
  });
}

void World::session_gone(Replica& replica, const LinkPtr& link) {
  Process& p = *replica.process;
  for (auto it = p.sessions.begin(); it != p.sessions.end(); ++it) {
    if (it->second.link != link) continue;
    p.leader->leaves(replicas_[static_cast<size_t>(it->first)].name, clock(replica));
    p.sessions.erase(it);
    return;
  }
}

void World::on_has(Replica& replica, const LinkPtr& link, int member, uint64_t commit) {
  Process& p = *replica.process;
  const auto it = p.sessions.find(member);
  if (it == p.sessions.end() || it->second.link != link || !it->second.following) return;
  p.leader->has(replicas_[static_cast<size_t>(member)].name, commit);
  step(replica);
  advance_commit(replica);
}

void World::on_promise(Replica& replica, const LinkPtr& link, int member, Millis sent) {
  Process& p = *replica.process;
  const auto it = p.sessions.find(member);
  if (it == p.sessions.end() || it->second.link != link) return;
  p.leader->promises(replicas_[static_cast<size_t>(member)].name,
                     planted(Plant::promise_from_answer) ? clock(replica) : sent);
}

void World::on_seated(Replica& replica, const LinkPtr& link, int member, const std::string& seat) {
  Process& p = *replica.process;
  const auto it = p.sessions.find(member);
  if (it == p.sessions.end() || it->second.link != link) return;
  it->second.seat_asked = false;
  p.leader->seated(replicas_[static_cast<size_t>(member)].name, seat);
}

void World::seat_followers(Replica& replica) {
  Process& p = *replica.process;
  for (const std::string& name : p.leader->want_seats(clock(replica))) {
    const auto it = std::find_if(p.sessions.begin(), p.sessions.end(), [&](const auto& one) {
      return replicas_[static_cast<size_t>(one.first)].name == name;
    });
    if (it == p.sessions.end() || !it->second.following || it->second.seat_asked) continue;
    it->second.seat_asked = true;
    const LinkPtr link = it->second.link;
    std::string seat = draw_seat();
    const DataDir& disk = replicas_[static_cast<size_t>(it->first)].disk;
    if (planted(Plant::seat_kept) && !disk.seats.empty()) seat = disk.seats.front();
    send(link, it->first, [this, link, seat](Replica& to) { on_seat(to, link, seat); });
  }
}

void World::beat(Replica& replica) {
  Process& p = *replica.process;
  const Millis sent = clock(replica);
  for (const auto& [member, session] : p.sessions)
    send(session.link, member, [this, link = session.link, term = p.term, sent](Replica& to) {
      on_beat(to, link, term, sent);
    });
}

// ---- the store

void World::tick_leader(Replica& replica) {
  Process& p = *replica.process;
  in(replica, local(replica, 50), [this, &replica] { tick_leader(replica); });
  if (p.released) return;
  const Millis now = clock(replica);
  if (!may_answer(replica)) end(replica, "it may not answer any more");
  if (p.leader->hangs(now)) return give_up(replica, -1);
  if (p.handing_to >= 0) {
    const std::string& to = replicas_[static_cast<size_t>(p.handing_to)].name;
    const bool ready = p.committing == 0 && !p.writing && p.sessions.contains(p.handing_to) &&
                       p.leader->can_hand_over(to);
    if (ready) return give_up(replica, p.handing_to);
    if (now - p.handing_since > 2'000) {
      p.handing_to = -1;
      next_commit(replica);
    }
  }
  seat_followers(replica);
  if (now >= p.next_beat) {
    p.next_beat = now + timing_.beat_ms;
    beat(replica);
  }
  if (now >= p.next_renewal && !p.renewing) {
    p.next_renewal = now + timing_.beat_ms;
    renew(replica);
  }
  if (!p.writing && p.created != 0 && p.serving) change_configuration(replica);
}

void World::renew(Replica& replica) {
  Process& p = *replica.process;
  if (p.created == 0) return put_key_again(replica);
  p.renewing = true;
  const Millis asked = clock(replica);
  ask(
      replica, [lease = p.lease](Store& store, Millis now) { return store.renew(lease, now); },
      [this, &replica, asked](const std::optional<Answer>& answer) {
        Process& q = *replica.process;
        q.renewing = false;
        if (!answer) return;
        if (!answer->done) return put_key_again(replica);
        q.leader->renewed(planted(Plant::lease_from_answer) ? clock(replica) : asked);
      });
}

// The lease has ended; if nobody else has taken the lead meanwhile, the key is put under a new one.
void World::put_key_again(Replica& replica) {
  Process& p = *replica.process;
  p.renewing = true;
  p.created = 0;
  const Millis asked = clock(replica);
  ask(
      replica, [](Store& store, Millis now) { return store.grant(now); },
      [this, &replica, asked](const std::optional<Answer>& lease) {
        Process& q = *replica.process;
        q.renewing = lease.has_value();
        if (!lease) return;
        step(replica);
        write_key(replica,
                  {q.revision, 0, std::nullopt, Transaction::Key::put, replica.name, lease->lease},
                  asked);
      });
}

void World::write_key(Replica& replica, const Transaction& write, Millis asked) {
  if (replica.process->released) return;
  ask(
      replica, [write](Store& store, Millis) { return store.write(write); },
      [this, &replica, write, asked](const std::optional<Answer>& answer) {
        Process& p = *replica.process;
        if (!answer)
          return in(replica, local(replica, 100),
                    [this, &replica, write, asked] { write_key(replica, write, asked); });
        p.renewing = false;
        const Held& held = answer->held;
        if (held.configuration.leader != replica.name || held.configuration.term != p.term)
          end(replica, "somebody else leads");
        if (held.key.holder != replica.name || held.key.lease != write.lease) return;
        p.lease = write.lease;
        p.created = held.key.created;
        p.leader->renewed(asked);
      });
}

std::optional<Configuration> World::wished(Replica& replica) const {
  const Process& p = *replica.process;
  std::optional<Configuration> wanted = p.leader->wishes(clock(replica));
  if (!planted(Plant::added_early) || p.leader->asked()) return wanted;
  for (const auto& [member, session] : p.sessions) {
    const Replica& other = replicas_[static_cast<size_t>(member)];
    if (!session.following || other.disk.seats.empty() ||
        p.leader->configuration().in_sync.contains(other.name))
      continue;
    if (!wanted) wanted = p.leader->configuration();
    wanted->in_sync[other.name] = other.disk.seat();
  }
  return wanted;
}

void World::change_configuration(Replica& replica) {
  Process& p = *replica.process;
  const std::optional<Configuration> wanted = wished(replica);
  if (!wanted) return;
  p.writing = true;
  p.leader->asks(*wanted);
  step(replica);
  Transaction write{p.revision, p.created, *wanted};
  if (planted(Plant::shrunk_unguarded)) {
    write.revision.reset();
    write.created.reset();
  }
  if (planted(Plant::shrunk_unanswered)) {
    p.leader->answered(*wanted);
    advance_commit(replica);
  }
  write_configuration(replica, write);
}

void World::write_configuration(Replica& replica, const Transaction& write) {
  ask(
      replica, [write](Store& store, Millis) { return store.write(write); },
      [this, &replica, write](const std::optional<Answer>& answer) {
        if (answer) return answered_configuration(replica, answer->held);
        if (planted(Plant::read_believed))
          return ask(
              replica, [](Store& store, Millis) { return store.read(); },
              [this, &replica, write](const std::optional<Answer>& seen) {
                if (seen) return answered_configuration(replica, seen->held);
                write_configuration(replica, write);
              });
        in(replica, local(replica, between(50, 300)),
           [this, &replica, write] { write_configuration(replica, write); });
      });
}

void World::answered_configuration(Replica& replica, const Held& held) {
  Process& p = *replica.process;
  p.writing = false;
  if (held.configuration.leader != replica.name || held.configuration.term != p.term)
    end(replica, "somebody else leads");
  p.revision = held.revision;
  if (plan_.verbose) {
    std::string text = "in sync:";
    for (const auto& [member, seat] : held.configuration.in_sync) text += " " + member;
    trace(replica, text);
  }
  p.leader->answered(held.configuration);
  step(replica);
  advance_commit(replica);
}

// Hands the lead over to a follower, or leaves it to whoever takes it.
void World::give_up(Replica& replica, int to) {
  Process& p = *replica.process;
  p.released = true;
  trace(replica, "gives up the lead");
  Transaction write{p.revision, p.created, std::nullopt, Transaction::Key::remove};
  if (planted(Plant::released_unguarded)) write.revision.reset();
  step(replica);
  ask(
      replica, [write](Store& store, Millis) { return store.write(write); },
      [this, &replica, to](const std::optional<Answer>& answer) {
        Process& q = *replica.process;
        const auto it = q.sessions.find(to);
        if (answer && answer->done && it != q.sessions.end())
          send(it->second.link, to, [this, term = q.term](Replica& next) {
            next.process->follower.released(term);
            if (!next.process->polling) poll(next);
          });
        in(replica, planted(Plant::served_after_release) ? 2'000'000 : 10'000,
           [this, &replica] { end(replica, "it has given up the lead"); });
      });
}

}  // namespace muster::sim::standby
