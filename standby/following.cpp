#include "standby/following.hpp"

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/secret.hpp"
#include "core/standby/prefix.hpp"
#include "standby/documents.hpp"
#include "standby/wire_rows.hpp"
#include "storage/journal/keys.hpp"
#include "storage/journal/rocksdb_journal.hpp"
#include "storage/recovery.hpp"
#include "storage/replica/replacement.hpp"
#include "trust/tls/link.hpp"

#include <capnp/rpc-twoparty.h>
#include <kj/debug.h>

#include <algorithm>
#include <set>
#include <utility>

namespace muster::standby {
namespace {

using core::standby::Configuration;
using Why = core::standby::Follower::Why;

constexpr Millis kLookMs = 200;       // between two looks at the store without a leader
constexpr Millis kRefusedMs = 3'000;  // before joining again after a refusal
constexpr Millis kConnectMs = 2'000;
constexpr Millis kLeaveMs = 500;
constexpr Millis kFiguresMs = 1'000;  // between two looks at the store for figures, and for each
constexpr size_t kClusterBytes = 8;
constexpr uint64_t kBatchWords = (512u << 20) / 8;

std::string text_in(capnp::Text::Reader reader) {
  return std::string(reader.begin(), reader.size());
}

bool starts_epoch(const std::vector<storage::Row>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const storage::Row& row) { return row.key == storage::keys::kEpoch; });
}

std::string said_by(const kj::Exception& e) {
  return tls::explained(e).value_or(e.getDescription().cStr());
}

}  // namespace

// Members are destroyed in reverse order, the stream after its users.
struct FollowingRole::Connection {
  std::string name;
  kj::Own<kj::TlsContext> tls;
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc;
  wire::Leading::Client leading = nullptr;
  bool follows = false;
  kj::Own<kj::PromiseFulfiller<void>> left;  // gives the connection up

  static capnp::ReaderOptions limits() {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = kBatchWords;
    return options;
  }
  Connection(std::string leader, kj::Own<kj::TlsContext> context, kj::Own<kj::AsyncIoStream> s)
      : name(std::move(leader)),
        tls(kj::mv(context)),
        stream(kj::mv(s)),
        network(*stream, capnp::rpc::twoparty::Side::CLIENT, limits()),
        rpc(capnp::makeRpcClient(network)) {
    capnp::MallocMessageBuilder message;
    auto id = message.initRoot<capnp::rpc::twoparty::VatId>();
    id.setSide(capnp::rpc::twoparty::Side::SERVER);
    leading = rpc.bootstrap(id).castAs<wire::Leading>();
  }
};

// What the leader may call. It outlives the connection if a call is in progress.
class FollowingRole::Port final : public wire::Following::Server {
 public:
  explicit Port(FollowingRole& role) : role_(role) {}

  kj::Promise<void> append(AppendContext context) override {
    context.initResults().setCommit(role_.append(context.getParams().getBatch()));
    return kj::READY_NOW;
  }
  kj::Promise<void> beat(BeatContext context) override {
    const bool heeded = role_.heeds(context.getParams().getTerm());
    if (heeded) {
      role_.heard_ = boot_now();
      role_.ahead_ = context.getParams().getCommit();
      role_.follower_->promises(role_.heard_);
    }
    context.initResults().setHeeded(heeded);
    return kj::READY_NOW;
  }
  kj::Promise<void> sit(SitContext context) override {
    const auto params = context.getParams();
    if (!role_.heeds(params.getTerm())) return kj::READY_NOW;
    const Status kept = role_.keep_seat(text_in(params.getSeat()));
    if (!kept) role_.parts_.end(kept.error().message);
    context.initResults().setDone(kept.ok());
    return kj::READY_NOW;
  }
  kj::Promise<void> release(ReleaseContext context) override {
    log::info("the leader hands over the lead");
    role_.follower_->released(context.getParams().getTerm());
    role_.patient_until_ = 0;
    role_.hurries_ = true;
    if (role_.connection_.get() != nullptr) role_.connection_->left->fulfill();
    return kj::READY_NOW;
  }

 private:
  FollowingRole& role_;
};

FollowingRole::FollowingRole(FollowingParts parts, std::unique_ptr<storage::Journal> journal)
    : parts_(std::move(parts)),
      timer_(parts_.io.provider->getTimer()),
      journal_(std::move(journal)),
      credentials_(parts_.token) {
  learn_head();
  if (parts_.resigned) patient_until_ = boot_now() + parts_.timing.promise_ms;
  follower_.emplace(parts_.timing, parts_.note.member,
                    std::set<std::string>(parts_.note.seats.begin(), parts_.note.seats.end()),
                    epoch_, boot_now());
}

FollowingRole::~FollowingRole() noexcept(false) = default;

kj::Promise<Taken> FollowingRole::run() {
  return look().then([this]() -> kj::Promise<Taken> {
    if (result_) return std::move(*result_);
    const Millis pause = std::exchange(hurries_, false) ? 0 : kLookMs;
    return timer_.afterDelay(pause * kj::MILLISECONDS).then([this] { return run(); });
  });
}

kj::Promise<void> FollowingRole::leave() {
  if (connection_.get() == nullptr || !connection_->follows) return kj::READY_NOW;
  return timer_
      .timeoutAfter(kLeaveMs * kj::MILLISECONDS,
                    connection_->leading.leaveRequest().send().ignoreResult())
      .catch_([](kj::Exception&&) {});
}

void FollowingRole::say(const std::string& state) {
  if (std::exchange(said_, state) != state) log::info("{}", state);
}

void FollowingRole::complain(const std::string& state) {
  if (std::exchange(said_, state) != state) log::warn("{}", state);
}

kj::Maybe<wire::Leading::Client> FollowingRole::leader() {
  if (connection_.get() == nullptr || !connection_->follows) return nullptr;
  return connection_->leading;
}

// What the journal says about the cluster; it may have become another one.
void FollowingRole::learn_head() {
  const auto head = storage::recover_head(*journal_);
  if (!head) return parts_.end(head.error().message);
  cluster_ = head->cluster_id;
  line_ = head->line;
  epoch_ = head->epoch;
  nonce_ = head->nonce;
  auto authority = coordinator::open_authority(parts_.authority_files, head->authority);
  if (!authority) return parts_.end(authority.error().message);
  if (!*authority) return;
  authority_ = std::move(**authority);
  credentials_ = PeerCredentials::of_authority(*authority_);
  parts_.changed();
}

// ---- the store

kj::Promise<void> FollowingRole::look() {
  return parts_.store.read().then([this](Result<StoreSeen>&& seen) -> kj::Promise<void> {
    note_seen(seen);
    if (seen) return saw(std::move(*seen));
    if (seen.error().code == Errc::invalid) parts_.end(seen.error().message);
    complain("the store does not answer: " + seen.error().message);
    return kj::READY_NOW;
  });
}

kj::Promise<void> FollowingRole::saw(StoreSeen seen) {
  if (!seen.configuration) return found_nothing();
  auto read = read_configuration(seen.configuration->value);
  if (!read) {
    parts_.end(read.error().message);
    return kj::READY_NOW;
  }
  const Configuration& configuration = *read;
  const std::string ours = cluster_.empty() ? parts_.note.cluster : cluster_;
  if (!ours.empty() && ours != configuration.cluster) {
    parts_.end(parts_.data_dir + " is the data-dir of cluster " + ours +
               ", but the store is that of cluster " + configuration.cluster +
               ": use the store of that cluster, another prefix (--store etcd:URL/PREFIX), or an "
               "empty data-dir");
    return kj::READY_NOW;
  }
  if (parts_.note.learn(configuration) && parts_.known_member)
    if (const Status written = write_note(parts_.data_dir, parts_.note); !written)
      parts_.end(written.error().message);
  follower_->sees(configuration.term);
  uint64_t created = 0;  // of the key of our own former process
  bool held = seen.leader.has_value();
  if (held && seen.leader->value == parts_.holder) {
    held = false;
    created = seen.leader->created;
  }
  const Why why = follower_->may_take(configuration, held, boot_now());
  if (why == Why::led) {
    const auto holder = read_holder(seen.leader->value);
    if (!holder) parts_.end(holder.error().message);
    return follow(configuration);
  }
  if (why == Why::may && boot_now() >= patient_until_) {
    StoreChange change;
    change.configuration_revision = seen.configuration->revision;
    change.leader_created = created;
    change.configuration =
        configuration_text(follower_->takes(configuration, epoch_, seat_to_lead(), parts_.place));
    return take(std::move(change));
  }
  if (why == Why::promised || why == Why::may) return kj::READY_NOW;
  std::string names;
  for (const auto& [name, seat] : configuration.in_sync)
    names += (names.empty() ? "" : ", ") + name;
  if (why == Why::outdated)
    say("nobody leads, and this data-dir is an older copy than the one that may: start the "
        "coordinator with the right one, or " +
        (names.find(", ") == names.npos ? "wait for no other" : "one of " + names));
  else
    say("nobody leads, and this replica may lack what was acknowledged: waiting for " + names);
  return kj::READY_NOW;
}

kj::Promise<void> FollowingRole::found_nothing() {
  if (parts_.known_member && !parts_.new_store) {
    parts_.end("the store holds no configuration, but " + parts_.data_dir +
               " is a replica of cluster " + parts_.note.cluster +
               ": it was wiped, or --store names another one. If it was wiped, start the "
               "coordinator that led last, or the one with the highest commit (`muster verify "
               "--data-dir`), with --new-store, once; the others follow it");
    return kj::READY_NOW;
  }
  return ask_peers(parts_.note.peers).then([this] { return make_configuration(); });
}

// With --new-store: another coordinator of the cluster may lead in another store.
kj::Promise<void> FollowingRole::ask_peers(std::map<std::string, std::string> peers) {
  kj::Vector<kj::Promise<void>> asked;
  if (credentials_.any())
    for (const auto& [name, address] : peers) asked.add(ask_peer(name, address));
  return kj::joinPromises(asked.releaseAsArray());
}

kj::Promise<void> FollowingRole::ask_peer(std::string name, std::string address) {
  auto tls = credentials_.client();
  auto connecting = dial(address, *tls);
  auto asked = connecting.then([name, tls = kj::mv(tls)](auto stream) mutable {
    auto connection = kj::heap<Connection>(name, kj::mv(tls), kj::mv(stream));
    auto request = connection->leading.joinRequest();
    request.initReplica();  // without a name, so that it does not follow
    auto answered = request.send();
    return answered.attach(kj::mv(connection));
  });
  return timer_.timeoutAfter(kConnectMs * kj::MILLISECONDS, kj::mv(asked))
      .then(
          [this, name, address](auto&& response) {
            const auto answer = response.getAnswer();
            const std::string cluster = text_in(answer.getCluster());
            if (answer.getTerm() == 0 || cluster != parts_.note.cluster) return;
            parts_.end(
                "the store holds no configuration, and with --new-store this coordinator "
                "would lead, but coordinator " +
                name + " leads cluster " + cluster + " in term " +
                std::to_string(answer.getTerm()) + ", at " + address +
                ": use its --store, or stop it first");
          },
          [name, address](kj::Exception&& e) {
            log::info("coordinator {} at {} cannot be asked whether it leads: {}", name, address,
                      on_one_line(said_by(e)));
          });
}

// The first coordinator of a cluster makes its configuration.
kj::Promise<void> FollowingRole::make_configuration() {
  Configuration first;
  first.cluster = cluster_.empty() ? parts_.note.cluster : cluster_;
  if (first.cluster.empty())
    first.cluster = storage::RocksdbJournal::noted_cluster(parts_.data_dir);
  if (first.cluster.empty()) first.cluster = random_hex(kClusterBytes);
  if (const Status noted = storage::RocksdbJournal::note_cluster(parts_.data_dir, first.cluster);
      !noted)
    parts_.end(noted.error().message);
  parts_.note.cluster = first.cluster;
  StoreChange change;
  change.configuration =
      configuration_text(follower_->takes(first, epoch_, seat_to_lead(), parts_.place));
  return take(std::move(change));
}

// One for all attempts, so that they do not push out the seat that the store names.
std::string FollowingRole::seat_to_lead() {
  if (seat_.empty()) {
    seat_ = new_seat();
    if (const Status kept = keep_seat(seat_); !kept) parts_.end(kept.error().message);
  }
  return seat_;
}

Status FollowingRole::keep_seat(const std::string& seat) {
  auto& seats = parts_.note.seats;
  seats.insert(seats.begin(), seat);
  if (seats.size() > kSeatsMax) seats.resize(kSeatsMax);
  if (Status written = write_note(parts_.data_dir, parts_.note); !written) return written;
  follower_->sits(seat);
  return Nothing{};
}

kj::Promise<void> FollowingRole::take(StoreChange change) {
  connection_ = nullptr;
  const Millis asked = boot_now();
  return parts_.store.grant(parts_.timing.lease_ms)
      .then([this, asked,
             change = std::move(change)](Result<uint64_t>&& lease) mutable -> kj::Promise<void> {
        if (!lease) {
          follower_->settled();
          complain("the store does not answer: " + lease.error().message);
          return kj::READY_NOW;
        }
        change.leader = StoreChange::Key{parts_.holder, *lease};
        return try_take(std::move(change), asked);
      });
}

// The outcome of an attempt without an answer is not known, so it is repeated as it is.
kj::Promise<void> FollowingRole::try_take(StoreChange change, Millis asked) {
  auto tried = parts_.store.change(change);
  return tried.then([this, asked, change = std::move(change)](
                        Result<StoreChanged>&& changed) mutable -> kj::Promise<void> {
    if (!changed && changed.error().code == Errc::not_found) {  // the lease has run out
      follower_->settled();
      return kj::READY_NOW;
    }
    if (!changed) {
      complain("the store does not answer: " + changed.error().message);
      return timer_.afterDelay(kLookMs * kj::MILLISECONDS)
          .then([this, asked, change = std::move(change)]() mutable {
            return try_take(std::move(change), asked);
          });
    }
    const StoreSeen& now = changed->now;
    const bool ours = now.configuration && now.configuration->value == *change.configuration &&
                      now.leader && now.leader->lease == change.leader->lease;
    if (!ours) {
      follower_->settled();
      return kj::READY_NOW;
    }
    auto configuration = read_configuration(now.configuration->value);
    MUSTER_CHECK(configuration.ok());
    if (const Status ready = journal_->begin_writing(); !ready) parts_.end(ready.error().message);
    log::info("leads cluster {} in term {}, from commit {} on", configuration->cluster,
              configuration->term, journal_->last_commit());
    leader_name_ = parts_.note.member;
    result_ = Taken{std::move(*configuration), now.configuration->revision, now.leader->created,
                    now.leader->lease, asked};
    return kj::READY_NOW;
  });
}

// ---- the leader

kj::Promise<kj::Own<kj::AsyncIoStream>> FollowingRole::dial(const std::string& address,
                                                            kj::TlsContext& tls) {
  return parts_.io.provider->getNetwork().parseAddress(address).then(
      [&tls](kj::Own<kj::NetworkAddress> found) {
        auto encrypted = tls::encrypted(kj::mv(found), tls);
        auto stream = encrypted->connect();
        return stream.attach(kj::mv(encrypted));
      });
}

kj::Promise<void> FollowingRole::follow(const Configuration& configuration) {
  const auto place = configuration.members.find(configuration.leader);
  if (place == configuration.members.end() || place->second.peers.empty()) return kj::READY_NOW;
  if (configuration.leader == parts_.note.member) {
    say("another process leads as " + parts_.note.member +
        ": give each coordinator an address of its own with --peers");
    return kj::READY_NOW;
  }
  if (!credentials_.any()) {
    parts_.end(parts_.data_dir +
               " is empty, and nothing proves to the leader that it may have the journal: on the "
               "leader's machine, run `muster token create --coordinator " +
               parts_.note.member +
               " --out F`, copy F here, and start this coordinator with --join-token F");
    return kj::READY_NOW;
  }
  auto tls = credentials_.client();
  auto connecting = dial(place->second.peers, *tls);
  const std::string name = configuration.leader;
  return timer_.timeoutAfter(kConnectMs * kj::MILLISECONDS, kj::mv(connecting))
      .then([this, name, tls = kj::mv(tls)](kj::Own<kj::AsyncIoStream> stream) mutable {
        connection_ = kj::heap<Connection>(name, kj::mv(tls), kj::mv(stream));
        heard_ = boot_now();
        Connection& connection = *connection_;
        auto left = kj::newPromiseAndFulfiller<void>();
        connection.left = kj::mv(left.fulfiller);
        return join(connection)
            .exclusiveJoin(kj::mv(left.promise))
            .exclusiveJoin(connection.network.onDisconnect())
            .exclusiveJoin(silence(connection));
      })
      .catch_([this, name](kj::Exception&& e) {
        complain("the leader, " + name + ", cannot be followed: " + on_one_line(said_by(e)) +
                 (tls::explained(e) && !authority_
                      ? ". If --join-token is that of another cluster, or has expired: make one "
                        "with `muster token create --coordinator " +
                            parts_.note.member + "`, where the leader runs"
                      : ""));
      })
      .then([this] {
        connection_ = nullptr;
        parts_.changed();
      });
}

// Resolves if nothing is heard for so long that the leader may be gone, or the connection was given
// up.
kj::Promise<void> FollowingRole::silence(Connection& connection) {
  return timer_.afterDelay(parts_.timing.beat_ms * kj::MILLISECONDS)
      .then([this, &connection]() -> kj::Promise<void> {
        if (connection_.get() != &connection) return kj::READY_NOW;
        if (connection.follows && boot_now() - heard_ > 3 * parts_.timing.beat_ms)
          return kj::READY_NOW;
        return silence(connection);
      });
}

void FollowingRole::write_replica(wire::Replica::Builder out) {
  out.setProtocol(wire::STANDBY_PROTOCOL);
  out.setOldest(wire::STANDBY_OLDEST);
  out.setCluster(cluster_.empty() ? parts_.note.cluster : cluster_);
  out.setMember(parts_.note.member);
  out.setEpoch(epoch_);
  out.setNonce(nonce_);
  out.setCommit(journal_->last_commit());
  out.setWallMs(wall_now());
  auto seats = out.initSeats(static_cast<unsigned>(parts_.note.seats.size()));
  for (size_t i = 0; i < parts_.note.seats.size(); ++i)
    seats.set(static_cast<unsigned>(i), parts_.note.seats[i]);
  out.setProcess(read_holder(parts_.holder)->process);
  auto place = out.initPlace();
  place.setPeers(parts_.place.peers);
  place.setApi(parts_.place.api);
  place.setApiTls(parts_.place.api_tls);
  place.setListen(parts_.place.listen);
  place.setListenTls(parts_.place.listen_tls);
  place.setVersion(parts_.place.version);
}

kj::Promise<void> FollowingRole::join(Connection& connection) {
  auto request = connection.leading.joinRequest();
  // What the leader hears must survive, so it is synced first.
  if (journal_->last_commit() > 0)
    if (const Status ready = journal_->begin_writing(); !ready) parts_.end(ready.error().message);
  write_replica(request.initReplica());
  request.setFollowing(kj::heap<Port>(*this));
  return request.send().then([this, &connection](auto&& response) {
    auto done = answered(connection, response.getAnswer());
    return done.attach(kj::mv(response));
  });
}

kj::Promise<void> FollowingRole::answered(Connection& connection,
                                          wire::Leading::Answer::Reader answer) {
  if (!follower_->obeys(answer.getTerm())) {
    if (answer.getTerm() < epoch_ && !answer.isLater())
      complain("the leader, " + connection.name + ", leads in term " +
               std::to_string(answer.getTerm()) + ", but " + parts_.data_dir + " is from term " +
               std::to_string(epoch_) +
               ": it has been used with another store. To join, start with an empty data-dir and a "
               "token (`muster token create --coordinator " +
               parts_.note.member + "`, where the leader runs)");
    return kj::READY_NOW;
  }
  follower_->sees(answer.getTerm());
  switch (answer.which()) {
    case wire::Leading::Answer::REFUSED:
      if (const std::string why =
              "the leader, " + connection.name +
              ", refuses this coordinator: " + on_one_line(text_in(answer.getRefused()));
          std::exchange(said_, why) != why)
        log::error("{}", why);
      return timer_.afterDelay(kRefusedMs * kj::MILLISECONDS);
    case wire::Leading::Answer::LATER:
      say("the leader, " + connection.name + ": " + on_one_line(text_in(answer.getLater())));
      return kj::READY_NOW;  // the next look is soon
    case wire::Leading::Answer::FOLLOWS:
      join_cluster(text_in(answer.getCluster()));
      connection.follows = true;
      leader_name_ = connection.name;
      heard_ = boot_now();
      ahead_ = 0;
      say("follows " + connection.name + " in term " + std::to_string(answer.getTerm()));
      parts_.changed();
      return kj::NEVER_DONE;
    case wire::Leading::Answer::CHECKPOINT:
      join_cluster(text_in(answer.getCluster()));
      return copy(connection, answer.getCheckpoint()).then([this, &connection] {
        return join(connection);
      });
  }
  return kj::READY_NOW;
}

// From now on, this data-dir is a replica, which makes no cluster of its own.
void FollowingRole::join_cluster(const std::string& cluster) {
  const bool known = std::exchange(parts_.known_member, true);
  if (std::exchange(parts_.note.cluster, cluster) == cluster && known) return;
  if (const Status written = write_note(parts_.data_dir, parts_.note); !written)
    parts_.end(written.error().message);
}

namespace {

struct Copying {
  Copying(storage::Replacement r, wire::Checkpoint::Client c)
      : replacement(std::move(r)), checkpoint(kj::mv(c)) {}
  storage::Replacement replacement;
  wire::Checkpoint::Client checkpoint;
  uint32_t file = 0;
  uint64_t offset = 0;
};

void require(const Status& status) {
  if (!status) KJ_FAIL_REQUIRE("the journal can't be copied", status.error().message.c_str());
}

kj::Promise<void> fetch(Copying& copying, uint32_t files) {
  if (copying.file >= files) return kj::READY_NOW;
  auto request = copying.checkpoint.readRequest();
  request.setFile(copying.file);
  request.setOffset(copying.offset);
  return request.send().then([&copying, files](auto&& response) {
    const auto bytes = response.getBytes();
    if (bytes.size() == 0) {
      ++copying.file;
      copying.offset = 0;
    } else {
      require(
          copying.replacement.write({reinterpret_cast<const char*>(bytes.begin()), bytes.size()}));
      copying.offset += bytes.size();
    }
    return fetch(copying, files);
  });
}

}  // namespace

kj::Promise<void> FollowingRole::copy(Connection& connection, wire::Checkpoint::Client checkpoint) {
  say("copies the journal of " + connection.name);
  auto begun = storage::Replacement::begin(parts_.data_dir);
  if (!begun) KJ_FAIL_REQUIRE("the journal can't be copied", begun.error().message.c_str());
  auto copying = kj::heap<Copying>(std::move(*begun), kj::mv(checkpoint));
  Copying& now = *copying;
  return now.checkpoint.filesRequest()
      .send()
      .then([&now](auto&& response) -> kj::Promise<void> {
        // One after the other, so that each is durable before the next.
        kj::Promise<void> all = kj::READY_NOW;
        uint32_t number = 0;
        for (const auto file : response.getFiles()) {
          all = all.then([&now, number, name = text_in(file.getName())] {
            require(now.replacement.next_file(name));
            now.file = number;
            now.offset = 0;
            return fetch(now, number + 1);
          });
          ++number;
        }
        return all;
      })
      .then([this, &now, name = connection.name] {
        const core::EpochLine line = line_;
        const uint64_t last = journal_->last_commit();
        journal_.reset();
        parts_.recent.clear();
        if (const Status done = now.replacement.finish(); !done)
          return parts_.end("the journal can't be copied: " + done.error().message);
        auto opened = storage::RocksdbJournal::open_copy(parts_.data_dir, parts_.end);
        if (!opened) return parts_.end(opened.error().message);
        journal_ = std::move(*opened);
        learn_head();
        log::info("has a copy of the journal, up to commit {}", journal_->last_commit());
        if (const auto lost = core::standby::given_up(line, last, line_))
          log::warn(
              "the journal of {} lacks term {}, which this data-dir had: commits {} to {} are "
              "given "
              "up. If any of them was acknowledged, two coordinators led at once: check that all "
              "have "
              "the same --store",
              name, lost->epoch, lost->first, lost->last);
      })
      .attach(kj::mv(copying));
}

bool FollowingRole::heeds(uint64_t term) {
  if (!follower_->obeys(term) || journal_ == nullptr) return false;
  follower_->sees(term);
  return true;
}

uint64_t FollowingRole::append(wire::Batch::Reader batch) {
  const uint64_t last = journal_ == nullptr ? 0 : journal_->last_commit();
  const uint64_t commit = batch.getCommit();
  if (!heeds(batch.getTerm())) return 0;
  using core::standby::Follower;
  if (Follower::judge(commit, last) != Follower::Next::apply) return last;
  auto rows = std::make_shared<const std::vector<storage::Row>>(read_rows(batch.getRows()));
  const auto& clock = kj::systemPreciseMonotonicClock();
  const auto began = clock.now();
  if (const Status written = journal_->commit(*rows); !written) parts_.end(written.error().message);
  syncs_.add(static_cast<double>((clock.now() - began) / kj::NANOSECONDS) / 1e9);
  if (starts_epoch(*rows)) learn_head();
  parts_.recent.add(commit, std::move(rows));
  return commit;
}

// ---- figures

void FollowingRole::note_seen(const Result<StoreSeen>& seen) {
  store_answers_ = seen.ok();
  if (!seen) return;
  store_wiped_ = !seen->configuration;
  in_sync_ = false;
  if (store_wiped_) return;
  const auto read = read_configuration(seen->configuration->value);
  if (!read) return;
  in_sync_ = std::ranges::any_of(parts_.note.seats, [&](const std::string& seat) {
    return read->sits(parts_.note.member, seat);
  });
}

FollowerFigures FollowingRole::figures_now() const {
  FollowerFigures now;
  now.term = follower_->term();
  now.follows = connection_.get() != nullptr && connection_->follows;
  now.store_answers = store_answers_;
  now.store_wiped = store_wiped_;
  now.in_sync = in_sync_;
  now.commit = journal_ == nullptr ? 0 : journal_->last_commit();
  if (now.follows) {
    now.silent_ms = std::max<Millis>(boot_now() - heard_, 0);
    if (ahead_ > 0) now.lag = ahead_ > now.commit ? ahead_ - now.commit : 0;
  }
  now.syncs = syncs_;
  return now;
}

kj::Promise<FollowerFigures> FollowingRole::figures() {
  const Millis now = boot_now();
  if (asked_ != 0 && now - asked_ < kFiguresMs) return figures_now();
  asked_ = now;
  return timer_.timeoutAfter(kFiguresMs * kj::MILLISECONDS, parts_.store.read())
      .then([this](Result<StoreSeen>&& seen) { note_seen(seen); },
            [this](kj::Exception&&) { store_answers_ = false; })
      .then([this] { return figures_now(); });
}

}  // namespace muster::standby
