#include "standby/leading.hpp"

#include "api/http/ends.hpp"
#include "base/check.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "core/standby/prefix.hpp"
#include "standby/checkpoint.hpp"
#include "standby/documents.hpp"
#include "standby/own_dir.hpp"
#include "standby/passage.hpp"
#include "standby/protocols.hpp"
#include "standby/wire_rows.hpp"
#include "storage/recovery.hpp"

#include <kj/debug.h>

#include <algorithm>
#include <utility>

namespace muster::standby {
namespace {

using core::standby::Configuration;

constexpr Millis kClocksMs = 60'000;   // by which two machines may differ
constexpr Millis kRejoinMs = 10'000;   // after a copy, at most
constexpr Millis kWatchMs = 50;        // between two looks at what time has changed
constexpr Millis kRemovalMs = 10'000;  // for the store to forget a coordinator
constexpr size_t kNameMax = 300;

std::string text(capnp::Text::Reader reader) {
  return utf8_prefix({reader.begin(), reader.size()}, kNameMax);
}

core::standby::Place place_of(wire::Place::Reader reader) {
  return {text(reader.getPeers()),  text(reader.getApi()),       text(reader.getApiTls()),
          text(reader.getListen()), text(reader.getListenTls()), text(reader.getVersion())};
}

}  // namespace

struct LeadingRole::Follower {
  uint64_t number = 0;
  std::string process;
  wire::Following::Client following = nullptr;
  Millis answered = 0;            // when the last beat was answered, or it joined
  std::optional<Millis> beating;  // since when a beat is in flight
  std::optional<Millis> round_trip_us;
  bool sits = false;  // a seat is on its way
};

// What a peer may call.
class LeadingRole::Port final : public wire::Leading::Server {
 public:
  Port(LeadingRole& role, tls::Identity who) : role_(role), who_(std::move(who)) {}
  ~Port() noexcept(false) {
    if (number_ != 0) role_.gone(member_, number_, "it closed the connection");
  }

  kj::Promise<void> join(JoinContext context) override {
    auto answer = context.initResults().initAnswer();
    answer.setTerm(role_.leader_.configuration().term);
    answer.setCluster(role_.leader_.configuration().cluster);
    if (const Status may = role_.handle_->takes_part(who_); !may) {
      const std::string& why = may.error().message;
      may.error().code == Errc::unavailable ? answer.setLater(why) : answer.setRefused(why);
      return kj::READY_NOW;
    }
    const auto params = context.getParams();
    const auto replica = params.getReplica();
    if (role_.resigning_) {
      answer.setLater("it is handing over the lead");
      return kj::READY_NOW;
    }
    if (const std::string why = role_.refuses(replica); !why.empty()) {
      answer.setRefused(why);
      return kj::READY_NOW;
    }
    if (!role_.continues(replica)) return role_.copy_for(answer).attach(thisCap());
    member_ = text(replica.getMember());
    number_ = role_.admit(replica, params.getFollowing());
    answer.setFollows();
    return kj::READY_NOW;
  }

  kj::Promise<void> leave(LeaveContext) override {
    role_.ends(member_, number_);
    return kj::READY_NOW;
  }

  kj::Promise<void> pass(PassContext context) override {
    const auto params = context.getParams();
    api::PassedPeer peer;
    if (params.getUid() >= 0) peer.uid = static_cast<uid_t>(params.getUid());
    peer.source = text(params.getSource());
    peer.local_host = text(params.getHost());
    auto stream = local_pair(role_.parts_.io, [&](Fd other) {
      return role_.handle_->admit(std::move(other), std::move(peer));
    });
    KJ_REQUIRE(stream != nullptr, "the coordinator does not serve yet");
    role_.passed_.add(pump(stream, params.getBack()));
    context.initResults().setForth(sink_to(std::move(stream)));
    return kj::READY_NOW;
  }

 private:
  LeadingRole& role_;
  const tls::Identity who_;
  std::string member_;
  uint64_t number_ = 0;  // of the follower; 0: it does not follow
};

void LeadingRole::Failures::taskFailed(kj::Exception&& e) {
  log::error("the peers' thread: {}", e.getDescription().cStr());
}

LeadingRole::LeadingRole(LeadingParts parts, Taken taken, std::unique_ptr<storage::Journal> journal)
    : parts_(std::move(parts)),
      timer_(parts_.io.provider->getTimer()),
      leader_(parts_.timing, taken.configuration.leader, taken.configuration, taken.asked,
              journal->last_commit()),
      revision_(taken.revision),
      created_(taken.created),
      lease_(taken.lease),
      last_(journal->last_commit()),
      handle_(std::make_shared<LeadHandle>(taken.configuration.term, std::move(journal),
                                           parts_.door, *this, parts_.end)),
      journal_(handle_->served_journal()) {
  publish();
  tasks_.add(watch());
  tasks_.add(keep_lease());
  tasks_.add(keep_configuration());
}

LeadingRole::~LeadingRole() noexcept {
  for (Removal& one : removals_)
    one.done(Error{Errc::unavailable, "the lead is being handed over", {}});
  handle_->retire();
}

wire::Leading::Client LeadingRole::serve_peer(tls::Identity who) {
  return kj::heap<Port>(*this, std::move(who));
}

std::optional<tls::Authority> LeadingRole::authority(const coordinator::AuthorityFiles& files) {
  if (resigning_) return std::nullopt;
  const auto head = storage::recover_head(*journal_);
  if (!head) return std::nullopt;
  auto authority = coordinator::open_authority(files, head->authority);
  return authority.ok() ? std::move(*authority) : std::nullopt;
}

// ---- followers

std::string LeadingRole::refuses(wire::Replica::Reader replica) {
  const Configuration& held = leader_.configuration();
  if (std::string why = refused_protocol({wire::STANDBY_OLDEST, wire::STANDBY_PROTOCOL},
                                         {replica.getOldest(), replica.getProtocol()});
      !why.empty())
    return why;
  if (const std::string cluster = text(replica.getCluster());
      !cluster.empty() && cluster != held.cluster)
    return "its data-dir is that of cluster " + on_one_line(cluster) + ", this is cluster " +
           held.cluster + ": start it with an empty data-dir, or with the store of its own cluster";
  const Millis ahead = replica.getWallMs() - wall_now();
  if (ahead > kClocksMs || ahead < -kClocksMs)
    return "its clock is " + std::to_string(std::abs(ahead) / 1000) + " s " +
           (ahead > 0 ? "ahead of" : "behind") +
           " the leader's: set both by NTP, to within a minute";
  const std::string member = text(replica.getMember());
  if (member.empty() || member == leader_.me())
    return "it has the name of the leader, " + leader_.me() +
           ": give each coordinator an address of its own with --peers";
  const auto it = followers_.find(member);
  if (it != followers_.end() && it->second->process != text(replica.getProcess()) &&
      boot_now() - it->second->answered < 2 * parts_.timing.beat_ms)
    return "another coordinator is connected as " + on_one_line(member) +
           ": give each an address of its own with --peers";
  return "";
}

bool LeadingRole::continues(wire::Replica::Reader replica) {
  const uint64_t commit = replica.getCommit();
  if (!parts_.recent.reaches(commit, last_) || commit > last_) return false;
  const auto head = storage::recover_head(*journal_);
  if (!head) {
    log::error("{}", head.error().message);
    return false;
  }
  return core::standby::is_beginning(head->line, last_,
                                     {replica.getEpoch(), replica.getNonce(), commit});
}

uint64_t LeadingRole::admit(wire::Replica::Reader replica, wire::Following::Client following) {
  const std::string member = text(replica.getMember());
  const uint64_t number = ++numbers_;
  auto follower = kj::heap<Follower>();
  follower->number = number;
  follower->process = text(replica.getProcess());
  follower->following = kj::mv(following);
  follower->answered = boot_now();
  Follower& one = *follower;
  followers_[member] = kj::mv(follower);
  std::set<std::string> seats;
  for (const auto seat : replica.getSeats()) seats.insert(text(seat));
  leader_.follows(member, replica.getCommit(), std::move(seats));
  leader_.resides(member, place_of(replica.getPlace()));
  log::info("coordinator {} follows from commit {}", member, replica.getCommit());
  for (uint64_t commit = replica.getCommit() + 1; commit <= last_; ++commit)
    send(member, one, commit, parts_.recent.at(commit));
  tasks_.add(beat(member, number));
  publish();
  return number;
}

LeadingRole::Follower* LeadingRole::find(const std::string& member, uint64_t number) {
  const auto it = followers_.find(member);
  return it != followers_.end() && it->second->number == number ? it->second.get() : nullptr;
}

void LeadingRole::gone(const std::string& member, uint64_t number, const std::string& why) {
  if (find(member, number) == nullptr) return;
  log::warn("coordinator {} follows no longer: {}", member, why);
  followers_.erase(member);
  leader_.leaves(member, boot_now());
  publish();
}

void LeadingRole::ends(const std::string& member, uint64_t number) {
  if (find(member, number) == nullptr) return;
  log::info("coordinator {} ends", member);
  followers_.erase(member);
  leader_.ends(member);
  publish();
}

void LeadingRole::send(const std::string& member, Follower& follower, uint64_t commit,
                       const storage::Replication::Batch& batch) {
  auto request = follower.following.appendRequest();
  auto out = request.initBatch();
  out.setTerm(leader_.configuration().term);
  out.setCommit(commit);
  write_rows(*batch, out.initRows(static_cast<unsigned>(batch->size())));
  tasks_.add(request.send().then(
      [this, member, number = follower.number, commit](auto&& response) {
        if (find(member, number) == nullptr) return;
        if (response.getCommit() < commit)
          return gone(member, number, "it does not take commit " + std::to_string(commit));
        leader_.has(member, response.getCommit());
        publish();
      },
      [this, member, number = follower.number](kj::Exception&& e) {
        gone(member, number, e.getDescription().cStr());
      }));
}

kj::Promise<void> LeadingRole::beat(std::string member, uint64_t number) {
  Follower* follower = find(member, number);
  if (follower == nullptr) return kj::READY_NOW;
  const Millis sent = boot_now();
  const auto began = kj::systemPreciseMonotonicClock().now();
  auto request = follower->following.beatRequest();
  request.setTerm(leader_.configuration().term);
  request.setCommit(last_);
  auto answered = request.send().then([this, member, number, sent, began](auto&& response) {
    Follower* still = find(member, number);
    if (still == nullptr) return;
    if (!response.getHeeded()) return gone(member, number, "it follows another leader");
    still->answered = boot_now();
    still->round_trip_us = (kj::systemPreciseMonotonicClock().now() - began) / kj::MICROSECONDS;
    leader_.promises(member, sent);
    publish();
  });
  return timer_.timeoutAfter(parts_.timing.patience_ms * kj::MILLISECONDS, kj::mv(answered))
      .catch_([this, member, number](kj::Exception&& e) {
        gone(member, number,
             e.getType() == kj::Exception::Type::OVERLOADED ? "it does not answer"
                                                            : e.getDescription().cStr());
      })
      .then([this, sent] {
        const Millis next = sent + parts_.timing.beat_ms - boot_now();
        return timer_.afterDelay(std::max<Millis>(next, 1) * kj::MILLISECONDS);
      })
      .then([this, member, number] { return beat(member, number); });
}

void LeadingRole::give_seats() {
  for (const std::string& member : leader_.want_seats(boot_now())) {
    const auto it = followers_.find(member);
    if (it == followers_.end() || it->second->sits) continue;
    it->second->sits = true;
    const uint64_t number = it->second->number;
    const std::string seat = new_seat();
    auto request = it->second->following.sitRequest();
    request.setTerm(leader_.configuration().term);
    request.setSeat(seat);
    tasks_.add(request.send().then(
        [this, member, number, seat](auto&& response) {
          Follower* follower = find(member, number);
          if (follower == nullptr) return;
          follower->sits = false;
          if (response.getDone()) leader_.seated(member, seat);
        },
        [this, member, number](kj::Exception&& e) {
          gone(member, number, e.getDescription().cStr());
        }));
  }
}

kj::Promise<void> LeadingRole::copy_for(wire::Leading::Answer::Builder answer) {
  const uint64_t copied = last_;
  parts_.recent.keep();
  // Until the follower has joined again, some time after it has let go of the copy.
  auto kept = kj::heap(kj::defer([this] {
    tasks_.add(
        timer_.afterDelay(kRejoinMs * kj::MILLISECONDS).then([this] { parts_.recent.release(); }));
  }));
  return checkpoint_of(parts_.door, *journal_, parts_.data_dir, kj::mv(kept))
      .then([answer, copied](Result<wire::Checkpoint::Client>&& made) mutable {
        if (!made) {
          log::error("{}", made.error().message);
          return answer.setRefused(made.error().message);
        }
        log::info("a follower copies the journal, from commit {} on", copied);
        answer.setCheckpoint(kj::mv(*made));
      });
}

// ---- the coordinator

void LeadingRole::begins(uint64_t commit, storage::Replication::Batch batch) {
  parts_.recent.add(commit, batch);
  last_ = commit;
  leader_.begins(commit, boot_now());
  for (auto& [member, follower] : followers_) send(member, *follower, commit, batch);
}

void LeadingRole::synced(uint64_t commit) {
  leader_.synced(commit);
  publish();
}

void LeadingRole::publish() {
  handle_->publish(resigned_ ? 0 : leader_.answers_until(), leader_.durable());
}

coordinator::LeadFigures LeadingRole::figures() {
  const Configuration& held = leader_.configuration();
  coordinator::LeadFigures all;
  all.term = held.term;
  all.store_answers = store_answers_;
  all.store_wiped = store_wiped_;
  all.commit = leader_.durable();
  std::map<std::string, core::standby::Place> places = held.members;
  for (const auto& [member, follower] : followers_) places[member];
  for (const auto& [member, place] : places) {
    coordinator::MemberFigures one{.name = member, .place = place};
    one.leads = member == leader_.me();
    one.in_sync = held.in_sync.contains(member);
    one.connected = one.leads || followers_.contains(member);
    if (one.leads) one.commit = last_;
    if (const auto it = leader_.followers().find(member); it != leader_.followers().end())
      one.commit = it->second.commit;
    if (const auto it = followers_.find(member); it != followers_.end())
      one.round_trip_us = it->second->round_trip_us;
    all.members.push_back(std::move(one));
  }
  return all;
}

void LeadingRole::change(coordinator::LeadChange change, const std::string& member,
                         std::function<void(Status)> done) {
  const Status decided = decide(change, member);
  if (!decided || change != coordinator::LeadChange::remove) return done(decided);
  removals_.push_back({member, boot_now() + kRemovalMs, std::move(done)});
}

// Tells those who wait for a removal.
void LeadingRole::settle_removals() {
  const auto& members = leader_.configuration().members;
  std::erase_if(removals_, [&](Removal& one) {
    const bool removed = !members.contains(one.member);
    if (!removed && boot_now() < one.until) return false;
    one.done(removed ? Status(Nothing{})
                     : Status(Error{Errc::unavailable,
                                    "the store has not taken " + one.member +
                                        " from the configuration yet: it is removed once the store "
                                        "answers, unless it connects before; see `muster get "
                                        "coordinators`",
                                    {}}));
    return true;
  });
}

Status LeadingRole::decide(coordinator::LeadChange change, const std::string& member) {
  using coordinator::LeadChange;
  const Configuration& held = leader_.configuration();
  const auto conflict = [](const std::string& why) { return Error{Errc::conflict, why, {}}; };
  if (resigning_) return conflict("the lead is being handed over");
  if (!member.empty() && !held.members.contains(member) && !followers_.contains(member))
    return Error{Errc::not_found, "there is no coordinator " + member, {}};
  if (change == LeadChange::remove) {
    if (member == leader_.me()) return conflict(member + " leads: demote it first");
    if (followers_.contains(member)) return conflict(member + " is connected: stop it first");
    leader_.forgets(member);
    return Nothing{};
  }
  if (change == LeadChange::promote && member == leader_.me())
    return conflict(member + " leads already");
  if (change == LeadChange::demote && !member.empty() && member != leader_.me())
    return conflict(member + " does not lead; " + leader_.me() + " does");
  std::string heir = change == LeadChange::promote ? member : "";
  for (const auto& [name, follower] : followers_)
    if (heir.empty() && held.in_sync.contains(name)) heir = name;
  if (heir.empty())
    return conflict(
        "no other coordinator is in sync, so none can lead: see `muster get coordinators`");
  if (!held.in_sync.contains(heir) || !followers_.contains(heir))
    return conflict(heir + " is not in sync, so it may lack what was acknowledged");
  heir_ = heir;
  resigning_ = true;
  parts_.hands_over();
  return Nothing{};
}

// ---- the store

kj::Promise<void> LeadingRole::keep_lease() {
  const Millis asked = boot_now();
  auto kept = leased_ ? parts_.store.renew(lease_).then([this, asked](Result<bool>&& renewed) {
    store_answers_ = renewed.ok();
    if (!renewed) {
      if (const auto more = silent_lines_.due(boot_now()))
        log::warn("the store does not renew the lease of the lead: {}{}", renewed.error().message,
                  *more);
      return;
    }
    leased_ = *renewed;
    if (leased_) leader_.renewed(asked);
    publish();
  })
                      : put_key();
  return kept
      .then([this, asked] {
        const Millis next = asked + parts_.timing.beat_ms - boot_now();
        return timer_.afterDelay(std::max<Millis>(next, leased_ ? 1 : kWatchMs) * kj::MILLISECONDS);
      })
      .then([this] { return keep_lease(); });
}

// The lease has run out, but nobody has taken the lead.
kj::Promise<void> LeadingRole::put_key() {
  const Millis asked = boot_now();
  return parts_.store.grant(parts_.timing.lease_ms)
      .then([this](Result<uint64_t>&& lease) -> kj::Promise<Result<StoreChanged>> {
        if (!lease) return Result<StoreChanged>(lease.error());
        lease_ = *lease;
        StoreChange change;
        change.configuration_revision = revision_;
        change.leader = {parts_.holder, lease_};
        return parts_.store.change(std::move(change));
      })
      .then([this, asked](Result<StoreChanged>&& changed) {
        if (!changed) return;
        found(*changed);
        if (changed->now.leader && changed->now.leader->lease == lease_) {
          leased_ = true;
          created_ = changed->now.leader->created;
          leader_.renewed(asked);
          publish();
        }
      });
}

void LeadingRole::found(const StoreChanged& changed) {
  const auto& row = changed.now.configuration;
  store_wiped_ = !row;
  handle_->store_wiped(store_wiped_);
  if (store_wiped_) {
    if (const auto more = wiped_lines_.due(boot_now()))
      log::error(
          "the store no longer holds the configuration of this cluster: it was wiped, or restored "
          "from a backup. This coordinator goes on as long as all its in-sync replicas answer, and "
          "none of them can take over. Restart it with --new-store, once, to write the "
          "configuration anew{}",
          *more);
    return;
  }
  auto configuration = read_configuration(row->value);
  if (!configuration) return parts_.end(configuration.error().message);
  const Configuration& held = leader_.configuration();
  if (configuration->term != held.term || configuration->leader != held.leader)
    return parts_.end("coordinator " + configuration->leader + " leads, in term " +
                      std::to_string(configuration->term) +
                      ": ending, with nothing answered since");
  if (changed.now.leader && changed.now.leader->value != parts_.holder)
    return parts_.end("another coordinator holds the lead: ending, with nothing answered since");
  revision_ = row->revision;
  if (!changed.now.leader) leased_ = false;
}

kj::Promise<void> LeadingRole::keep_configuration() {
  give_seats();
  auto wanted = leader_.asked();
  if (!wanted) {
    wanted = leader_.wishes(boot_now());
    if (wanted) leader_.asks(*wanted);
    publish();
  }
  auto written = wanted ? write(std::move(*wanted)) : kj::Promise<void>(kj::READY_NOW);
  return written.then([this] { return timer_.afterDelay(kWatchMs * kj::MILLISECONDS); })
      .then([this] { return keep_configuration(); });
}

// Repeated with the same guards until there is an answer.
kj::Promise<void> LeadingRole::write(Configuration wanted) {
  StoreChange change;
  change.configuration_revision = revision_;
  change.leader_created = created_;
  change.configuration = configuration_text(wanted);
  return parts_.store.change(std::move(change)).then([this](Result<StoreChanged>&& changed) {
    if (!changed || !changed->now.configuration) {
      if (changed) found(*changed);
      return;
    }
    found(*changed);
    const auto held = read_configuration(changed->now.configuration->value);
    const auto before = leader_.configuration().in_sync;
    leader_.answered(*held);
    parts_.holds(*held);
    settle_removals();
    publish();
    for (const auto& [member, seat] : held->in_sync)
      if (!before.contains(member)) log::info("coordinator {} is in sync", member);
    for (const auto& [member, seat] : before)
      if (!held->in_sync.contains(member))
        log::warn("coordinator {} is not in sync any more: it cannot take over until it is",
                  member);
  });
}

kj::Promise<void> LeadingRole::watch() {
  const Millis now = boot_now();
  if (!leader_.may_answer(now)) handle_->end_unled();
  if (leader_.hangs(now) && !resigning_) {
    resigning_ = true;
    log::error("the disk of {} has not answered for {} ms: giving up the lead", parts_.data_dir,
               parts_.timing.patience_ms);
    return resign().then(
        [this] { parts_.end("the disk of " + parts_.data_dir + " does not answer"); });
  }
  settle_removals();
  return timer_.afterDelay(kWatchMs * kj::MILLISECONDS).then([this] { return watch(); });
}

kj::Promise<void> LeadingRole::resign() {
  resigning_ = true;
  resigned_ = true;
  publish();
  StoreChange change;
  change.configuration_revision = revision_;
  change.leader_created = created_;
  change.resigns = true;
  // The last answers of the coordinator that has stopped are on their way to clients of others.
  auto passed = timer_.timeoutAfter(parts_.timing.beat_ms * kj::MILLISECONDS, passed_.onEmpty())
                    .catch_([](kj::Exception&&) {});
  auto resigned = passed.then([this, change = std::move(change)]() mutable {
    return parts_.store.change(std::move(change)).ignoreResult();
  });
  return timer_.timeoutAfter(parts_.timing.patience_ms * kj::MILLISECONDS, kj::mv(resigned))
      .catch_([](kj::Exception&&) {})
      .then([this]() -> kj::Promise<void> {
        kj::Vector<kj::Promise<void>> told;
        for (auto& [member, follower] : followers_) {
          if (!leader_.can_hand_over(member) || (!heir_.empty() && member != heir_)) continue;
          auto request = follower->following.releaseRequest();
          request.setTerm(leader_.configuration().term);
          told.add(request.send().ignoreResult());
        }
        return timer_.timeoutAfter(parts_.timing.beat_ms * kj::MILLISECONDS,
                                   kj::joinPromises(told.releaseAsArray()));
      })
      .catch_([](kj::Exception&&) {});
}

}  // namespace muster::standby
