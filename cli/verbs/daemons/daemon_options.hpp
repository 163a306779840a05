// Options of `muster coordinator` and `muster agent`, from their settings.
//
// The error for a wrong value names its source: the flag, the variable, or file and line.
#pragma once

#include "agent/agent.hpp"
#include "base/lines/log_format.hpp"
#include "base/result.hpp"
#include "cli/verbs/verb.hpp"
#include "client/settings/config.hpp"
#include "client/settings/reload.hpp"
#include "coordinator/coordinator.hpp"
#include "standby/standby.hpp"

#include <functional>
#include <optional>

namespace muster::cli {

struct CoordinatorOptions {
  coordinator::Options options;
  // Also serve on the default Unix sockets.
  bool default_api_socket = false, default_listen_socket = false;
  std::optional<standby::Options> standby;  // none: it is alone
  std::string log_level;
  log::Format log_format = log::Format::text;
  SettingsSource source{};
};

struct AgentOptions {
  agent::AgentOptions options;
  std::string log_level;
  log::Format log_format = log::Format::text;
  SettingsSource source{};
};

int execute(const CoordinatorOptions& options);
int execute(const AgentOptions& options);

// At SIGHUP: reads the configuration again and takes what a running daemon can take, which it
// logs, with what it cannot. nullopt: it cannot be read; that is logged, and nothing changes.
std::optional<Settings> read_again(SettingsSource& source,
                                   const std::function<Status(const Settings&)>& valid);
// A daemon on a terminal ends with it, as any program does; a service reads its configuration.
bool reloads_at_hangup();

// The file of a daemon's --config, if `given`; else that of its package, if it exists; else empty.
std::string daemon_file(Section section, const std::string& given);

Result<CoordinatorOptions> coordinator_options(const Settings& settings);
Result<AgentOptions> agent_options(const Settings& settings);

// A daemon's verb: its rows are the keys of its section. `example`: a key and its value in a file.
template <class T>
Verb daemon_verb(Verb::Title title, Section section, Result<T> (*read)(const Settings&),
                 const std::string& example, const std::string& footer) {
  Verb verb{.title = std::move(title),
            .footer = footer,
            .section = section,
            .given_file = std::make_shared<std::string>(),
            .finish = {}};
  verb.finish = [read, file = verb.given_file](const Given& given) -> Judged {
    auto options = read(given.settings);
    if (!options) return Usage{options.error().message};
    options->source = source_of(given.settings, given.config, *file);
    return *options;
  };
  for (const Key& key : keys_of(section)) verb.rows.push_back(key_row(key));
  verb.rows.push_back(
      {"--config", "F.yaml",
       "YAML file with these flags as keys (" + example + "); flags take precedence",
       verb.given_file.get()});
  return verb;
}

}  // namespace muster::cli
