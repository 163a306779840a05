// Verb: a verb of the command line: a row for each argument and flag, where their values go, and
// `finish`, which makes a call from them. A verb's file declares it beside its options and code.
//
// cli/grammar/app.cpp makes the parser from the rows, and the parser's help, completion and manual
// page come from the same rows. app.cpp alone includes CLI11, which is slow to compile.
#pragma once

#include "client/settings/config.hpp"
#include "client/settings/target.hpp"

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muster::cli {

// A usage error that the rows cannot express; printed as one line, exit code 2.
struct Usage {
  std::string message;
};

// A valid command line: the options of a verb, and how to run them. execute() is found by their
// type: it is declared beside it.
class Call {
 public:
  template <class T>
  requires requires(const T& options) { execute(options); }
  Call(T options)
      : options_(std::move(options)),
        run_([](const std::any& any) { return execute(*std::any_cast<T>(&any)); }) {}

  int run() const { return run_(options_); }
  // Null if the options are of another verb.
  template <class T>
  const T* as() const {
    return std::any_cast<T>(&options_);
  }

 private:
  std::any options_;
  int (*run_)(const std::any&);
};
using Judged = std::variant<Call, Usage>;

// A flag that is a configuration key; its value reaches the verb through Given::settings.
struct KeyName {
  std::string name;
  Key::Form form;
};

// What a value must be, besides being of the type that it is stored in.
struct Range {
  int64_t low, high;
};
using Accepts = std::variant<std::monostate, Range, std::vector<std::string>>;
inline const Accepts kAnything{};

// Only these words; the error message lists them and suggests the nearest.
inline Accepts one_of(std::vector<std::string> words) {
  return words;
}
// A whole number from `low` to `high`.
inline Accepts whole(int64_t low, int64_t high) {
  return Range{low, high};
}

// Marks of a row; combinable.
enum Marks : unsigned {
  kRequired = 1,
  kSeveral = 2,    // of a flag's list: one occurrence may take several values: -f a b
  kOptional = 4,   // the value may be absent
  kHidden = 8,     // an argument that the type of the first one shows
  kOfTarget = 16,  // of all verbs that ask a coordinator; the last one wins
};

struct FlagRow {
  std::string names;  // "-o,--output"; of an argument, without dashes: "job"
  std::string type;   // of the value, as help shows it: "N", "job/J..."; empty: a toggle
  // "(default)" at the end is completed with the value that `into` has, and a colon with the words
  // that the flag accepts.
  std::string help;
  std::variant<bool*, std::string*, std::vector<std::string>*, int32_t*, uint32_t*, int64_t*,
               std::optional<int32_t>*, std::optional<uint32_t>*, std::optional<int64_t>*,
               std::optional<uint64_t>*, Output*, KeyName>
      into;
  Accepts accepts = kAnything;
  unsigned marks = 0;
  std::vector<std::string> excludes = {};  // these flags cannot be given with it
  std::string needs = {};                  // this one must be
};
using FlagRows = std::vector<FlagRow>;

// The row of a key; `names` overrides --NAME.
FlagRow key_row(const Key& key, const std::string& names = "");

// What a command line and the configuration say besides the values in the rows.
struct Given {
  const Settings& settings;              // of the verb's section
  const Config& config;                  // all sections
  const std::set<std::string>& flags;    // what was given: "--name"; "-x" if it has no long name
  const std::vector<std::string>& tail;  // the command after `--`
};

// A flag with its value, as typed.
struct TypedFlag {
  std::string name;  // "--name"; "-x" if it has no long name
  std::vector<std::string> words;
};

// The flags that a script has for the verb that runs it. Flags on the command line win.
struct ScriptFlags {
  struct Line {
    size_t number = 0;
    std::vector<std::string> words;
  };
  std::string file;                // as shown in messages
  std::vector<std::string> first;  // valid flags; those of the lines win
  std::vector<Line> lines;
  // For some flags, those that win over them besides the flag itself.
  std::map<std::string, std::set<std::string>> yields;
};
// monostate: not a script.
using ReadScript = std::variant<std::monostate, ScriptFlags, Usage>;

struct Verb {
  struct Title {
    std::string group, name, help;  // `group`: its heading in `muster --help`
  } title;
  FlagRows rows = {};
  // Of a verb that asks a coordinator; set from its flags and the configuration before `finish`.
  struct Asks {
    Target* target = nullptr;
    std::string ns_flags = "-n,--namespace";  // empty: has no namespace
  } asks = {};
  std::string footer = {};  // examples and exit codes
  Section section = Section::client;
  std::shared_ptr<std::string> given_file = {};  // value of a daemon's --config
  bool takes_command = false;                    // after `--`
  bool takes_values = false;                     // or without it, before `:::` and its values
  bool one_dash = false;                         // its long flags may have one dash: -host
  struct Refuses {
    std::vector<std::string> flags;  // of similar programs
    std::string why;
  } refuses = {};
  bool configured = true;  // false: ignores the configuration, even an invalid one
  // Of a verb that takes scripts: reads the file that is its first argument, before the flags are
  // parsed. What follows a script on the command line are its arguments.
  std::function<ReadScript(const std::string& file, const std::vector<TypedFlag>& typed)> script =
      {};
  // Checks the values, once they are parsed. Owns what the rows point into.
  std::function<Judged(const Given&)> finish;
};

// Options, and an argument that is yet to be read into them.
template <class T, class Argument = std::string>
struct Raw {
  T o;
  Argument what;
};

// A `finish` for options that need no more checks than the rows make.
template <class T>
std::function<Judged(const Given&)> as_given(std::shared_ptr<T> options) {
  return [options](const Given&) -> Judged { return *options; };
}

// The options, unless reading them has found an error.
template <class T>
Judged judged(const std::optional<Usage>& wrong, const T& options) {
  return wrong ? Judged(*wrong) : Judged(options);
}

// The verbs, in cli/verbs/; completion_verb() is in cli/grammar/completion.cpp.
Verb run_verb(), submit_verb(), mpirun_verb(), exec_verb(), create_verb(), apply_verb(),
    retry_verb(), delete_verb(), suspend_verb(), resume_verb(), scale_verb(), throttle_verb(),
    cordon_verb(), uncordon_verb(), drain_verb(), get_verb(), describe_verb(), explain_verb(),
    why_verb(), trace_verb(), top_verb(), share_verb(), queue_verb(), logs_verb(), wait_verb(),
    coordinator_verb(), agent_verb(), token_verb(), node_verb(), dev_verb(), backup_verb(),
    restore_verb(), verify_verb(), journal_verb(), drill_verb(), config_verb(), completion_verb(),
    kubeconfig_verb(), version_verb(), hold_verb(), release_verb(), set_verb(), taint_verb(),
    reserve_verb(), cancel_verb(), shell_verb(), cp_verb(), port_forward_verb(), web_verb(),
    history_verb(), report_verb(), promote_verb(), demote_verb(), remove_verb(), notify_verb(),
    allocate_verb(), doctor_verb(), reboot_verb();

}  // namespace muster::cli
