#include "cli/verbs/setup/keeper_variables.hpp"

#include "cli/doctor/look.hpp"
#include "client/settings/files.hpp"

#include <cerrno>
#include <cstring>
#include <sstream>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr std::string_view kOurs = "MUSTER_KEEPER_", kBlanks = " \t\r";

std::string_view trimmed_value(std::string_view text) {
  const size_t from = text.find_first_not_of(kBlanks);
  if (from == std::string_view::npos) return {};
  text = text.substr(from, text.find_last_not_of(kBlanks) - from + 1);
  const bool quoted =
      text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0];
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

std::map<std::string, std::string> keeper_variables_in(std::string_view environ) {
  std::map<std::string, std::string> found;
  while (!environ.empty()) {
    const std::string_view one = environ.substr(0, environ.find('\0'));
    environ.remove_prefix(std::min(environ.size(), one.size() + 1));
    if (const size_t equals = one.find('=');
        one.starts_with(kOurs) && equals != std::string_view::npos)
      found.emplace(one.substr(0, equals), one.substr(equals + 1));
  }
  return found;
}

Result<std::map<std::string, std::string>> find_keeper_variables(const std::string& work_dir) {
  const doctor::KeeperFacts facts = doctor::look_at_keeper(work_dir);
  if (!facts.not_seen.empty()) return invalid("cannot find the keeper: " + facts.not_seen);
  if (facts.keeper_pid == 0)
    return Error{Errc::unavailable, "no keeper is running on " + work_dir, {}};
  const std::string path = "/proc/" + std::to_string(facts.keeper_pid) + "/environ";
  errno = 0;
  const std::string environ = doctor::text_of_file(path);
  if (environ.empty() && errno != 0)
    return invalid("cannot read " + path + ": " + std::strerror(errno) +
                   "; only root and the keeper's user may");
  return keeper_variables_in(environ);
}

Result<std::map<std::string, VariableInFile>> read_variables_file(const std::string& path) {
  std::map<std::string, VariableInFile> found;
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) return found;
  auto text = read_file(path);
  if (!text) return text.error();
  std::istringstream lines(*text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string_view all = trimmed_value(line);
    const size_t equals = all.find('=');
    if (!all.starts_with(kOurs) || equals == std::string_view::npos) continue;
    found.insert_or_assign(std::string(all.substr(0, equals)),
                           VariableInFile{std::string(trimmed_value(all.substr(equals + 1))),
                                          path + ":" + std::to_string(number)});
  }
  return found;
}

}  // namespace muster::cli
