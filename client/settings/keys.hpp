// Keys: the one list of what can be configured by a flag, a variable or a file.
//
// The flags of the daemons, the keys of files, `muster config view` and the table in
// docs/configuration.md are generated from it. A key is its flag without dashes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

// Whose keys: those of all verbs that talk to a coordinator, or those of a daemon. In a file, a
// daemon's keys are below its name.
enum class Section { client, coordinator, agent };
inline constexpr Section kSections[] = {Section::client, Section::coordinator, Section::agent};

struct Key {
  enum class Form {
    text,
    toggle,     // true or false; the flag takes no value
    list,       // flag: repeatable; file: a list; variable: separated by commas
    addresses,  // separated by commas; file: also a list
  };
  const char* name;
  Form form;
  const char* type;      // of its value, as shown in the help: "ADDR:PORT"
  const char* fallback;  // default, as it would be written; empty: none, see `help`
  const char* help;
  std::vector<std::string> words;  // allowed values; empty: any
  bool reloads = false;            // a running daemon takes a new value at SIGHUP
};

const std::vector<Key>& keys_of(Section section);
const char* name_of(Section section);  // prefix of its keys: "", "coordinator", "agent"

// Null if there is no such key.
const Key* find_key(Section section, std::string_view name);

// "coordinator.node-grace"; a client key has no prefix.
std::string full_name(Section section, const Key& key);

// MUSTER_API, MUSTER_COORDINATOR_NODE_GRACE.
std::string variable_of(Section section, const Key& key);

}  // namespace muster::cli
