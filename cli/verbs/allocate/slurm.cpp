// Slurm: sbatch, squeue and scancel.
//
//   squeue = *(id "|" state "|" start "|" end "|" reason LF)   times in seconds since 1970, or N/A
//
// squeue also shows jobs that ended within MinJobAge (5 minutes by default), so sacct, which a site
// need not have, is not used.
#include "cli/verbs/allocate/engines.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <set>

namespace muster::cli::allocate {
namespace {

// Slurm counts minutes, and rounds up.
std::string slurm_minutes(Millis time_ms) {
  return std::to_string(std::max<Millis>(1, (time_ms + 59'999) / 60'000));
}

std::optional<Millis> slurm_time(std::string_view text) {
  const auto seconds = whole_number(text);
  return seconds && *seconds > 0 ? std::optional<Millis>(*seconds * 1000) : std::nullopt;
}

Phase slurm_phase(const std::string& state) {
  static const std::set<std::string> kQueued = {"PENDING",      "CONFIGURING", "REQUEUED",
                                                "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT",
                                                "RESV_DEL_HOLD"};
  // COMPLETING: its processes may still be there.
  static const std::set<std::string> kRunning = {"RUNNING",   "COMPLETING", "SUSPENDED", "STOPPED",
                                                 "SIGNALING", "STAGE_OUT",  "RESIZING"};
  return kQueued.contains(state)    ? Phase::queued
         : kRunning.contains(state) ? Phase::running
                                    : Phase::ended;
}

class Slurm final : public Engine {
 public:
  Command submit(const Request& request) const override {
    Command command{{"sbatch", "--parsable", "--job-name=" + job_name(request.pool), "--nodes=1",
                     "--time=" + slurm_minutes(request.time_ms), "--no-requeue",
                     "--output=" + request.dir + "/%j.log"},
                    script_of(request, {.id = "${SLURM_JOB_ID}",
                                        .cpus = "${SLURM_CPUS_ON_NODE:-}",
                                        .memory_mi = "${SLURM_MEM_PER_NODE:-}",
                                        .end = "${SLURM_JOB_END_TIME:-}"})};
    command.words.insert(command.words.end(), request.options.begin(), request.options.end());
    return command;
  }

  // "17" or "17;CLUSTER", perhaps after warnings.
  Result<std::string> submitted(const std::string& output) const override {
    for (const std::string& line : last_lines(output, 100)) {
      const std::string id = line.substr(0, line.find(';'));
      if (whole_number(id)) return id;
    }
    return invalid("sbatch --parsable printed no number: " + one_line(output));
  }

  Command list(const std::string& pool) const override {
    return {{"env", "SLURM_TIME_FORMAT=%s", "squeue", "--me", "--noheader", "--states=all",
             "--name=" + job_name(pool), "--format=%i|%T|%S|%e|%r"}};
  }

  Result<std::vector<Allocation>> listed(const std::string& output) const override {
    std::vector<Allocation> all;
    for (const std::string& line : last_lines(output, SIZE_MAX)) {
      const std::vector<std::string> cells = cells_of(line);
      if (cells.size() < 5 || !whole_number(cells[0])) continue;  // a warning
      Allocation one{.id = cells[0], .phase = slurm_phase(cells[1]), .state = cells[1]};
      if (cells[4] != "None" && cells[4] != "(null)") one.state += " " + cells[4];
      // Of a job that is queued, the start is a forecast, and of one that runs, the end.
      if (one.phase != Phase::queued) one.started_ms = slurm_time(cells[2]);
      if (one.phase == Phase::ended) one.ended_ms = slurm_time(cells[3]);
      all.push_back(std::move(one));
    }
    return all;
  }

  Command leave(const std::string& id) const override {
    return {{"scancel", "--batch", "--signal=TERM", id}};
  }
  Command end(const std::string& id) const override { return {{"scancel", id}}; }

  std::vector<std::string> own_options() const override {
    return {"--time",    "-t",     "--job-name", "-J",         "--nodes",    "-N",
            "--array",   "-a",     "--output",   "-o",         "--parsable", "--wrap",
            "--requeue", "--wait", "-W",         "--test-only"};
  }
};

}  // namespace

std::unique_ptr<Engine> slurm() {
  return std::make_unique<Slurm>();
}

}  // namespace muster::cli::allocate
