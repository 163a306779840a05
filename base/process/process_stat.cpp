#include "base/process/process_stat.hpp"

#include <fstream>
#include <sstream>

namespace muster {

std::optional<ProcessStat> process_stat(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  // pid (name, which may hold any character) state ppid pgrp …
  const std::string stat = text.str();
  const size_t close = stat.rfind(')');
  if (close == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(close + 1));
  ProcessStat found;
  std::string skipped;
  fields >> skipped >> skipped >> found.group;  // state, ppid, pgrp (the 5th)
  for (int field = 6; field < 22; ++field) fields >> skipped;
  fields >> found.started_ticks >> skipped >> found.pages;  // starttime, vsize, rss (the 24th)
  return fields ? std::optional(found) : std::nullopt;
}

}  // namespace muster
