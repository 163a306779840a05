// Metrics: the counters of job-semantics 12, and a few of muster's own.
//
// Derived only from durable records, in commit order, as the View applies them. So a crash never
// takes back a count, and nothing is counted twice; after a restart counters begin at 0, as
// Prometheus allows. Only syncs and commits are reported by those who make them.
//
// before(), after() and set_lead() run on the API thread, synced(), committed() and backed_up() on
// any.
#pragma once

#include "api/view/model/view.hpp"
#include "api/view/render/site_metrics.hpp"
#include "base/clock.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace muster::api {

class Metrics final : public RecordObserver {
 public:
  Metrics(std::string version, WallClock now, SiteFacts facts = {});
  ~Metrics() override;

  void before(const core::Job& job, const core::Record& record) override;
  void after(const core::Job& job, const core::Record& record) override;

  // Counts one decision of a job. `action`: reconciling, tracking, pods_created or pods_deleted.
  void synced(bool indexed, std::string_view action, double seconds);

  // Counts a batch that has become durable, and what was written for it.
  void committed(double seconds, uint64_t bytes);
  // A backup was made at this time.
  void backed_up(Millis at_ms);
  // What is known of the coordinators, of which there are several.
  void set_lead(core::standby::LeadFigures figures);

  // The text of /metrics (Prometheus text format 0.0.4). Gauges of jobs and nodes are read from
  // `view`.
  std::string text(const View& view);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::api
