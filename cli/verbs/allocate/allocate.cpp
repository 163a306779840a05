// muster allocate: turns pods that wait into batch jobs of Slurm, Flux or PBS, each of which is a
// node for them.
#include "base/process/own_executable.hpp"
#include "cli/verbs/allocate/allocator.hpp"
#include "cli/verbs/allocate/engines.hpp"
#include "cli/verbs/verb.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/values/names.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace muster::cli {
namespace {

constexpr Millis kTimeMin = 60'000, kLookMin = 100, kLookMax = 600'000;
constexpr size_t kPoolMax = 40;  // of a pool's name: node names are longer by an id

struct AllocateWords {
  AllocateOptions o;
  std::string time, idle, start_within, every, budget, slots;
};

// "100h" of node time.
std::optional<Usage> read_budget(const std::string& text, allocate::PoolSettings& pool) {
  Millis budget = 0;
  if (auto wrong = read_span("--budget", text, budget)) return wrong;
  if (text.empty()) return std::nullopt;
  if (budget < pool.time_ms)
    return Usage{"--budget: must be at least --time, which is what one allocation may take"};
  pool.budget_ms = budget;
  return std::nullopt;
}

std::optional<Usage> read_pool(const AllocateWords& w, allocate::PoolSettings& pool) {
  const core::Reasons wrong = core::dns_label_errors(pool.name);
  if (!wrong.empty() || pool.name.size() > kPoolMax)
    return Usage{"--pool: `" + pool.name + "`: must be up to " + std::to_string(kPoolMax) +
                 " lower-case letters, digits and dashes"};
  if (w.time.empty()) return Usage{"--time: how long is an allocation, at most? --time 1h"};
  if (auto bad = read_span("--time", w.time, pool.time_ms)) return bad;
  if (pool.time_ms < kTimeMin) return Usage{"--time: must be at least 1m"};
  if (auto bad = read_span("--idle", w.idle, pool.idle_ms)) return bad;
  if (auto bad = read_span("--start-within", w.start_within, pool.start_ms)) return bad;
  if (pool.start_ms == 0) return Usage{"--start-within: must be more than 0"};
  if (pool.min_nodes > pool.max_nodes)
    return Usage{"--min: must be at most --max-nodes, " + std::to_string(pool.max_nodes)};
  return read_budget(w.budget, pool);
}

// The flags of the agents.
std::optional<Usage> read_agent_flags(const AllocateWords& w, AllocateOptions& o) {
  std::vector<std::string>& flags = o.request.agent_flags;
  if (!w.slots.empty()) {
    const auto slots = whole_number(w.slots);
    if (!slots || *slots < 1 || *slots > kNumberMax)
      return Usage{"--slots: must be a whole number above 0"};
    o.request.with_slots = true;
    flags.insert(flags.end(), {"--slots", w.slots});
  }
  for (const std::string& label : o.labels) {
    const size_t equals = label.find('=');
    if (equals == label.npos || !core::qualified_name_errors(label.substr(0, equals)).empty() ||
        !core::label_value_errors(label.substr(equals + 1)).empty())
      return Usage{"--label: `" + label + "`: must be KEY=VALUE, as of a Kubernetes label"};
    flags.insert(flags.end(), {"--label", label});
  }
  for (const std::string& one : o.resources) {
    const size_t equals = one.find('=');
    if (equals == one.npos || !whole_number(one.substr(equals + 1)))
      return Usage{"--resource: `" + one + "`: must be NAME=COUNT, such as nvidia.com/gpu=4"};
    flags.insert(flags.end(), {"--resource", one});
  }
  return std::nullopt;
}

// What is passed to the batch system and to the nodes.
std::optional<Usage> read_request(const std::vector<std::string>& options, AllocateOptions& o) {
  const std::string ours =
      allocate::option_of_ours(options, allocate::engine_of(o.engine)->own_options());
  if (!ours.empty())
    return Usage{"`" + ours + "` after --: muster allocate sets it itself (--time, --pool, --dir)"};
  allocate::Request& request = o.request;
  request.pool = o.pool.name;
  request.time_ms = o.pool.time_ms;
  request.options = options;
  if (request.executable.empty()) request.executable = own_executable();
  const std::string dir = request.dir.empty() ? user_folder("XDG_STATE_HOME", ".local/state") +
                                                    "/allocate/" + o.engine + "-" + o.pool.name
                                              : request.dir;
  request.dir = absolute_dir(dir);
  return std::nullopt;
}

Judged read_allocate_words(const AllocateWords& w, const Given& given) {
  AllocateOptions o = w.o;
  if (auto wrong = read_pool(w, o.pool)) return *wrong;
  if (auto wrong = read_agent_flags(w, o)) return *wrong;
  if (auto wrong = read_span("--every", w.every, o.every_ms)) return *wrong;
  if (o.every_ms < kLookMin || o.every_ms > kLookMax) return Usage{"--every: must be 100ms to 10m"};
  return judged(read_request(given.tail, o), o);
}

FlagRows allocate_rows(AllocateWords& w) {
  AllocateOptions& o = w.o;
  return {
      {"engine", "slurm | flux | pbs", "Batch system to ask for nodes", &o.engine,
       one_of({"slurm", "flux", "pbs"}), kRequired},
      {"--max-nodes", "N", "Maximum allocations at a time, of one node each", &o.pool.max_nodes,
       whole(1, kNumberMax), kRequired},
      {"--time", "T", "Time limit of each allocation, such as 1h", &w.time},
      {"--idle", "T", "Give a node back after this time without pods (default: 5m)", &w.idle},
      {"--min", "N", "Allocations to keep even if no pods wait (default: 0)", &o.pool.min_nodes,
       whole(0, kNumberMax)},
      {"--backlog", "N", "Maximum allocations in the batch system's queue (default: 4)",
       &o.pool.backlog, whole(1, kNumberMax)},
      {"--budget", "T",
       "Node time that all allocations together may take, such as 100h (default: no limit)",
       &w.budget},
      {"--start-within", "T",
       "Cancel an allocation that runs and has no node after this time (default: 10m)",
       &w.start_within},
      {"--queue", "Q", "Count only pods of this queue of muster (default: all)", &o.queue},
      {"--pool", "NAME",
       "Name of the pool: nodes are NAME-ID, batch jobs muster-NAME (default: the batch system's)",
       &o.pool.name},
      {"--coordinator", "ADDR:PORT",
       "Address of the coordinator for agents (default: that of --listen-tls)",
       &o.request.coordinator},
      {"--slots", "N", "Slots of each node (default: the CPUs of its allocation)", &w.slots},
      {"--label", "KEY=VALUE", "Label of each node; repeatable", &o.labels},
      {"--resource", "NAME=COUNT",
       "Devices of each node that pods may request, such as nvidia.com/gpu=4; repeatable",
       &o.resources},
      {"--dir", "D",
       "Directory that the nodes see, too, for outputs of allocations and tokens (default: "
       "~/.local/state/muster/allocate/ENGINE-POOL)",
       &o.request.dir},
      {"--work-base", "D",
       "Local directory on the nodes in which agents make their work-dirs (default: $TMPDIR or "
       "/tmp)",
       &o.request.work_base},
      {"--executable", "F", "Path of muster on the nodes (default: that of this program)",
       &o.request.executable},
      {"--every", "T", "Time between two looks (default: 10s)", &w.every},
      {"--cancel-on-exit", "",
       "Cancel all allocations when stopped; pods that run are run again elsewhere",
       &o.cancel_on_exit},
      {"--dry-run", "", "Print the command and the script that would be submitted", &o.dry_run},
  };
}

}  // namespace

Verb allocate_verb() {
  auto w = std::make_shared<AllocateWords>();
  return {
      .title = {"Nodes", "allocate", "Turn pods that wait into nodes from Slurm, Flux or PBS"},
      .rows = allocate_rows(*w),
      .asks = {&w->o.target},
      .footer =
          "Examples:\n"
          "  muster allocate slurm --max-nodes 20 --time 1h -- --partition=short --exclusive\n"
          "  muster allocate slurm --max-nodes 4 --time 4h --budget 100h --dry-run -- -c 16 "
          "--mem=64G\n"
          "What follows -- goes to sbatch, flux submit or qsub as it is. Runs until it is stopped "
          "(SIGINT,\nSIGTERM); allocations stay, and the same command takes them over again.",
      .takes_command = true,
      .finish = [w](const Given& given) -> Judged {
        AllocateWords words = *w;
        if (words.o.pool.name.empty()) words.o.pool.name = words.o.engine;
        return read_allocate_words(words, given);
      }};
}

}  // namespace muster::cli
