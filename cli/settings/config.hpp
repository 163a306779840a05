// Config: what holds for a key, and who said so.
//
// In this order, the first that names a key wins it: a flag, a MUSTER_* variable, the file of
// --config (daemons), the user's file (~/.config/muster/config.yaml), the system's
// (/etc/muster/config.yaml), what is built in. A file is read whole or refused whole: a key that
// nobody knows is an error with its line, or it would be a setting that silently does nothing.
#pragma once

#include "base/result.hpp"
#include "cli/settings/keys.hpp"
#include "text/yaml_entries.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace muster::cli {

// Of one section, what was given as flags: name without dashes -> values as written.
using Flags = std::map<std::string, std::vector<std::string>>;

enum class Layer { flag, variable, given_file, user_file, system_file, built_in };

// What holds for one key.
struct Setting {
  Section section = Section::client;
  const Key* key = nullptr;
  Layer layer = Layer::built_in;
  std::vector<std::string> values;  // one, or those of a list; none: not set
  std::string from;                 // "--api", "MUSTER_API", "/etc/muster/config.yaml:3", "default"

  std::string text() const;  // of a list: joined by commas
  // Where a wrong value stands, to lead the message: "--node-grace", "config.yaml:3: node-grace".
  std::string place() const;
};

// All settings of one section, in the order of its keys.
class Settings {
 public:
  explicit Settings(std::vector<Setting> all) : all_(std::move(all)) {}
  const std::vector<Setting>& all() const { return all_; }
  // `name` is a key of the section.
  const Setting& operator[](std::string_view name) const;
  std::string text(std::string_view name) const { return (*this)[name].text(); }

 private:
  std::vector<Setting> all_;
};

class Config {
 public:
  using Env = std::function<const char*(const char*)>;  // as getenv

  // Nothing but flags and what is built in.
  Config() = default;
  explicit Config(Env env);
  // Of this process's environment.
  static Config of_process();

  // Where the files are looked for; empty: nowhere (no home).
  const std::string& user_path() const { return user_path_; }
  const std::string& system_path() const { return system_path_; }

  // What holds for each key of a section. `given_file`: of --config, empty: none; the keys stand in
  // it as they are or below the section's name. invalid: a file or a value cannot be read.
  Result<Settings> resolve(Section section, const Flags& flags,
                           const std::string& given_file = "") const;

 private:
  Env env_;
  std::string user_path_, system_path_;
};

// The settings that a file makes; `own`: the section whose keys may stand at its top besides the
// client's (of --config), or client.
Result<std::vector<Setting>> read_settings(const std::string& text, const std::string& path,
                                           Layer layer, Section own);

}  // namespace muster::cli
