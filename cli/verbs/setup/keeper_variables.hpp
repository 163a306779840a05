// The settings of a keeper: the MUSTER_KEEPER_* variables that it was started with, which it cannot
// change, and those in the file from which a unit takes them (systemd.exec(5), EnvironmentFile=).
#pragma once

#include "base/result.hpp"

#include <map>
#include <string>
#include <string_view>

namespace muster::cli {

struct VariableInFile {
  std::string text, from;  // from: "/etc/muster/keeper.env:3"
};

// Of the keeper that runs on this work-dir, by name. unavailable: none does. invalid: they cannot
// be read.
Result<std::map<std::string, std::string>> find_keeper_variables(const std::string& work_dir);
// From text of the form of /proc/PID/environ.
std::map<std::string, std::string> keeper_variables_in(std::string_view environ);

// Likewise of a file; none if it does not exist. The last of several lines with a name counts.
// Quotes around a value are removed; what else a shell would do with it, systemd does not.
Result<std::map<std::string, VariableInFile>> read_variables_file(const std::string& path);

}  // namespace muster::cli
