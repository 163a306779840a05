// ReachEvents: writes an event for an MPI job whose nodes do not reach each other, and when they do
// again (core/cluster/nodes/reach.hpp).
//
// An event is a stored object in the job's namespace, for the job's owner, and the job is its
// involvedObject. A restarted coordinator may write one again.
//
// Bounded: kNewInAnHour an hour. `muster why` says it, too.
//
// Belongs to the API thread.
#pragma once

#include "api/request/backend.hpp"
#include "api/routes/kept/event_pace.hpp"
#include "api/view/model/view.hpp"

#include <kj/timer.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace muster::api {

class ReachEvents {
 public:
  static constexpr size_t kNewInAnHour = 500;

  ReachEvents(kj::Timer& timer, const View& view, Backend& backend, WallClock now)
      : pace_(timer, "events of nodes that do not reach each other"),
        view_(view),
        backend_(backend),
        now_(std::move(now)) {}
  // Looks once a second from now on.
  void start();
  void look();

 private:
  void tell(JobId id, const std::string& text);
  void write(const core::Job& job, bool warning, const char* reason, const std::string& message);

  EventPace pace_;
  const View& view_;
  Backend& backend_;
  const WallClock now_;
  std::map<JobId, std::string> told_;  // which of a job's nodes do not reach each other
};

}  // namespace muster::api
