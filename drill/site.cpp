#include "drill/site.hpp"

#include "client/connect/objects.hpp"
#include "client/terminal/text.hpp"
#include "drill/jobs.hpp"

namespace muster::cli::drill {

bool differ(const Process& a, const Process& b) {
  return a.pid() != b.pid() || a.start_ticks() != b.start_ticks();
}

std::string change(const Process& before, const Process& after) {
  return before.name() + " became " + after.name();
}

void freeze(const Process& process, Millis hold_ms, const Pause& pause, Injected& out) {
  const Frozen frozen(process);
  const bool stopped = process.wait_state('T', kStoppedMax);
  out.at_ms = boot_now();
  pause(hold_ms);
  out.confirmed = stopped && process.state() == 'T';
  out.proof = process.name() + ": state " +
              (out.confirmed ? "T for " + std::to_string(boot_now() - out.at_ms) + " ms"
                             : std::string(1, process.state() == 0 ? '-' : process.state()));
}

bool fill_disk_of(const Process& coordinator, Millis hold_ms, const Site& site, const Pause& pause,
                  uint32_t& probes, Injected& out) {
  std::string refused;
  {
    const Full full(coordinator);
    if (!full.took()) {
      out.proof = "the size of its files cannot be limited";
      return false;
    }
    for (const Millis until = boot_now() + kGoneMax; refused.empty() && boot_now() < until;) {
      auto answer =
          create_job(*site.client, site.target.ns,
                     tiny_job(site.probe_prefix + "full-" + std::to_string(probes++)), false);
      if (coordinator.gone())
        refused = "the coordinator ended";
      else if (!answer && answer.error().code != Errc::exists)
        refused = answer.error().message;
      if (!pause(kLook)) break;
    }
    out.at_ms = boot_now();
    pause(hold_ms);
  }
  out.confirmed = !refused.empty();
  out.proof = refused.empty() ? "writes still succeeded"
                              : "no file could grow (RLIMIT_FSIZE 0); " + one_line(refused);
  return coordinator.wait_gone(kStoppedMax);
}

}  // namespace muster::cli::drill
