#include "client/settings/reload.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

namespace muster::cli {
namespace {

std::string value_text(const Setting& setting) {
  return setting.values.empty() ? "<none>" : setting.text();
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const std::string there = path.empty() ? "" : std::filesystem::absolute(path, error).string();
  return error ? path : there;
}

}  // namespace

SettingsSource source_of(const Settings& settings, const Config& config,
                         const std::string& given_file) {
  Flags fixed;  // also variables: an agent forgets its environment
  for (const Setting& one : settings.all())
    if (one.layer == Layer::flag || one.layer == Layer::variable) fixed[one.key->name] = one.values;
  const Section section = settings.all().front().section;
  return {
      settings,
      [config, fixed, given_file, section] { return config.resolve(section, fixed, given_file); },
      absolute(given_file), absolute(config.user_path()), absolute(config.system_path())};
}

Reload reload(const Settings& now, const Settings& read) {
  Reload out;
  std::vector<Setting> all;
  for (const Setting& was : now.all()) {
    const Setting& is = read[was.key->name];
    const bool changed = was.values != is.values;
    all.push_back(changed && was.key->reloads ? is : was);
    if (!changed) continue;
    auto& named = was.key->reloads ? out.taken : out.later;
    named.push_back(std::string(was.key->name) + ": " + value_text(was) + " -> " + value_text(is) +
                    " (" + is.from + ")");
  }
  out.settings = Settings(std::move(all));
  return out;
}

}  // namespace muster::cli
