// Scratch: a private cluster for a drill or `muster dev`: a coordinator and agents as real
// processes, each agent with its own work-dir and keeper, all below one directory.
//
// It is also their supervisor: it restarts daemons that a scenario has killed or that ended by
// themselves. The daemons die with the drill (PR_SET_PDEATHSIG). Only the thread that made it may
// call it.
#pragma once

#include "base/result.hpp"
#include "client/connect/http.hpp"
#include "drill/process/process.hpp"
#include "drill/process/relay.hpp"
#include "drill/process/spawn.hpp"
#include "drill/process/standbys.hpp"

#include <memory>
#include <string>
#include <vector>

namespace muster::cli::drill {

struct ScratchOptions {
  std::string dir;         // exists; everything is below it
  std::string executable;  // muster, with muster-keeper beside it
  uint32_t nodes = 3;
  uint32_t slots = 4;                  // of each node
  Millis grace_ms = 3'000;             // --node-grace
  bool relayed = false;                // agents connect through a Relay
  bool witnesses = true;               // creates witness_dir()
  std::string prefix = "drill-";       // of the names of nodes
  std::string api = "127.0.0.1:0";     // where the coordinator serves clients
  std::string api_socket;              // likewise, which clients then use; empty: none
  std::string listen = "127.0.0.1:0";  // likewise, agents
  std::string clock_lib;  // libfaketimeMT.so.1, preloaded into the coordinator; empty: none
  // More than 1: several coordinators, one of which leads, with an etcd; then `api`, `api_socket`,
  // `listen`, `relayed` and `clock_lib` do not apply.
  uint32_t coordinators = 1;
  bool relayed_store = false;  // these reach etcd through a Relay each
};

class Scratch {
 public:
  // `interrupted` is polled while it waits.
  static Result<std::unique_ptr<Scratch>> start(ScratchOptions options, Interrupted interrupted);
  // Ends every process of the cluster, pods included.
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const ScratchOptions& options() const { return options_; }
  // HOST:PORT, of each coordinator, separated by commas.
  const std::string& api() const { return api_; }
  // What clients use: the socket, else api().
  std::string client_address() const {
    return options_.api_socket.empty() ? api_ : "unix:" + options_.api_socket;
  }
  // Only for the thread that made the cluster; a thread can have only one client.
  ApiClient& client() { return standbys_ ? standbys_->client() : *client_; }
  std::string witness_dir() const { return options_.dir + "/witness"; }
  std::string clock_file() const { return options_.dir + "/clock"; }
  std::string data_dir() const { return data_dir_; }
  static std::string node_name(uint32_t node) { return "drill-" + std::to_string(node); }

  // The only coordinator; not running if there are several.
  Daemon& coordinator() { return coordinator_; }
  // The several coordinators; null: there is only one.
  Standbys* standbys() { return standbys_.get(); }
  Daemon& agent(uint32_t node) { return agents_[node]; }
  Result<Process> keeper(uint32_t node) const;
  Relay* relay(uint32_t node) { return relays_.empty() ? nullptr : relays_[node].get(); }

  // Starts a daemon that is not running, with this executable (empty: the one in the options), and
  // waits until the coordinator serves.
  Status start_coordinator(const std::string& executable = "");
  Status start_agent(uint32_t node, const std::string& executable = "");
  // Signals a daemon and waits until it has ended. unavailable: it has not ended.
  Status end(Daemon& daemon, int signal) { return end_daemon(daemon, signal); }
  // The data-dir of the next start_coordinator().
  void use_data_dir(std::string dir) { data_dir_ = std::move(dir); }
  // Runs a muster verb to completion; unavailable: it failed, with its output.
  Status run_verb(const std::vector<std::string>& words);

  // Restarts daemons that ended by themselves; returns them, each with the end of its log.
  std::vector<std::string> supervise();
  // Waits until every node is Ready.
  Status wait_ready();

 private:
  Scratch(ScratchOptions options, Interrupted interrupted);
  Status start_all_coordinators();
  std::string name_of(uint32_t node) const { return options_.prefix + std::to_string(node); }

  const ScratchOptions options_;
  const Interrupted interrupted_;
  std::string api_, listen_, data_dir_;
  std::unique_ptr<ApiClient> client_;  // null: there are several coordinators
  Daemon coordinator_;
  std::unique_ptr<Standbys> standbys_;
  std::vector<Daemon> agents_;
  std::vector<std::unique_ptr<Relay>> relays_;
};

}  // namespace muster::cli::drill
