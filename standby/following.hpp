// FollowingRole: what a coordinator does while it does not lead: reads in the store who does,
// copies that one's journal and then takes each batch, and takes the lead when it is free and it
// may. The decisions are core's (core/standby/follower.hpp).
//
// Invariant: its journal changes only by the batches and copies of a leader that it obeys.
//
// Belongs to the peers' thread.
#pragma once

#include "base/process/exposition.hpp"
#include "base/seldom.hpp"
#include "core/cluster/nodes/epoch_line.hpp"
#include "core/standby/follower.hpp"
#include "standby/credentials.hpp"
#include "standby/leading.hpp"
#include "standby/own_dir.hpp"
#include "standby/recent_batches.hpp"
#include "standby/store/store.hpp"
#include "trust/store/open_authority.hpp"

#include <kj/async-io.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <schema/standby.capnp.h>
#include <string>

namespace muster::standby {

struct FollowingParts {
  kj::AsyncIoContext& io;
  Store& store;
  RecentBatches& recent;
  core::standby::Timing timing;
  std::string data_dir;
  std::string holder;  // the value of the leader's key, if we lead
  core::standby::Place place;
  OwnNote note;
  bool known_member = false;  // the note was in the data-dir
  bool new_store = false;     // --new-store
  bool resigned = false;      // it has just handed over the lead, so it leaves it to its heir
  PeerCredentials token;      // of a data-dir without an authority; may be none
  coordinator::AuthorityFiles authority_files;
  std::function<void(const std::string&)> end;  // ends the process; does not return
  std::function<void()> changed;                // the leader, or the authority, is another one
};

// What a coordinator that follows knows of itself, for its metrics.
struct FollowerFigures {
  uint64_t term = 0;                // the highest that it has seen
  bool follows = false;             // a leader, from which it gets each commit
  bool store_answers = false;       // the last request
  bool store_wiped = false;         // it holds no configuration, as it said last
  bool in_sync = false;             // it may take over, as the store said last
  uint64_t commit = 0;              // the last one here
  std::optional<uint64_t> lag;      // commits that the leader had more, at its last beat
  std::optional<Millis> silent_ms;  // since the leader was heard; nullopt: it follows none
  DurationBuckets syncs;            // to write and sync a batch of the leader
};

class FollowingRole {
 public:
  FollowingRole(FollowingParts parts, std::unique_ptr<storage::Journal> journal);
  ~FollowingRole() noexcept(false);
  FollowingRole(const FollowingRole&) = delete;
  FollowingRole& operator=(const FollowingRole&) = delete;

  // Follows until it has taken the lead.
  kj::Promise<Taken> run();
  // Tells the leader that it need not wait for us. Call it when run() is given up.
  kj::Promise<void> leave();
  // After run(): the journal, ready to be written.
  std::unique_ptr<storage::Journal> take_journal() { return std::move(journal_); }
  const OwnNote& note() const { return parts_.note; }

  // The leader, while we are connected to it; for connections that are passed on.
  kj::Maybe<wire::Leading::Client> leader();
  const std::string& leader_name() const { return leader_name_; }
  // The authority of the cluster, once it is known.
  const std::optional<tls::Authority>& authority() const { return authority_; }
  const PeerCredentials& credentials() const { return credentials_; }
  // Asks the store first, at most once a second.
  kj::Promise<FollowerFigures> figures();

 private:
  class Port;
  struct Connection;

  kj::Promise<void> look();
  kj::Promise<void> saw(StoreSeen seen);
  kj::Promise<void> found_nothing();
  kj::Promise<void> make_configuration();
  kj::Promise<void> ask_peers(std::map<std::string, std::string> peers);
  kj::Promise<void> ask_peer(std::string name, std::string address);
  kj::Promise<kj::Own<kj::AsyncIoStream>> dial(const std::string& address, kj::TlsContext& tls);
  kj::Promise<void> follow(const core::standby::Configuration& configuration);
  kj::Promise<void> joined(kj::Own<kj::AsyncIoStream> stream, std::string name);
  kj::Promise<void> join(Connection& connection);
  kj::Promise<void> answered(Connection& connection, wire::Leading::Answer::Reader answer);
  kj::Promise<void> copy(Connection& connection, wire::Checkpoint::Client checkpoint);
  kj::Promise<void> silence(Connection& connection);
  kj::Promise<void> take(StoreChange change);
  kj::Promise<void> try_take(StoreChange change, Millis asked);
  std::string seat_to_lead();
  Status keep_seat(const std::string& seat);
  void join_cluster(const std::string& cluster);
  void learn_head();
  void write_replica(wire::Replica::Builder out);
  uint64_t append(wire::Batch::Reader batch);
  bool heeds(uint64_t term);
  void say(const std::string& state);       // logs it when it changes
  void complain(const std::string& state);  // likewise, as a warning
  void note_seen(const Result<StoreSeen>& seen);
  FollowerFigures figures_now() const;

  FollowingParts parts_;
  kj::Timer& timer_;
  std::unique_ptr<storage::Journal> journal_;        // null while it is replaced
  std::optional<core::standby::Follower> follower_;  // once the journal's head is known
  core::EpochLine line_;                             // the journal's
  uint64_t epoch_ = 0, nonce_ = 0;                   // the last in it
  std::string cluster_;                              // of the journal; empty: it is empty
  PeerCredentials credentials_;
  std::optional<tls::Authority> authority_;
  kj::Own<Connection> connection_;  // null: none
  std::string leader_name_;
  Millis heard_ = 0;    // the last beat
  uint64_t ahead_ = 0;  // the leader's last commit, as it said then; 0: not known
  Millis asked_ = 0;    // when the store was last asked for figures()
  bool store_answers_ = false;
  bool store_wiped_ = false, in_sync_ = false;  // as of the last answer of the store
  DurationBuckets syncs_;
  Millis patient_until_ = 0;  // before which it does not take the lead
  bool hurries_ = false;      // no pause before the next look
  std::string seat_;          // of seat_to_lead(); empty: none yet
  std::string said_;
  std::optional<Taken> result_;
};

}  // namespace muster::standby
