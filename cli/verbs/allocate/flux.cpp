// Flux: flux submit, flux jobs, flux cancel and flux job kill.
//
//   flux jobs = *(id "|" state "|" result "|" t_run "|" t_inactive LF)   id in decimal, times in
//                                                        seconds since 1970 with decimals, or empty
#include "cli/verbs/allocate/engines.hpp"
#include "client/terminal/text.hpp"

#include <cstdlib>

namespace muster::cli::allocate {
namespace {

// "1795944172.25"
std::optional<Millis> flux_time(const std::string& text) {
  const double seconds = std::strtod(text.c_str(), nullptr);
  return seconds > 0 && seconds < 1e12 ? std::optional(static_cast<Millis>(seconds * 1000))
                                       : std::nullopt;
}

class Flux final : public Engine {
 public:
  Command submit(const Request& request) const override {
    // Flux prints ids in a notation of its own (f58); names of nodes take decimal ones.
    Command command{{"/bin/sh", "-c", "id=$(flux submit \"$@\") && flux job id --to=dec \"$id\"",
                     "sh", "--job-name=" + job_name(request.pool), "--nodes=1",
                     "--time-limit=" + std::to_string(request.time_ms / 1000) + "s",
                     "--output=" + request.dir + "/{{id.dec}}.log"}};
    command.words.insert(command.words.end(), request.options.begin(), request.options.end());
    const std::string script =
        script_of(request, {.id = "$(flux job id --to=dec \"$FLUX_JOB_ID\")"});
    command.words.insert(command.words.end(), {"--", "/bin/sh", "-c", script});
    return command;
  }

  Result<std::string> submitted(const std::string& output) const override {
    for (const std::string& line : last_lines(output, 1))
      if (whole_number(line)) return line;
    return invalid("flux submit printed no id: " + one_line(output));
  }

  Command list(const std::string& pool) const override {
    return {{"flux", "jobs", "-a", "--no-header", "--name=" + job_name(pool),
             "--format={id.dec}|{state}|{result}|{t_run}|{t_inactive}"}};
  }

  Result<std::vector<Allocation>> listed(const std::string& output) const override {
    std::vector<Allocation> all;
    for (const std::string& line : last_lines(output, SIZE_MAX)) {
      const std::vector<std::string> cells = cells_of(line);
      if (cells.size() < 5 || !whole_number(cells[0])) continue;
      const std::string& state = cells[1];
      Allocation one{.id = cells[0],
                     .phase = state == "INACTIVE"                    ? Phase::ended
                              : state == "RUN" || state == "CLEANUP" ? Phase::running
                                                                     : Phase::queued,
                     .state = cells[2].empty() ? state : cells[2]};
      one.started_ms = flux_time(cells[3]);
      one.ended_ms = flux_time(cells[4]);
      all.push_back(std::move(one));
    }
    return all;
  }

  Command leave(const std::string& id) const override {
    return {{"flux", "job", "kill", "--signal=TERM", id}};
  }
  Command end(const std::string& id) const override { return {{"flux", "cancel", id}}; }

  std::vector<std::string> own_options() const override {
    return {"--time-limit", "-t",   "--job-name", "--nodes", "-N",
            "--output",     "--cc", "--bcc",      "--wait"};
  }
};

}  // namespace

std::unique_ptr<Engine> flux() {
  return std::make_unique<Flux>();
}

}  // namespace muster::cli::allocate
