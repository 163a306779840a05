#include "agent/run/environment.hpp"

#include "base/files/private_files.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <pwd.h>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace muster::agent {

namespace {

constexpr std::string_view kInherited[] = {"PATH", "HOME", "USER",   "LOGNAME",        "SHELL",
                                           "LANG", "TZ",   "TMPDIR", "LD_LIBRARY_PATH"};
constexpr std::string_view kKnobs = "MUSTER_KEEPER_";
constexpr const char* kUmask = "MUSTER_KEEPER_UMASK";

std::string home_directory() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') return home;
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_dir : "";
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

bool is_inherited(std::string_view name) {
  return std::find(std::begin(kInherited), std::end(kInherited), name) != std::end(kInherited);
}

bool is_keepers(std::string_view name) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (name.ends_with("SAN_OPTIONS")) return true;
#endif
  return name.starts_with(kKnobs);
}

}  // namespace

std::vector<std::string> pod_environment() {
  std::vector<std::string> out;
  for (std::string_view name : kInherited)
    if (const char* value = std::getenv(std::string(name).c_str()))
      out.push_back(std::string(name) + "=" + value);
  return out;
}

core::node::NodeFacts node_facts(std::string node_name) {
  core::node::NodeFacts facts{.node_name = std::move(node_name)};
  char* dir = get_current_dir_name();
  facts.start_dir = dir != nullptr ? dir : "/";
  std::free(dir);
  facts.inherited = pod_environment();
  facts.home = home_directory();
  return facts;
}

std::vector<std::string> keeper_environment() {
  std::vector<std::string> out = pod_environment();
  std::erase_if(out, [](const auto& one) { return one.starts_with("LD_LIBRARY_PATH="); });
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (is_keepers(name_of(*variable)) && name_of(*variable) != kUmask) out.push_back(*variable);
  if (auto mask = umask_before()) {  // pods get the umask we were started with
    char octal[8];
    std::snprintf(octal, sizeof octal, "%03o", *mask & 0777u);
    out.push_back(std::string(kUmask) + "=" + octal);
  }
  return out;
}

void forget_environment() {
  std::vector<char*> gone;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::string_view name = name_of(*variable); !is_inherited(name) && !is_keepers(name))
      gone.push_back(*variable);
  for (char* variable : gone) {
    size_t size = std::strlen(variable);
    unsetenv(std::string(name_of(variable)).c_str());
    explicit_bzero(variable, size);
  }
}

}  // namespace muster::agent
