// Faults: injects the faults of a schedule, one at a time, and confirms that each has happened.
//
// Only what the kernel, the daemon's log or its API shows confirms a fault: a changed pid and start
// time, state T in /proc, bytes held back. The mere absence of an error never does.
#pragma once

#include "drill/observer.hpp"
#include "drill/proof/judge.hpp"
#include "drill/proof/scenario.hpp"
#include "drill/running.hpp"
#include "drill/site.hpp"

#include <memory>
#include <optional>
#include <string>

namespace muster::cli::drill {

class Injector {
 public:
  Injector(Site site, Pause pause);
  ~Injector();

  // Injects the fault and waits until it is over and the daemons that it hit run again.
  Injected inject(const Step& step, Observer& observer);
  // The gap left by the last restore; nullopt if there was none.
  const std::optional<Gap>& gap() const;

 private:
  void hit_scratch(const Step& step, Observer& observer, Injected& out);
  void kill_coordinator(const Step& step, Injected& out);
  void kill_agent(const Step& step, Injected& out);
  void kill_keeper(const Step& step, Injected& out);
  void lose_node(const Step& step, Injected& out);
  void cut_off(const Step& step, Injected& out);
  void fill_disk(const Step& step, Injected& out);
  void jump_clock(const Step& step, Injected& out);
  void upgrade(const Step& step, Injected& out);
  bool restart_with(const std::string& executable, Injected& out);
  void restore(const Step& step, Observer& observer, Injected& out);
  std::optional<Millis> clock_offset();

  const Site site_;
  const Pause pause_;
  std::unique_ptr<Running> running_;  // null: a scratch cluster
  std::optional<Gap> gap_;
  uint32_t probes_ = 0;
};

}  // namespace muster::cli::drill
