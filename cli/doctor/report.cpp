#include "cli/doctor/report.hpp"

#include "base/printable.hpp"

#include <algorithm>
#include <array>

namespace muster::cli::doctor {
namespace {

constexpr std::array kWorstFirst = {Level::problem, Level::warning, Level::unknown, Level::ok};
constexpr size_t kLevelWidth = 9;

size_t count(const std::vector<Part>& parts, Level level) {
  size_t n = 0;
  for (const Part& part : parts)
    n += static_cast<size_t>(
        std::count_if(part.findings.begin(), part.findings.end(),
                      [level](const Finding& one) { return one.level == level; }));
  return n;
}

std::string counted(size_t n, const char* one, const char* several) {
  return std::to_string(n) + " " + (n == 1 ? one : several);
}

std::string lines_of(const Finding& finding, const std::string& role) {
  std::string level = name_of(finding.level);
  level.resize(kLevelWidth, ' ');
  std::string text = level + role + ": " + finding.check + ": " + on_one_line(finding.found) + "\n";
  if (!finding.advice.empty())
    text += std::string(kLevelWidth, ' ') + "-> " + on_one_line(finding.advice) + "\n";
  return text;
}

// "3 problems, 1 warning, 2 unknown in 24 checks of head and node"
std::string summary(const std::vector<Part>& parts) {
  size_t checks = 0;
  std::string roles;
  for (size_t i = 0; i < parts.size(); ++i) {
    checks += parts[i].findings.size();
    roles += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i].role;
  }
  const std::string where = counted(checks, "check", "checks") + " of " + roles;
  std::string text;
  const auto tell = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (const size_t n = count(parts, Level::problem); n > 0) tell(counted(n, "problem", "problems"));
  if (const size_t n = count(parts, Level::warning); n > 0) tell(counted(n, "warning", "warnings"));
  if (const size_t n = count(parts, Level::unknown); n > 0) tell(std::to_string(n) + " unknown");
  return (text.empty() ? "nothing wrong" : text) + " in " + where + "\n";
}

}  // namespace

std::string report_text(const std::vector<Part>& parts, bool all) {
  std::string text;
  for (const Level level : kWorstFirst) {
    if (level == Level::ok && !all) continue;
    for (const Part& part : parts)
      for (const Finding& finding : part.findings)
        if (finding.level == level) text += lines_of(finding, part.role);
  }
  return text + summary(parts);
}

Json report_json(const std::vector<Part>& parts) {
  Json roles = Json::array(), findings = Json::array();
  size_t checks = 0;
  for (const Part& part : parts) {
    roles.push_back(part.role);
    checks += part.findings.size();
  }
  for (const Level level : kWorstFirst)
    for (const Part& part : parts)
      for (const Finding& one : part.findings)
        if (one.level == level)
          findings.push_back({{"level", name_of(level)},
                              {"role", part.role},
                              {"check", one.check},
                              {"found", one.found},
                              {"advice", one.advice}});
  return {{"roles", roles},
          {"checks", checks},
          {"problems", count(parts, Level::problem)},
          {"warnings", count(parts, Level::warning)},
          {"unknown", count(parts, Level::unknown)},
          {"findings", findings}};
}

bool has_problem(const std::vector<Part>& parts) {
  return count(parts, Level::problem) > 0;
}

}  // namespace muster::cli::doctor
