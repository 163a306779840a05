// KeeperExecutor: runs real processes through the keeper.
//
// Builds the command, environment and log files of each process. Its note in the keeper and the
// stored template hold what a restarted agent needs to continue its pod. A process whose command
// can't be built ends with 126, as if its start had failed.
#pragma once

#include "agent/files/input_file.hpp"
#include "agent/files/note.hpp"
#include "agent/files/work_dir.hpp"
#include "agent/link/template_store.hpp"
#include "agent/pod_programs/run_dirs.hpp"
#include "agent/run/environment.hpp"
#include "agent/run/executor.hpp"
#include "agent/run/keeper_client.hpp"
#include "core/node/command.hpp"

#include <kj/async-io.h>

#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

class KeeperExecutor final : public Executor,
                             private KeeperClient::Listener,
                             private kj::TaskSet::ErrorHandler {
 public:
  // Programs; empty: none.
  struct Hooks {
    std::string prolog, epilog;
  };
  KeeperExecutor(kj::UnixEventPort& port, WorkDir& work_dir, LogStore& logs, RunDirs& run_dirs,
                 std::string keeper_path, std::string scratch_dir = "",
                 const core::node::NodeExtras& extras = {},
                 std::optional<uint64_t> output_max_bytes = std::nullopt,
                 std::vector<std::string> resources = {}, bool binds_cpus = false, Hooks hooks = {})
      : port_(port),
        work_dir_(work_dir),
        logs_(logs),
        run_dirs_(run_dirs),
        keeper_path_(std::move(keeper_path)),
        scratch_dir_(std::move(scratch_dir)),
        output_max_bytes_(output_max_bytes),
        resources_(std::move(resources)),
        binds_cpus_(binds_cpus),
        hooks_(std::move(hooks)),
        extras_(extras),
        templates_(work_dir.path() + "/templates", extras),
        node_(node_facts(work_dir.node_name())),
        later_(*this) {}

  ~KeeperExecutor() noexcept override = default;
  Result<Inventory> connect(Executor::Listener& listener) override;
  Limits limits() const override;
  std::string keeper_version() const override;
  bool queues() const override;
  core::node::Trouble check() override;
  kj::Promise<void> settled() override;
  void start(const std::vector<Start>& starts) override;
  void contact(Millis at) override;
  void set_room(uint32_t count) override;
  void withdraw(const std::vector<PodId>& pods) override;
  void kill(const std::vector<core::node::KillOrder>& kills) override;
  void signal(const std::vector<core::node::SignalOrder>& signals) override;
  void forget(const std::vector<uint64_t>& entries) override;
  bool runs_users() const override { return keeper_can(&KeeperClient::Abilities::run_as); }
  bool takes_templates() const override { return !runs_users() || keeper_->abilities().templates; }
  void listen(SessionListener& listener) override { sessions_ = &listener; }
  Status start_session(SessionStart start) override;
  void kill_session(const SessionKey& key, Millis grace_ms) override;
  void write_session(const SessionKey& key, uint64_t offset, std::string_view data,
                     bool eof) override;
  kj::Promise<kj::AutoCloseFd> open_log(const LogName& name) override;
  bool mounts() const override { return keeper_can(&KeeperClient::Abilities::mounts); }
  void release(const std::vector<PodId>& pods) override;
  void keep(const std::vector<PodId>& pods) override;
  void end_all() override;

 private:
  // Whether a keeper is connected that can do this.
  bool keeper_can(bool KeeperClient::Abilities::*what) const {
    return keeper_.get() != nullptr && keeper_->abilities().*what;
  }
  void on_started(std::vector<core::node::ProcessStart> started) override;
  void on_ended(std::vector<keeper::Ended> ended) override;
  void on_taken(std::vector<InputTaken> taken) override;
  void on_full(std::vector<VolumeFull> full) override;
  void on_keeper_gone(std::string why) override;
  void taskFailed(kj::Exception&& exception) override;

  // Whose fault it is that a process cannot be started: what the job asks for, this node for this
  // job, or this node for any.
  enum class Fault : uint8_t { job, here, node };
  Result<SpawnOrder> spawn_order(const Start& start, Fault& fault);
  Result<SpawnOrder> hook_order(const Start& start, Fault& fault);
  std::string last_line(const Note& note) const;
  Status allowed(const core::node::PodTemplate& job) const;
  SpawnOrder order_of(const ProcessKey& key, const core::node::PodTemplate& job,
                      core::node::Command command, LogStore::Paths files,
                      core::node::DeviceMap devices) const;
  Status add_space(SpawnOrder& order, const core::node::PodTemplate& job, size_t container);
  // Refuses a process that cannot be confined as its securityContext asks.
  Status confine(SpawnOrder& order, const core::node::TemplateContainer& container);
  Status prepare_run_dir(PodId pod, const core::node::PodTemplatePtr& job);
  // Of one of its containers, and which it must not see.
  core::node::DeviceMap devices_of(const core::node::PodTemplate& job, size_t container,
                                   const core::node::DeviceMapPtr& of_pod) const;
  Result<core::node::Command> command_for(const Start& start, const core::node::DeviceMap& devices);
  // What the job's inputs_file holds; null: it has none.
  Result<core::InputTablePtr> inputs_of(const core::node::PodTemplate& job);
  core::node::Origin origin_of(PodId pod, const Note& note, Inventory& inventory);

  kj::UnixEventPort& port_;
  WorkDir& work_dir_;
  LogStore& logs_;
  RunDirs& run_dirs_;
  const std::string keeper_path_, scratch_dir_;
  const std::optional<uint64_t> output_max_bytes_;
  const std::vector<std::string> resources_;  // that the node declares
  const bool binds_cpus_;
  const Hooks hooks_;
  const core::node::NodeExtras extras_;
  SessionListener* sessions_ = nullptr;  // null: there are none
  TemplateStore templates_;
  core::node::NodeFacts node_;
  Executor::Listener* listener_ = nullptr;
  InputFile input_file_;
  core::node::PodTemplatePtr last_job_;                // of the last start
  std::optional<core::node::CommandPattern> pattern_;  // of last_job_
  kj::Own<KeeperClient> keeper_;                       // null: not connected
  kj::TaskSet later_;
};

}  // namespace muster::agent
