// Parser: shared by the files that declare verbs to CLI11. Only app.cpp and the app_*.cpp files
// include it, because CLI11 is slow to compile.
//
// A verb declares its flags and later builds its options from the parsed values. Flags that are
// configuration keys go into `flags`; the section's settings are resolved before `finish` is
// called.
#pragma once

#include "cli/grammar/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/settings/config.hpp"

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::cli {

struct Verb {
  CLI::App* app = nullptr;
  Section section = Section::client;
  std::shared_ptr<Flags> flags = std::make_shared<Flags>();
  std::shared_ptr<std::string> given_file = std::make_shared<std::string>();  // value of --config
  bool takes_command = false;                                                 // after `--`
  bool configured = true;  // false: ignores the configuration, even an invalid one
  // For client verbs, `target` is set from their settings.
  std::function<Judged(const Settings& settings, const Target& target)> finish;
};

// Prefix of the name of a validator that lists all values of its option, see one_of.
inline constexpr char kWordsMark[] = "words:";

// Accepts only these words; the error message lists them and suggests the nearest.
CLI::Validator one_of(const std::vector<std::string>& words);

// Accepts a whole number from `low` to `high`.
CLI::Validator whole(int64_t low, int64_t high);

// Adds a verb under the heading `group` of `muster --help`.
Verb new_verb(CLI::App& root, const char* group, const std::string& name, const std::string& help);

// Adds a key's flag; `names` overrides --NAME.
CLI::Option* add_key(const Verb& verb, const Key& key, const std::string& names = "");

// Adds --api, the namespace (none if `ns_flags` is empty), the time limits and --color.
void add_target(const Verb& verb, const std::string& ns_flags = "-n,--namespace");

// The flags of add_target() that may also precede the verb, in long form. All take a value.
const std::vector<std::string>& early_flags();

void add_log_level(CLI::App& app, std::string& level);

// The verbs, one area per file.
std::vector<Verb> run_verbs(CLI::App& root, const std::vector<std::string>& tail);
std::vector<Verb> exec_verbs(CLI::App& root, const std::vector<std::string>& tail);
std::vector<Verb> job_verbs(CLI::App& root);
std::vector<Verb> show_verbs(CLI::App& root);
std::vector<Verb> access_verbs(CLI::App& root);
std::vector<Verb> state_verbs(CLI::App& root);
std::vector<Verb> drill_verbs(CLI::App& root);
std::vector<Verb> dev_verbs(CLI::App& root, const std::vector<std::string>& tail);
std::vector<Verb> about_verbs(CLI::App& root, const Config& config);

}  // namespace muster::cli
