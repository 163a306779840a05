// Submitter: the environment, umask and limits that a command inherits from the shell in which it
// was typed, and the escaping that keeps the environment from being expanded.
//
// Variables that muster sets in each pod are not exported by ALL, or the pods of a `muster run`
// inside a pod would seem to be the outer pod.
#pragma once

#include "base/result.hpp"
#include "core/spec/fields/process_settings.hpp"
#include "core/spec/values/expansion.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

struct Export {
  enum class What { all, none, names };
  What what = What::all;
  std::vector<std::string> names;  // exported in any case
  // ALL omits what another launcher or batch system has set, and what says how ranks are started.
  bool for_mpi = false;
  // ALL omits what names GPUs of this machine: a node gives its pods others, or none.
  bool elsewhere = true;
};

using Variables = std::map<std::string, std::string>;

// "ALL", "NONE" or "NAME,NAME..."; invalid: an empty name, or one with "=".
Result<Export> parse_export(const std::string& text);

// The variables of `environ` for pods that start in `dir`, which becomes their PWD. What a manifest
// cannot hold (an invalid name, bytes that are not UTF-8) is left out of ALL. In a list of names it
// is an error, and so is a name that is not set.
Result<Variables> exported(const char* const* environ, const Export& wanted,
                           const std::string& dir);

// The name of this user, or its number if it has none.
std::string user_name();

// The umask and soft limits of this process.
core::ProcessSettings shell_settings();

// "NAME=VALUE".
Result<std::pair<std::string, std::string>> parse_variable(const std::string& text);

using core::unexpanded;

bool is_utf8(std::string_view text);

}  // namespace muster::cli
