// RunningSettings: what a running daemon uses, in a private file of its state directory. So it can
// be shown while the daemon answers nothing, to whoever may read that directory, and to nobody
// else. The file is written once the daemon holds the directory, and after each reload.
//
// settings.json is an object:
//   "format"    1
//   "daemon"    "coordinator" or "agent"
//   "pid"       of the process, and "ticks", when it started: clock ticks since the boot. The file
//               outlives the daemon; it is that of a running one if there is such a process
//   "version"   of the process
//   "files"     absolute paths, empty for none: "given" (--config), "user", "system"
//   "settings"  in the order of its keys, each an object: "key", "value" (a list of texts; empty:
//               not set), "list" (it may have several), "fixed" (by a flag or variable, for as long
//               as the process runs), "from" (as Setting::from), "reloads" (as Key::reloads)
//
// The daemon may be of another release than we are, and have keys that we do not know.
#pragma once

#include "base/result.hpp"
#include "client/settings/reload.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

struct RunningSetting {
  std::string key;
  std::vector<std::string> values;  // none: not set
  bool list = false, fixed = false, reloads = false;
  std::string from;

  bool operator==(const RunningSetting&) const = default;
};

struct RunningSettings {
  Section section = Section::coordinator;
  int pid = 0;
  uint64_t ticks = 0;
  std::string version;
  std::string given_file, user_file, system_file;
  std::vector<RunningSetting> settings;

  bool operator==(const RunningSettings&) const = default;
};

// Of this process.
RunningSettings running_settings(const SettingsSource& source);
// Writes those of this process to its state directory. Failures are logged: they stop nothing.
void tell_settings(const SettingsSource& source, const std::string& dir);

std::string text_of(const RunningSettings& running);
// invalid: it is not such a file, or one of a format that we do not know.
Result<RunningSettings> parse_running_settings(std::string_view text);

// Those of the daemon that runs on this directory. unavailable: none does. invalid: the file cannot
// be read.
Result<RunningSettings> find_running_settings(Section section, const std::string& dir);

// What its files say now where that is something else than what it uses, by key; of keys that both
// of us know. invalid: a file cannot be read.
Result<std::map<std::string, Setting>> changed_settings(const RunningSettings& running);

}  // namespace muster::cli
