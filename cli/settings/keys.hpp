// Keys: what may be configured, by a flag, a variable or a file; the one list of it.
//
// Flags of the daemons, the keys of files, `muster config view` and the table of
// docs/configuration.md are all made of it. A key is its flag without dashes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

// Whose keys: of all verbs that ask a coordinator, or of a daemon. In a file a daemon's keys stand
// below its name.
enum class Section { client, coordinator, agent };
inline constexpr Section kSections[] = {Section::client, Section::coordinator, Section::agent};

struct Key {
  enum class Form {
    text,
    toggle,  // true or false; as a flag without a value
    list,    // a flag may be repeated; a file has a list; a variable separates by commas
  };
  const char* name;
  Form form;
  const char* type;      // of its value, for people: "ADDR:PORT"
  const char* fallback;  // as it would be written; empty: none, the help says what then
  const char* help;
  std::vector<std::string> words;  // the only values; empty: any
};

const std::vector<Key>& keys_of(Section section);
const char* name_of(Section section);  // "" , "coordinator", "agent": what leads its keys

// Null: no such key.
const Key* find_key(Section section, std::string_view name);

// "coordinator.node-grace"; of a client's key the name alone.
std::string full_name(Section section, const Key& key);

// MUSTER_API, MUSTER_COORDINATOR_NODE_GRACE.
std::string variable_of(Section section, const Key& key);

}  // namespace muster::cli
