// Config: effective settings, and where each comes from.
//
// In order of precedence: a flag, a MUSTER_* variable, the file of --config (daemons), the user's
// file (~/.config/muster/config.yaml), the system's file (/etc/muster/config.yaml), the built-in
// default. A file is accepted or rejected as a whole: an unknown key is an error with its line,
// because otherwise it would silently do nothing.
#pragma once

#include "base/result.hpp"
#include "base/text/yaml_entries.hpp"
#include "client/settings/keys.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace muster::cli {

// The flags given for one section: name without dashes -> values as written.
using Flags = std::map<std::string, std::vector<std::string>>;

enum class Layer { flag, variable, given_file, user_file, system_file, built_in };

// The effective value of one key.
struct Setting {
  Section section = Section::client;
  const Key* key = nullptr;
  Layer layer = Layer::built_in;
  std::vector<std::string> values;  // one, or several of a list; none: not set
  std::string from;                 // "--api", "MUSTER_API", "/etc/muster/config.yaml:3", "default"

  std::string text() const;  // a list is joined by commas
  // The source of a value, to begin an error message: "--node-grace", "config.yaml:3:
  // coordinator.node-grace".
  std::string place() const;
};

class Settings {
 public:
  explicit Settings(std::vector<Setting> all) : all_(std::move(all)) {}
  const std::vector<Setting>& all() const { return all_; }
  // Requires that `name` is a key of the section.
  const Setting& operator[](std::string_view name) const;
  std::string text(std::string_view name) const { return (*this)[name].text(); }

 private:
  std::vector<Setting> all_;
};

class Config {
 public:
  using Env = std::function<const char*(const char*)>;  // like getenv

  // Only flags and built-in defaults.
  Config() = default;
  explicit Config(Env env);
  // Reads this process's environment.
  static Config of_process();
  // Only flags, files and built-in defaults. Paths: as below.
  static Config of_files(std::string user_path, std::string system_path);

  // Paths of the files, which need not exist; empty: none (no home).
  const std::string& user_path() const { return user_path_; }
  const std::string& system_path() const { return system_path_; }

  // All settings of a section, in the order of its keys. `given_file`: the file of --config, empty
  // for none; its keys are at the top level or below the section's name. invalid: a file or a value
  // cannot be read.
  Result<Settings> resolve(Section section, const Flags& flags,
                           const std::string& given_file = "") const;

 private:
  Env env_;
  std::string user_path_, system_path_;
};

// The settings in a file. `own`: the section whose keys are at the top of the file: the daemon's in
// a file of --config, else client.
Result<std::vector<Setting>> read_settings(const std::string& text, const std::string& path,
                                           Layer layer, Section own);

}  // namespace muster::cli
