// KeeperHands: real processes, by way of the keeper.
//
// Builds each pod's command, environment and log files, and leaves in the keeper's note what a
// restarted agent needs. A pod whose command can't be built ends with 126 as if its start had
// failed.
#pragma once

#include "agent/hands.hpp"
#include "agent/keeper_client.hpp"
#include "agent/work_dir.hpp"

#include <kj/async-io.h>

#include <string>
#include <vector>

namespace muster::agent {

class KeeperHands final : public Hands,
                          private KeeperClient::Listener,
                          private kj::TaskSet::ErrorHandler {
 public:
  KeeperHands(kj::UnixEventPort& port, WorkDir& work_dir, LogStore& logs, std::string keeper_path)
      : port_(port),
        work_dir_(work_dir),
        logs_(logs),
        keeper_path_(std::move(keeper_path)),
        node_(NodeFacts::of_this_process(work_dir.node_name())),
        later_(*this) {}

  ~KeeperHands() noexcept override = default;
  Result<Inventory> connect(Hands::Listener& listener) override;
  void start(const std::vector<Start>& starts) override;
  void kill(const std::vector<core::node::KillOrder>& kills) override;
  void forget(const std::vector<uint64_t>& entries) override;
  void end_all() override;

 private:
  void on_started(std::vector<ProcessStarted> started) override;
  void on_ended(std::vector<ProcessEnded> ended) override;
  void on_keeper_gone(std::string why) override;
  void taskFailed(kj::Exception&& exception) override;

  Result<SpawnOrder> spawn_order(const Start& start);
  core::node::ProcessEnd end_of(const ProcessEnded& ended);

  kj::UnixEventPort& port_;
  WorkDir& work_dir_;
  LogStore& logs_;
  const std::string keeper_path_;
  const NodeFacts node_;
  Hands::Listener* listener_ = nullptr;
  kj::Own<KeeperClient> keeper_;  // null: gone
  kj::TaskSet later_;
};

}  // namespace muster::agent
