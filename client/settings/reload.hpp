// Reload: which settings a daemon that runs would have if it read its configuration again.
#pragma once

#include "client/settings/config.hpp"

#include <functional>
#include <string>
#include <vector>

namespace muster::cli {

// How to read the settings again, for as long as the process runs.
struct SettingsSource {
  Settings now{{}};  // what the daemon uses
  std::function<Result<Settings>()> read;
  // Where it looks, as absolute paths; empty: nowhere.
  std::string given_file{}, user_file{}, system_file{};
};

// Flags and variables are those of the start; only files are read again.
SettingsSource source_of(const Settings& settings, const Config& config,
                         const std::string& given_file);

struct Reload {
  Settings settings{{}};           // with the new values of keys that reload, and no others
  std::vector<std::string> taken;  // "users: hpc -> hpc,bio (/etc/muster/coordinator.yaml:3)"
  std::vector<std::string> later;  // likewise: what takes effect after a restart
};
Reload reload(const Settings& now, const Settings& read);

}  // namespace muster::cli
