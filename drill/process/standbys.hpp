// Standbys: several coordinators of a scratch cluster, one of which leads, and the etcd that
// decides which, as real processes on loopback addresses. docs/standby.md describes such a cluster.
#pragma once

#include "base/result.hpp"
#include "client/connect/http.hpp"
#include "drill/process/relay.hpp"
#include "drill/process/spawn.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli::drill {

// The executable of etcd: the environment variable MUSTER_ETCD, else the one in PATH. Empty: none.
std::string etcd_program();

// Who coordinates, according to the coordinator that leads.
struct Lineup {
  uint64_t term = 0;
  std::string leader;              // its name; empty: the coordinator is alone
  std::vector<std::string> ready;  // names of those that are in sync and connected, leader included
};
// unavailable: nobody answers.
Result<Lineup> lineup_of(ApiClient& client);

struct StandbysOptions {
  std::string dir;         // exists; everything is below it
  std::string executable;  // muster
  uint32_t count = 2;
  Millis grace_ms = 0;   // --node-grace
  bool relayed = false;  // each reaches etcd through a Relay
};

// One coordinator. Its addresses stay.
struct Member {
  std::string name;  // "c1"
  Daemon daemon;
  std::string data_dir, api, listen, peers;  // HOST:PORT
  std::unique_ptr<Relay> to_store;           // null: it reaches etcd directly
};

class Standbys {
 public:
  // Waits until the first one leads and the others are in sync. `interrupted` is polled while it
  // waits. unavailable: says which does not start, with the end of its log.
  static Result<std::unique_ptr<Standbys>> start(StandbysOptions options, Interrupted interrupted);
  ~Standbys();  // ends all of them
  Standbys(const Standbys&) = delete;
  Standbys& operator=(const Standbys&) = delete;

  // Separated by commas.
  std::string api() const { return listed(&Member::api); }
  std::string listen() const { return listed(&Member::listen); }
  std::vector<Member>& members() { return members_; }
  Daemon& etcd() { return etcd_; }
  // To all of them. Only for the thread that made them.
  ApiClient& client() { return *client_; }

  // One that began to serve as the leader and has not ended; null: there is none, besides `except`.
  Member* leader(const Member* except = nullptr);
  // Starts one that is not running. It need not serve yet.
  Status start(Member& member);
  // Waits until one leads and all others are in sync. unavailable: says which is not.
  Status wait_in_sync();
  // Restarts those that ended by themselves; returns them, each with the end of its log.
  std::vector<std::string> supervise();

 private:
  Standbys(StandbysOptions options, Interrupted interrupted)
      : options_(std::move(options)), interrupted_(std::move(interrupted)) {}
  Status start_etcd();
  Status start_first();
  Status add(Member& member);
  std::string listed(std::string Member::*address) const;

  const StandbysOptions options_;
  const Interrupted interrupted_;
  uint16_t etcd_port_ = 0, etcd_peer_port_ = 0;
  Daemon etcd_;
  std::vector<Member> members_;
  std::unique_ptr<ApiClient> client_;
};

}  // namespace muster::cli::drill
