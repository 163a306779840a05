#include "cli/verbs/daemons/running_settings.hpp"

#include "base/files/private_files.hpp"
#include "base/log.hpp"
#include "base/process/process_stat.hpp"
#include "base/version.hpp"
#include "client/settings/files.hpp"
#include "client/terminal/json.hpp"

#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <utility>

namespace muster::cli {
namespace {

constexpr char kSettingsFile[] = "settings.json";
constexpr int64_t kSettingsFormat = 1;

uint64_t ticks_of(int pid) {
  const auto stat = process_stat(std::to_string(pid));
  return stat ? stat->started_ticks : 0;
}

const char* with_article(Section section) {
  return section == Section::agent ? "an agent" : "a coordinator";
}

Result<RunningSetting> parse_setting(const Json& json) {
  RunningSetting one{.key = text_at(json, {"key"}),
                     .list = at(json, {"list"}) == true,
                     .fixed = at(json, {"fixed"}) == true,
                     .reloads = at(json, {"reloads"}) == true,
                     .from = text_at(json, {"from"})};
  for (const Json& value : at(json, {"value"})) {
    if (!value.is_string()) return invalid("a value of " + one.key + " is not a text");
    one.values.push_back(value.get<std::string>());
  }
  if (one.key.empty()) return invalid("a setting has no key");
  return one;
}

}  // namespace

RunningSettings running_settings(const SettingsSource& source) {
  RunningSettings running{.section = source.now.all().front().section,
                          .pid = getpid(),
                          .ticks = ticks_of(getpid()),
                          .version = kVersion,
                          .given_file = source.given_file,
                          .user_file = source.user_file,
                          .system_file = source.system_file};
  for (const Setting& one : source.now.all())
    running.settings.push_back({.key = one.key->name,
                                .values = one.values,
                                .list = one.key->form == Key::Form::list,
                                .fixed = one.layer == Layer::flag || one.layer == Layer::variable,
                                .reloads = one.key->reloads,
                                .from = one.from});
  return running;
}

void tell_settings(const SettingsSource& source, const std::string& dir) {
  auto opened = open_private_dir(dir, "state directory");
  const Status told =
      opened ? replace_private_file(opened->get(), kSettingsFile, text_of(running_settings(source)))
             : Status(opened.error());
  if (!told)
    log::warn("muster config view cannot show the settings of this process: {}",
              told.error().message);
}

std::string text_of(const RunningSettings& running) {
  Json settings = Json::array();
  for (const RunningSetting& one : running.settings)
    settings.push_back({{"key", one.key},
                        {"value", one.values},
                        {"list", one.list},
                        {"fixed", one.fixed},
                        {"reloads", one.reloads},
                        {"from", one.from}});
  const Json all = {{"format", kSettingsFormat},
                    {"daemon", name_of(running.section)},
                    {"pid", running.pid},
                    {"ticks", running.ticks},
                    {"version", running.version},
                    {"files",
                     {{"given", running.given_file},
                      {"user", running.user_file},
                      {"system", running.system_file}}},
                    {"settings", std::move(settings)}};
  return dumped(all, 1) + "\n";
}

Result<RunningSettings> parse_running_settings(std::string_view text) {
  const Json json = read_json(text);
  if (!json.is_object()) return invalid("it is not a JSON object");
  if (const int64_t format = number_at(json, {"format"}); format != kSettingsFormat)
    return invalid("its format is " + std::to_string(format) + "; known: " +
                   std::to_string(kSettingsFormat) + ". Use the muster of the daemon's release");
  RunningSettings running{.pid = static_cast<int>(number_at(json, {"pid"})),
                          .ticks = static_cast<uint64_t>(number_at(json, {"ticks"})),
                          .version = text_at(json, {"version"}),
                          .given_file = text_at(json, {"files", "given"}),
                          .user_file = text_at(json, {"files", "user"}),
                          .system_file = text_at(json, {"files", "system"})};
  const std::string daemon = text_at(json, {"daemon"});
  if (daemon == name_of(Section::agent))
    running.section = Section::agent;
  else if (daemon != name_of(Section::coordinator))
    return invalid("its daemon is `" + daemon + "`; known: coordinator, agent");
  for (const Json& one : at(json, {"settings"})) {
    auto setting = parse_setting(one);
    if (!setting) return setting.error();
    running.settings.push_back(std::move(*setting));
  }
  return running;
}

Result<RunningSettings> find_running_settings(Section section, const std::string& dir) {
  const std::string path = dir + "/" + kSettingsFile, daemon = name_of(section);
  const std::string none = "no " + daemon + " is running on " + dir;
  if (access(path.c_str(), R_OK) != 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR)
      return Error{Errc::unavailable,
                   none + ", or one of an earlier version, which did not write " + path,
                   {}};
    return invalid("cannot read " + path + ": " + std::strerror(error) + "; only root and the " +
                   daemon + "'s user may");
  }
  auto text = read_file(path);
  if (!text) return text.error();
  auto running = parse_running_settings(*text);
  if (!running) return invalid(path + ": " + running.error().message);
  if (running->section != section)
    return invalid(dir + " is the directory of " + with_article(running->section) + ", not of " +
                   with_article(section));
  if (running->ticks == 0 || ticks_of(running->pid) != running->ticks)
    return Error{Errc::unavailable,
                 none + "; the last one, pid " + std::to_string(running->pid) + ", has ended",
                 {}};
  return running;
}

Result<std::map<std::string, Setting>> changed_settings(const RunningSettings& running) {
  Flags fixed;
  for (const RunningSetting& one : running.settings)
    if (one.fixed && find_key(running.section, one.key) != nullptr) fixed[one.key] = one.values;
  auto read = Config::of_files(running.user_file, running.system_file)
                  .resolve(running.section, fixed, running.given_file);
  if (!read) return read.error();
  std::map<std::string, Setting> changed;
  for (const RunningSetting& was : running.settings) {
    if (find_key(running.section, was.key) == nullptr) continue;
    const Setting& is = (*read)[was.key];
    if (is.values != was.values) changed.emplace(was.key, is);
  }
  return changed;
}

}  // namespace muster::cli
