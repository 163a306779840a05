// PBS (OpenPBS, PBS Professional): qsub, qselect, qstat, qsig and qdel.
//
//   qstat = {"Jobs": {ID: {"job_state": "Q"|"H"|"R"|"E"|"F"|..., "Exit_status": N}}}, or nothing
//
// Times are left out: PBS prints them as text in the server's time zone. What runs is taken to have
// started when it was first seen to run.
#include "cli/verbs/allocate/engines.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/text.hpp"

#include <cstdio>

namespace muster::cli::allocate {
namespace {

// "01:30:00"
std::string pbs_time(Millis time_ms) {
  const Millis seconds = time_ms / 1000;
  char text[48];
  std::snprintf(text, sizeof text, "%02lld:%02lld:%02lld", static_cast<long long>(seconds / 3600),
                static_cast<long long>(seconds / 60 % 60), static_cast<long long>(seconds % 60));
  return text;
}

// $1: the name of the jobs.
constexpr char kPbsList[] = R"sh(ids=$(qselect -x -N "$1" -u "$(id -un)") || exit 1
[ -z "$ids" ] || qstat -x -f -F json $ids)sh";

class Pbs final : public Engine {
 public:
  Command submit(const Request& request) const override {
    // -r n: not started again after a failure of its node.
    Command command{
        {"qsub", "-N", job_name(request.pool), "-l", "walltime=" + pbs_time(request.time_ms), "-r",
         "n", "-j", "oe", "-o", request.dir + "/"},
        script_of(request, {.id = "${PBS_JOBID%%.*}", .cpus = "${NCPUS:-}"})};
    command.words.insert(command.words.end(), request.options.begin(), request.options.end());
    return command;
  }

  // "17.server"
  Result<std::string> submitted(const std::string& output) const override {
    for (const std::string& line : last_lines(output, 1))
      if (whole_number(line.substr(0, line.find('.')))) return line;
    return invalid("qsub printed no id: " + one_line(output));
  }

  Command list(const std::string& pool) const override {
    return {{"/bin/sh", "-c", kPbsList, "sh", job_name(pool)}};
  }

  Result<std::vector<Allocation>> listed(const std::string& output) const override {
    std::vector<Allocation> all;
    const size_t begin = output.find('{');
    if (begin == output.npos) return all;
    const Json json = read_json(std::string_view(output).substr(begin));
    if (json.is_discarded()) return invalid("qstat -F json printed no JSON: " + one_line(output));
    const Json& jobs = at(json, {"Jobs"});
    for (auto job = jobs.begin(); jobs.is_object() && job != jobs.end(); ++job) {
      const std::string state = text_at(*job, {"job_state"});
      Allocation one{.id = job.key(), .state = state};
      one.phase = state == "R" || state == "E" || state == "S" || state == "U" ? Phase::running
                  : state == "F" || state == "X" || state == "M"               ? Phase::ended
                                                                               : Phase::queued;
      if (one.phase == Phase::ended)
        one.state = "exit status " + std::to_string(number_at(*job, {"Exit_status"}, -1));
      all.push_back(std::move(one));
    }
    return all;
  }

  Command leave(const std::string& id) const override { return {{"qsig", "-s", "SIGTERM", id}}; }
  Command end(const std::string& id) const override { return {{"qdel", id}}; }

  std::vector<std::string> own_options() const override {
    return {"-N", "-J", "-o", "-e", "-j", "-r", "-I", "-W"};
  }
};

}  // namespace

std::unique_ptr<Engine> pbs() {
  return std::make_unique<Pbs>();
}

}  // namespace muster::cli::allocate
