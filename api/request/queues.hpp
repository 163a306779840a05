// Queues: the stored queues and priority classes as values, for admission and for the scheduler.
//
// Queues name groups; their numbers are looked up when a queue changes, and at the start. A group
// that does not exist has no members, and is looked up again now and then: the user database may
// have started later than the coordinator. While it cannot be read, a group keeps the number that
// it had.
//
// Belongs to the API thread.
#pragma once

#include "api/access/directory.hpp"
#include "api/kube/objects/queue_object.hpp"
#include "api/request/backend.hpp"
#include "api/view/model/view.hpp"
#include "core/queue/rights.hpp"

#include <kj/async.h>
#include <kj/timer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster::api {

class Queues final : private kj::TaskSet::ErrorHandler {
 public:
  Queues(kj::Timer& timer, const View& view, Backend& backend, Directory& directory)
      : timer_(timer), view_(view), backend_(backend), directory_(directory), lookups_(*this) {}

  // Call it once the View has the recovered objects, and then whenever it has changed.
  void look();
  // Resolves once all that the View shows is in all().
  kj::Promise<void> settled();
  bool ready() const { return ready_; }  // all() has been filled since the start
  std::shared_ptr<const core::QueueSet> all() const { return all_; }

 private:
  void read();
  kj::Promise<void> look_up(std::string group);
  kj::Promise<void> look_again();
  void publish();
  void taskFailed(kj::Exception&& failed) override;

  kj::Timer& timer_;
  const View& view_;
  Backend& backend_;
  Directory& directory_;
  std::pair<uint64_t, uint64_t> seen_{};  // the ends of the changes that were read
  bool started_ = false, ready_ = false;
  bool busy_ = false;     // groups are being looked up
  bool missing_ = false;  // some were not found
  GroupIds groups_;
  std::shared_ptr<const core::QueueSet> all_ = std::make_shared<core::QueueSet>();
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting_;
  kj::TaskSet lookups_;
  kj::Promise<void> again_ = kj::READY_NOW;
};

}  // namespace muster::api
