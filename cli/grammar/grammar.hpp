// Grammar: the verbs and flags that the parser knows, as plain data.
//
// Completion scripts, manual pages and their tests are generated from it, so they list exactly the
// flags that exist.
#pragma once

#include <string>
#include <vector>

namespace muster::cli {

struct FlagWords {
  std::vector<std::string> names;  // "-o", "--output"
  std::string type;                // of its value; empty: takes no value
  std::string help;
  std::vector<std::string> words;  // the only values; empty: any
  bool required = false;
};

struct VerbWords {
  std::string name, group, help;
  std::string what{};                     // its arguments: "KIND [NAME]"; empty: none
  std::string what_help{};                // the description of `what`
  std::vector<std::string> what_words{};  // the only valid arguments; empty: any
  std::string footer;                     // examples and exit codes
  bool daemon = false;                    // has a manual page of its own
  std::vector<FlagWords> flags{};
};

// All verbs, in the order of `muster --help`.
std::vector<VerbWords> grammar();

}  // namespace muster::cli
