// LeadingRole: what a coordinator does for its followers while it leads: sends them each batch and
// a beat, copies its journal for those that lack too much, keeps its lease and the configuration in
// the store, and passes their clients' connections to its API. The decisions are core's
// (core/standby/leader.hpp).
//
// It ends with the process when the lead is lost, so that nothing is answered after that; or it is
// given up in good order: resign() after the coordinator has stopped.
//
// Belongs to the peers' thread.
#pragma once

#include "base/seldom.hpp"
#include "core/cluster/nodes/epoch_line.hpp"
#include "core/standby/leader.hpp"
#include "standby/lead_handle.hpp"
#include "standby/recent_batches.hpp"
#include "standby/store/store.hpp"
#include "trust/store/open_authority.hpp"

#include <kj/async-io.h>

#include <functional>
#include <map>
#include <memory>
#include <schema/standby.capnp.h>
#include <string>
#include <vector>

namespace muster::standby {

// What the store holds with this lead.
struct Taken {
  core::standby::Configuration configuration;
  uint64_t revision = 0;  // of the configuration
  uint64_t created = 0;   // of the leader's key
  uint64_t lease = 0;
  Millis asked = 0;  // when the lease was asked for, boot clock
};

struct LeadingParts {
  kj::AsyncIoContext& io;
  std::shared_ptr<coordinator::Door> door;
  Store& store;
  RecentBatches& recent;
  core::standby::Timing timing;
  std::string data_dir;
  std::string holder;                           // the value of the leader's key
  std::function<void(const std::string&)> end;  // ends the process; does not return
  std::function<void()> hands_over;             // the coordinator has to stop, and then resign()
  // The store holds this configuration.
  std::function<void(const core::standby::Configuration&)> holds;
};

class LeadingRole final : public LeadWork {
 public:
  LeadingRole(LeadingParts parts, Taken taken, std::unique_ptr<storage::Journal> journal);
  ~LeadingRole() noexcept override;

  std::shared_ptr<LeadHandle> handle() const { return handle_; }

  // The bootstrap capability for a connection from the holder of this certificate.
  wire::Leading::Client serve_peer(tls::Identity who);

  // The authority of the cluster; none: the coordinator has not started yet.
  std::optional<tls::Authority> authority(const coordinator::AuthorityFiles& files);

  // Gives the lead up: to the member that change() has named, or to any that is in sync.
  kj::Promise<void> resign();

  // ---- LeadWork
  void begins(uint64_t commit, storage::Replication::Batch batch) override;
  void synced(uint64_t commit) override;
  coordinator::LeadFigures figures() override;
  void change(coordinator::LeadChange change, const std::string& member,
              std::function<void(Status)> done) override;

 private:
  class Port;
  struct Follower;

  std::string refuses(wire::Replica::Reader replica);
  bool continues(wire::Replica::Reader replica);
  kj::Promise<void> copy_for(wire::Leading::Answer::Builder answer);
  uint64_t admit(wire::Replica::Reader replica, wire::Following::Client following);
  void send(const std::string& member, Follower& follower, uint64_t commit,
            const storage::Replication::Batch& batch);
  kj::Promise<void> beat(std::string member, uint64_t number);
  void give_seats();
  void gone(const std::string& member, uint64_t number, const std::string& why);
  void ends(const std::string& member, uint64_t number);
  Follower* find(const std::string& member, uint64_t number);

  kj::Promise<void> keep_lease();
  kj::Promise<void> keep_configuration();
  kj::Promise<void> put_key();
  kj::Promise<void> write(core::standby::Configuration wanted);
  // Takes what the store holds; ends the process if somebody else leads.
  void found(const StoreChanged& changed);
  kj::Promise<void> watch();
  void publish();
  Status decide(coordinator::LeadChange change, const std::string& member);
  void settle_removals();

  LeadingParts parts_;
  kj::Timer& timer_;
  core::standby::Leader leader_;
  uint64_t revision_, created_, lease_;
  bool leased_ = true;  // the key is in the store, as far as is known
  bool store_answers_ = true;
  bool store_wiped_ = false;  // it holds no configuration
  uint64_t last_;             // begun
  uint64_t numbers_ = 0;      // of followers' connections
  std::map<std::string, kj::Own<Follower>> followers_;
  struct Removal {
    std::string member;
    Millis until = 0;  // when whoever waits is told that it has not happened yet
    std::function<void(Status)> done;
  };
  std::vector<Removal> removals_;  // that the store does not have yet
  std::string heir_;               // who is to lead next; empty: any
  bool resigning_ = false;
  bool resigned_ = false;              // or may have
  Seldom silent_lines_, wiped_lines_;  // about the store
  std::shared_ptr<LeadHandle> handle_;
  storage::Journal* journal_;  // the handle's, for reading; valid as long as the coordinator
  struct Failures final : public kj::TaskSet::ErrorHandler {
    kj::TaskSet::ErrorHandler& handler() { return *this; }
    void taskFailed(kj::Exception&& e) override;
  };
  struct Broken final : public kj::TaskSet::ErrorHandler {
    kj::TaskSet::ErrorHandler& handler() { return *this; }
    void taskFailed(kj::Exception&&) override {}  // a client or a follower has gone
  };
  Broken broken_;
  kj::TaskSet passed_{broken_.handler()};  // connections
  Failures failures_;
  kj::TaskSet tasks_{failures_.handler()};
};

}  // namespace muster::standby
