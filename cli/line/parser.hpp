// Parser: what the files that declare verbs to CLI11 share. Only app.cpp, app_jobs.cpp,
// app_show.cpp and app_state.cpp include it: the library is slow to compile.
//
// A verb declares its flags and afterwards makes its options of what was found. Flags that are
// configuration keys go into `flags`; what holds for the section's keys is resolved before `finish`
// is asked.
#pragma once

#include "cli/client/discovery.hpp"
#include "cli/line/words.hpp"
#include "cli/settings/config.hpp"

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
  std::shared_ptr<std::string> given_file = std::make_shared<std::string>();  // of --config
  bool configured = true;  // false: it says the same whatever the configuration, even a broken one
  // `target`: of a client's verb, what its settings say.
  std::function<Judged(const Settings& settings, const Target& target)> finish;
};

// Leads the name of a validator that knows all values of its option, see one_of.
inline constexpr char kWordsMark[] = "words:";

// Values that may stand there; the message names them and the nearest.
CLI::Validator one_of(const std::vector<std::string>& words);

// A whole number, `low` to `high`.
CLI::Validator whole(int64_t low, int64_t high);

// A new verb below a heading of `muster --help`.
Verb new_verb(CLI::App& root, const char* group, const std::string& name, const std::string& help);

// The flag of a key; `names`: other than --NAME.
CLI::Option* add_key(const Verb& verb, const Key& key, const std::string& names = "");

// --api, the namespace (`ns_flags` empty: none), --request-timeout, --color.
void add_target(const Verb& verb, const std::string& ns_flags = "-n,--namespace");

void add_log_level(CLI::App& app, std::string& level);

// The verbs, an area a file.
std::vector<Verb> job_verbs(CLI::App& root, const std::vector<std::string>& tail);
std::vector<Verb> show_verbs(CLI::App& root, const Config& config);
std::vector<Verb> state_verbs(CLI::App& root);

}  // namespace muster::cli
