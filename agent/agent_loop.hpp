// Agent: the loop between the coordinator, core::node::Node and the executor.
//
// The node learns of every event at once; its orders are carried out at the end of the same turn of
// the loop (pump). So everything that arrives in one turn is one batch, and batches grow while
// reports are in flight.
//
// A broken connection is retried forever (after 100 ms to 5 s, with jitter, so that a thousand
// agents don't reconnect in step). So is a temporary refusal (the name is held by a living node,
// not serving yet); any other refusal ends the agent. Of several coordinators, all are tried before
// such a pause, beginning with the one that last registered the node. An order is obeyed only once
// its term is on disk.
//
//   agent_connection.cpp  the connection: registration, heartbeats, reports
//   agent_calls.cpp       calls from the coordinator and from pods
//   agent_loop.cpp        the executor, the node's orders, leaving
//   agent_metrics.cpp     the text of its metrics
//
// Belongs to one KJ thread.
#pragma once

#include "agent/files/logs.hpp"
#include "agent/files/work_dir.hpp"
#include "agent/health_check.hpp"
#include "agent/link/credentials.hpp"
#include "agent/link/link.hpp"
#include "agent/link/peer_port.hpp"
#include "agent/options.hpp"
#include "agent/pod_programs/local_server.hpp"
#include "agent/pod_programs/run_dirs.hpp"
#include "agent/run/config_desk.hpp"
#include "agent/run/executor.hpp"
#include "agent/run/sessions.hpp"
#include "base/network/address_list.hpp"
#include "base/peer/trusted_servers.hpp"
#include "core/node/node.hpp"

#include <kj/async-io.h>

#include <map>
#include <optional>
#include <random>
#include <schema/agent.capnp.h>
#include <set>
#include <string>
#include <utility>

namespace muster::agent {

class Agent final : private Executor::Listener, private LocalServer::Agent {
 public:
  Agent(kj::AsyncIoContext& io, const AgentOptions& options, WorkDir& work_dir,
        Credentials& credentials, LogStore& logs, RunDirs& run_dirs, Executor& executor);
  ~Agent() noexcept override = default;

  // Resolves to the exit code, or to why the agent can't continue.
  kj::Promise<Result<int>> run();
  void obey(AgentControl::Command command);
  bool finished() const { return result_.has_value(); }
  std::string metrics() const;

 private:
  class Server;  // wire::Agent, for one link
  wire::Agent::Client calls(uint64_t link);

  // A failed task is a bug...
  struct Bug final : private kj::TaskSet::ErrorHandler {
    kj::TaskSet::ErrorHandler& handler() { return *this; }
    void taskFailed(kj::Exception&& exception) override;
  };
  // ...except tasks of a link, which fail when it breaks.
  struct LinkLoss final : private kj::TaskSet::ErrorHandler {
    kj::TaskSet::ErrorHandler& handler() { return *this; }
    explicit LinkLoss(Agent& agent) : agent(agent) {}
    void taskFailed(kj::Exception&& exception) override;
    Agent& agent;
  };

  kj::Promise<void> stay_connected();
  kj::Promise<void> one_connection();
  void say_limits();  // logs which container limits are enforced here
  kj::Promise<void> connected(kj::Own<kj::AsyncIoStream> stream);
  kj::Promise<void> prove(Link& link);  // fails unless the coordinator may have our hello
  kj::Promise<void> enroll(Link& link);
  kj::Promise<void> join(Link& link);
  kj::Promise<void> get_certificate(Link& link);
  kj::Promise<void> keep_certificate(Link& link);  // renews it in time
  kj::Promise<void> greeted(wire::Registered::Reader answer, Millis sent_at);
  void welcome(wire::Welcome::Reader from, wire::Session::Client session, Millis sent_at);
  void refused(wire::Refusal::Reader from);
  void close_link(const std::string& why);
  void say_lost(const std::string& why);
  void write_hello(wire::Hello::Builder hello);
  kj::Promise<void> heartbeats(Link& link);
  void send_heartbeat(Link& link);
  bool learn(const std::string& cluster_id, core::node::Term term,
             const std::string& cluster_key = "", uint64_t commit = 0,
             const std::string& seal = "");
  void send(Link& link, wire::Session::Client session, const core::node::Report& report);

  void require_term(core::node::Term term);  // throws unless it is obeyed
  void launch(wire::Agent::LaunchParams::Reader params);
  void accept(core::node::Term term, capnp::List<wire::Launch>::Reader pods);
  void kill(wire::Agent::KillParams::Reader params);
  void limit(wire::Agent::LimitParams::Reader params);
  kj::Promise<void> read_log(wire::Agent::ReadLogParams::Reader params,
                             wire::Agent::ReadLogResults::Builder results);
  kj::Promise<void> find_log(wire::Agent::FindLogParams::Reader params,
                             wire::Agent::FindLogResults::Builder results);

  void take_hosts(wire::Agent::HostsParams::Reader params);
  void meet(wire::Agent::MeetParams::Reader params, wire::Agent::MeetResults::Builder results);
  kj::Promise<void> reach(wire::Agent::ReachParams::Reader params,
                          wire::Agent::ReachResults::Builder results);
  void exec(wire::Agent::ExecParams::Reader params, wire::Executed::Builder result);
  Result<wire::Process::Client> join_pod(const core::node::PodTemplatePtr& job, PodId pod,
                                         const std::string& session, Sessions::Command command);
  kj::Promise<void> settled();
  kj::Promise<void> check_sessions();
  bool runs(PodId pod) const override { return node_.runs(pod); }
  kj::Maybe<wire::Session::Client> session() override;
  kj::Promise<void> session_changes() override;
  void give_up(PodId pod, const std::string& why, bool lost) override;

  void on_started(const std::vector<core::node::ProcessStart>& started) override;
  void on_ended(const std::vector<core::node::ProcessEnd>& ended) override;
  std::string health_failure() const;
  void note_hook(const core::node::ProcessEnd& end);
  void take_ends(const std::vector<core::node::ProcessEnd>& ended);
  bool may_be_ending() const;
  void on_volume_full(PodId pod, const std::string& message) override;
  void on_executor_gone(const std::string& why) override;
  void connect_executor();
  void listen_to_pods();
  void reconnect_executor();  // tries until it succeeds
  kj::Promise<void> watch_executor();
  void show_trouble(core::node::Trouble trouble);
  void hold_starts();

  void schedule();
  void pump();
  void start_held(std::vector<Executor::Start> starts);
  void drain();
  void say_leave(Link& link, wire::Session::Client session);
  kj::Promise<void> watch_drain(Millis alone_since);
  kj::Promise<void> sweep_logs();
  kj::Promise<void> watch_outputs();  // for the times of their lines
  kj::Promise<void> watch_memory();
  kj::Promise<void> watch_end();
  void finish(Result<int> result);
  void say(const std::string& state);  // logs a state when it changes

  kj::AsyncIoContext& io_;
  kj::Timer& timer_;
  const AgentOptions options_;
  TrustedServers servers_;
  AddressList coordinators_;
  bool turned_ = false;  // to the next of them, which is tried at once
  std::string address_;  // of the coordinator, in the latest attempt to connect
  WorkDir& work_dir_;
  Credentials& credentials_;
  LogStore& logs_;
  RunDirs& run_dirs_;
  Executor& executor_;
  core::node::Node node_;
  Sessions sessions_;
  LocalServer local_;
  ConfigDesk configs_;
  PeerPort peers_;
  std::string ip_;          // where other nodes reach this one, as of the last registration
  bool listening_ = false;  // local_
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> want_session_;
  std::set<PodId> giving_up_;  // pods to be given up after a delay
  std::map<std::pair<JobId, int64_t>, core::node::PodTemplatePtr>
      templates_;                                     // received on this connection
  std::map<PodId, core::node::PodTemplatePtr> pods_;  // waiting or running
  std::mt19937_64 chance_{std::random_device{}()};
  uint64_t links_ = 0;           // made so far
  Millis pause_ms_ = 0;          // before the next attempt to connect
  Millis pause_max_ms_ = 1'000;  // until registered; then half the lease, at most 5 s
  std::string said_;
  const Millis started_ms_ = wall_now();
  uint64_t starts_ = 0, ends_ = 0;  // of processes, since then
  bool executor_ready_ = false;
  std::string executor_gone_;               // why it is not ready
  std::optional<Millis> executor_gone_ms_;  // since when, until what it ran is given up
  std::optional<Millis> work_dir_gone_ms_;
  core::node::Trouble trouble_;  // of the executor; sent with each heartbeat
  bool executor_trouble_ = false;
  std::optional<HealthCheck> check_;
  std::string epilog_failure_;  // since the agent started; empty: none has failed
  Millis life_ms_ = 0;          // from its start to its end (--until)
  bool closing_ = false;        // the end is near: no new pods
  bool draining_ = false;
  bool registered_ = false;    // at least once
  bool saying_leave_ = false;  // Session.leave is in flight
  bool leaving_ = false;       // exiting: no more orders are carried out
  bool pumping_ = false;
  std::optional<Millis> again_at_;  // when a timer calls pump()
  kj::Promise<void> again_ = kj::READY_NOW;
  std::optional<Result<int>> result_;
  kj::Own<kj::PromiseFulfiller<void>> finished_;
  Bug bug_;
  LinkLoss link_loss_{*this};
  kj::Own<Link> link_;  // null: not connected
  kj::TaskSet tasks_{bug_.handler()};
};

}  // namespace muster::agent
