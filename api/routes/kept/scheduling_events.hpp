// SchedulingEvents: writes an event for a pod that gets no node (FailedScheduling), with the
// message of its PodScheduled condition, as Kubernetes' scheduler does.
//
// An event is one stored object per pod. It is written again, with a higher count, when the message
// changes and every few minutes while the pod waits, so it stays as long as it is true, and an hour
// more. A restarted coordinator finds it by its name, which follows from the pod.
//
// Bounded: the first kPodsOfJob pods of a job that wait, kNewInAnHour events an hour and
// kWritesAtOnce at once. A pod without an event still has its condition.
//
// Belongs to the API thread.
#pragma once

#include "api/request/backend.hpp"
#include "api/routes/kept/event_pace.hpp"
#include "api/view/model/view.hpp"
#include "api/view/render/render.hpp"

#include <kj/timer.h>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace muster::api {

// What an event says.
struct SchedulingEvent {
  std::string message;
  int64_t count = 0;  // how often; 0: there is none yet
  Millis first = 0, last = 0;
};
// Whether it is due to be written (again) with this message.
bool is_due(const SchedulingEvent& event, const std::string& message, Millis now);

class SchedulingEvents {
 public:
  static constexpr size_t kPodsOfJob = 8, kNewInAnHour = 2'000, kWritesAtOnce = 20;
  static constexpr Millis kChangedMs = 10'000, kAgainMs = 300'000;  // between two writes of one

  SchedulingEvents(kj::Timer& timer, const View& view, Renderer& renderer, Backend& backend,
                   WallClock now)
      : pace_(timer, "events of pods without a node"),
        view_(view),
        renderer_(renderer),
        backend_(backend),
        now_(std::move(now)) {}
  // Looks once a second from now on.
  void start();
  void look();

 private:
  struct OfJob {
    std::map<PodKey, SchedulingEvent> pods;  // that wait
    size_t made = 0;                         // events in the life of the job
  };

  void look_at(const core::Job& job, Millis now);
  void write(const core::Job& job, PodKey pod, SchedulingEvent& event, const std::string& message,
             Millis now);

  EventPace pace_;
  const View& view_;
  Renderer& renderer_;
  Backend& backend_;
  const WallClock now_;
  std::map<JobId, OfJob> jobs_;  // of which a pod has waited, as long as they are not over
  std::set<std::string> asked_;  // names of events that are being written
};

}  // namespace muster::api
