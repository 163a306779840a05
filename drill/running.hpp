// Running: faults in a running cluster, whose daemons have their own supervisors.
//
// The hand (hand.hpp) injects a node's faults. Running makes sure that a fault lasts until the
// coordinator has declared the node lost, is reverted, and that whatever was killed is back. If
// something is not back in time, the fault is unconfirmed and its proof says why.
#pragma once

#include "drill/observer.hpp"
#include "drill/site.hpp"

#include <optional>
#include <string>

namespace muster::cli::drill {

class Running {
 public:
  Running(const Site& site, const Pause& pause) : site_(site), pause_(pause) {}

  // Injects the fault and waits until the daemons that it hit run again.
  void hit(const Step& step, Observer& observer, Injected& out);
  const std::optional<Gap>& gap() const { return gap_; }
  // After an interrupted upgrade: makes coordinator and agents run this binary again. unavailable:
  // says what is wrong.
  Status back_to(const std::string& binary);

 private:
  void kill_coordinator(Injected& out);
  void fill_disk(const Step& step, Injected& out);
  void hit_node(const Step& step, Injected& out);
  void upgrade(const Step& step, Injected& out);
  bool restart_with(const std::string& binary, bool stubborn, Injected& out);
  void restore(const Step& step, Observer& observer, Injected& out);
  void hit_leader(const Step& step, Observer& observer, Injected& out);

  Result<Process> coordinator() const;
  // The process with which a supervisor replaced it; unavailable: not replaced in time.
  Result<Process> successor(const Process& before, bool stubborn = false);
  bool ready(const std::string& node);
  bool wait_lost(const std::string& node, Millis patience_ms);
  Status wait_ready(const std::string& node);
  // Waits until the node's agent (or "keeper") is a different process than before.
  Result<Json> returned(const DrillNode& node, const char* what, const Json& before,
                        bool stubborn = false);
  bool rest(bool stubborn);

  const Site& site_;
  const Pause& pause_;
  std::optional<Gap> gap_;
  uint32_t probes_ = 0;
};

}  // namespace muster::cli::drill
