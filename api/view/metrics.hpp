// Metrics: the counters of job-semantics 12, and a few of muster's own.
//
// Derived from the durable records alone, in the order in which they became durable, as the View
// applies them: so nothing is counted that a crash could take back, and nothing twice (a restart
// begins at 0, as a Prometheus counter may). The syncs alone are told by the job actors.
//
// before()/after() run on the API thread, synced() on any.
#pragma once

#include "api/view/view.hpp"
#include "base/clock.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace muster::api {

class Metrics final : public RecordObserver {
 public:
  Metrics(std::string version, WallClock now);
  ~Metrics() override;

  void before(const core::Job& job, const core::Record& record) override;
  void after(const core::Job& job, const core::Record& record) override;

  // One decision of a job. `action`: reconciling, tracking, pods_created or pods_deleted.
  void synced(bool indexed, std::string_view action, double seconds);

  // The text of /metrics (Prometheus text format 0.0.4); `view` for what is so right now.
  std::string text(const View& view);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::api
