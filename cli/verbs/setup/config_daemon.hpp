// muster config view --daemon: what a running daemon of this machine uses, and what has changed in
// its files since.
#pragma once

#include "cli/verbs/verb.hpp"

#include <optional>
#include <string>

namespace muster::cli {

struct DaemonConfigOptions {
  std::optional<Section> section{};  // absent: of the keeper
  std::string dir{};                 // its data-dir or work-dir, absolute
  std::string keeper_file{};         // its environment file
  Output output = Output::table;
};
int execute(const DaemonConfigOptions& options);

// `daemon`: coordinator, agent or keeper. `dir`: the value of --data-dir or --work-dir, `file`: of
// --coordinator-config or --agent-config; empty: not given. `options`: the rest.
Judged read_daemon_config(const Config& config, const std::string& daemon, const std::string& dir,
                          const std::string& file, DaemonConfigOptions options);

}  // namespace muster::cli
