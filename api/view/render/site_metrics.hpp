// SiteMetrics: the gauges of a site, made at each scrape: what waits and for what, who has what,
// how nodes are, and what the coordinator's machine has left.
//
// All but the latter are read from the View, so they are of what is on disk. The cost grows with
// the number of open pods and nodes. Series whose labels nothing has any more disappear.
#pragma once

#include "api/view/model/view.hpp"
#include "base/clock.hpp"
#include "core/standby/figures.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <prometheus/registry.h>
#include <string>
#include <utility>

namespace muster::api {

// What the View does not have.
struct SiteFacts {
  std::string data_dir{};      // whose disk is measured; empty: none
  uint64_t user_pods_max = 0;  // --user-pods-max; 0: none
  bool users_shown = true;     // false: who has how much is private (--private-jobs)
  std::map<std::string, Millis> certificates{};  // by name: when each expires
  std::optional<Millis> backed_up_ms{};          // when the last backup was made, if known
};

class SiteMetrics {
 public:
  SiteMetrics(prometheus::Registry& registry, SiteFacts facts);
  ~SiteMetrics();

  // Any thread may call it.
  void backed_up(Millis at_ms) { backed_up_ms_ = at_ms; }

  // What is known of the coordinators; shown from then on.
  void set_lead(core::standby::LeadFigures figures) { lead_ = std::move(figures); }

  void fill(const View& view, Millis now_ms);

 private:
  struct Gauges;
  const SiteFacts facts_;
  std::unique_ptr<Gauges> gauges_;
  std::atomic<Millis> backed_up_ms_;                // 0: not known
  std::optional<core::standby::LeadFigures> lead_;  // nullopt: the coordinator is alone
};

}  // namespace muster::api
