// LeadFaults: faults that hit the one that leads of several coordinators, or the etcd that decides
// which. Another one must serve, and the one that was hit answers nothing from then on, ends, and
// follows when it is started again.
#pragma once

#include "drill/observer.hpp"
#include "drill/proof/judge.hpp"
#include "drill/proof/scenario.hpp"
#include "drill/site.hpp"

#include <string>

namespace muster::cli::drill {

// Stops a leader until a coordinator at another of the observer's addresses has served for
// `hold_ms`, and asks `api`, HOST:PORT of the stopped one, meanwhile. Returns whether it has ended
// after it was continued.
bool freeze_leader(const Process& leader, const std::string& api, Millis hold_ms,
                   const Pause& pause, Observer& observer, Injected& out);
// Measures when reads and submissions were answered, and an end was counted, after the fault, by
// other coordinators than that at `except`; waits for the last for a while.
void measure(const std::string& except, const Pause& pause, Observer& observer, Injected& out);

// In a scratch cluster.
class LeadFaults {
 public:
  LeadFaults(const Site& site, const Pause& pause)
      : site_(site), pause_(pause), standbys_(*site.scratch->standbys()) {}

  // Injects the fault, and waits until all coordinators are in sync again.
  void hit(const Step& step, Observer& observer, Injected& out);

 private:
  void kill_leader(Member& leader, Observer& observer, Injected& out);
  void stop_leader(const Step& step, Member& leader, Observer& observer, Injected& out);
  void cut_leader(const Step& step, Member& leader, Observer& observer, Injected& out);
  void stop_store(const Step& step, Member& leader, Observer& observer, Injected& out);
  void take_back(Member& hit, const Process& before, Injected& out);

  const Site& site_;
  const Pause& pause_;
  Standbys& standbys_;
};

}  // namespace muster::cli::drill
