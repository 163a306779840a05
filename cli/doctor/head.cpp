#include "cli/doctor/head.hpp"

#include "client/terminal/text.hpp"

namespace muster::cli::doctor {
namespace {

constexpr uint64_t kDataReserve = 256u << 20;
constexpr uint64_t kFilesOfCoordinator = 4'096;
constexpr Millis kHeadSoonMs = Millis{30} * 86'400'000;
constexpr Millis kBackupOldMs = Millis{2} * 86'400'000;  // as the alert MusterBackupOld

PlaceUse use_of_data_dir() {
  return {.check = "data-dir",
          .keeps = "every job",
          .missing =
              "the coordinator creates it when it first starts; if it has run before, mount "
              "its disk, or give --data-dir",
          .slow = "every submission, start and end of a pod waits for one",
          .reserve_bytes = kDataReserve,
          .reserve_says = "the coordinator exits when it cannot write"};
}

// `unsure`: the coordinator may be what listens there.
void judge_port(const PortFacts& port, bool unsure, Findings& out) {
  const std::string check = "port " + port.what;
  if (port.held)
    out.ok(check, port.address + " is the coordinator's");
  else if (port.error.empty())
    out.ok(check, port.address + " is free");
  else if (port.taken && unsure)
    out.unknown(check, port.address + ": " + port.error + ", perhaps the coordinator",
                "run this as root");
  else
    out.problem(check, port.address + ": " + port.error,
                port.taken ? "stop what listens there (ss -ltnp), or choose another port"
                           : "give an address of this machine, and a port that the coordinator's "
                             "user may use");
}

void judge_service(const ServiceFacts& service, Findings& out) {
  const Reply& reply = service.reply;
  if (!reply.refused.empty())
    out.unknown("coordinator", "its API refuses us: " + reply.refused,
                "run this as root or as the coordinator's user");
  else if (!reply.error.empty())
    out.problem("coordinator", "its API does not answer: " + reply.error, "see its log");
  else if (!reply.not_ready.empty())
    out.problem("coordinator", "is not ready: " + reply.not_ready,
                "wait, and see its log if this does not change");
  else
    out.ok("coordinator", reply.follows ? "follows another one" : "is ready");
  if (!reply.serves()) return;
  if (service.store) {
    const StoreFacts& store = *service.store;
    const std::string in_sync = std::to_string(store.in_sync) + " of " +
                                std::to_string(store.coordinators) + " coordinators are in sync";
    if (!store.answers)
      out.problem("store", "the consensus store does not answer the leader",
                  "restore it: without it, no coordinator can take over");
    else
      out.ok("store", "answers");
    if (store.in_sync < 2)
      out.warn("standby", in_sync + ": none can take over",
               "start another coordinator; see `muster get coordinators`");
    else
      out.ok("standby", in_sync);
  }
  if (!service.has_metrics) {
    out.unknown("backup", "the metrics may not be read by this user", "run this as root");
    return;
  }
  const std::string back_up =
      "run `muster backup DIR`, best from a timer, and keep copies elsewhere";
  if (!service.backup_age_ms)
    out.warn("backup", "there has been no backup", back_up);
  else if (*service.backup_age_ms > kBackupOldMs)
    out.warn("backup", "the last one is " + short_span(*service.backup_age_ms) + " old", back_up);
  else
    out.ok("backup", "the last one is " + short_span(*service.backup_age_ms) + " old");
  if (!service.authority_left_ms) return;
  const std::string renew =
      "start the coordinator with another authority (--ca-cert, --ca-key); nodes and users then "
      "need new "
      "tokens";
  if (*service.authority_left_ms <= 0)
    out.problem("authority", "the certificate of the cluster's authority has expired", renew);
  else if (*service.authority_left_ms < kHeadSoonMs)
    out.warn("authority",
             "the certificate of the cluster's authority expires in " +
                 short_span(*service.authority_left_ms),
             renew);
  else
    out.ok("authority", "its certificate is valid for " + short_span(*service.authority_left_ms));
}

}  // namespace

void judge_head(const HeadFacts& facts, Findings& out) {
  if (!facts.config_error.empty())
    out.problem("configuration", facts.config_error,
                "correct it, and check with `muster config check`");
  judge_private_place(facts.data_dir, use_of_data_dir(), out);
  for (const PortFacts& port : facts.ports) judge_port(port, !facts.not_seen.empty(), out);
  if (facts.outdated)
    out.warn("version",
             "the coordinator runs an executable that has been replaced, as by an upgrade",
             "restart it (systemctl restart muster-coordinator); pods keep running");
  if (facts.service)
    judge_service(*facts.service, out);
  else if (!facts.not_seen.empty())
    out.unknown("coordinator", facts.not_seen, "run this as root or as the coordinator's user");
  else
    out.warn("coordinator", "none runs on this data-dir", "systemctl start muster-coordinator");
  if (facts.authority)
    judge_certificate(*facts.authority, "--ca-cert", kHeadSoonMs,
                      "get a new one from the site's authority", out);
  if (facts.munge) judge_munge(*facts.munge, out);
  judge_open_files(
      facts.limits, kFilesOfCoordinator, "and each agent and client holds a connection",
      "set LimitNOFILE=524288 in its unit, or ulimit -n in the script that starts it", out);
}

}  // namespace muster::cli::doctor
