// What goes along with a command from the shell that it was typed in: its environment, and the form
// in which a manifest says "exactly this".
//
// The names that muster gives to each pod do not go along, or a `muster run` inside a pod would
// tell its own pods that they are the outer one's.
#pragma once

#include "base/result.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

struct Export {
  enum class What { all, none, names };
  What what = What::all;
  std::vector<std::string> names;  // of What::names
};

using Variables = std::map<std::string, std::string>;

// "ALL", "NONE" or "NAME,NAME..."; invalid: an empty name.
Result<Export> parse_export(const std::string& text);

// The variables of `environ` that go along to pods that begin in `dir`. What a manifest cannot hold
// (a name that is not allowed, bytes that are not UTF-8) is left out of ALL, and an error in a list
// of names, as is a name that is not set.
Result<Variables> exported(const char* const* environ, const Export& wanted,
                           const std::string& dir);

// "NAME=VALUE"; invalid says what is wrong with it.
Result<std::pair<std::string, std::string>> parse_variable(const std::string& text);

// The text that stands for this one where $(NAME) and $$ are expanded.
std::string unexpanded(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace muster::cli
