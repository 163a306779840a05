// Grammar: the verbs and flags that the parser knows, as plain data.
//
// Completion scripts, manual pages and their tests are made of it, so that none of them can tell of
// a flag that is not there or be silent about one that is.
#pragma once

#include <string>
#include <vector>

namespace muster::cli {

struct FlagWords {
  std::vector<std::string> names;  // "-o", "--output"
  std::string type;                // of its value; empty: it has none
  std::string help;
  std::vector<std::string> words;  // the only values; empty: any
  bool required = false;
};

struct VerbWords {
  std::string name, group, help;
  std::string what;       // what follows it besides flags: "KIND [NAME]"; empty: nothing
  std::string what_help;  // and what that is
  std::vector<std::string> what_words;  // the only such words; empty: any
  std::string footer;                   // examples and exit codes
  std::vector<FlagWords> flags;
};

// All verbs, in the order of `muster --help`.
std::vector<VerbWords> grammar();

}  // namespace muster::cli
