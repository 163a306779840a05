#include "client/settings/config.hpp"

#include "base/check.hpp"
#include "base/text/comma_list.hpp"
#include "base/text/nearest.hpp"
#include "client/settings/files.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace muster::cli {
namespace {

using Shape = YamlEntry::Shape;

std::vector<std::string> names_of(Section section) {
  std::vector<std::string> names;
  for (const Key& key : keys_of(section)) names.emplace_back(key.name);
  return names;
}

// Checks what can be checked without knowing what the key means; empty: no error.
std::string wrong(const Setting& setting) {
  const Key& key = *setting.key;
  for (const std::string& value : setting.values) {
    if (key.form == Key::Form::toggle && value != "true" && value != "false")
      return "must be true or false, not `" + value + "`";
    if (!key.words.empty() &&
        std::find(key.words.begin(), key.words.end(), value) == key.words.end()) {
      std::string words;
      for (const std::string& word : key.words) words += (words.empty() ? "" : ", ") + word;
      return "`" + value + "`: must be one of " + words + did_you_mean(value, key.words);
    }
  }
  return "";
}

class FileReader {
 public:
  FileReader(std::string path, Layer layer) : path_(std::move(path)), layer_(layer) {}

  Status read(const std::vector<YamlEntry>& entries, Section section, bool top) {
    std::map<std::string, int> seen;
    for (const YamlEntry& entry : entries) {
      const std::string at = path_ + ":" + std::to_string(entry.line) + ": ";
      if (const auto [before, first] = seen.emplace(entry.key, entry.line); !first)
        return invalid(at + entry.key + " is set twice, first in line " +
                       std::to_string(before->second));
      if (top && (entry.key == "coordinator" || entry.key == "agent") &&
          (entry.shape == Shape::map || find_key(section, entry.key) == nullptr)) {
        if (entry.shape == Shape::empty) continue;
        if (entry.shape != Shape::map)
          return invalid(at + entry.key + ": must be a map of the " + entry.key + "'s keys");
        const Section below = entry.key == "agent" ? Section::agent : Section::coordinator;
        if (Status s = read(entry.below, below, false); !s) return s;
        continue;
      }
      const Key* key = find_key(section, entry.key);
      if (key == nullptr) return invalid(at + unknown(entry.key, section, top));
      if (Status s = take(*key, section, entry, at); !s) return s;
    }
    return Nothing{};
  }

  std::vector<Setting> settings;

 private:
  // If the key belongs to a daemon's section, says so.
  static std::string unknown(const std::string& word, Section section, bool top) {
    for (const Section other : kSections) {
      if (other != section && other != Section::client && find_key(other, word) != nullptr && top) {
        return "unknown key " + word + "; the " + name_of(other) + "'s is set below `" +
               name_of(other) + ":`";
      }
    }
    std::vector<std::string> known = names_of(section);
    if (top) known.insert(known.end(), {"coordinator", "agent"});
    const std::string where =
        *name_of(section) == '\0' ? "" : " of " + std::string(name_of(section));
    return "unknown key " + word + where + did_you_mean(word, known);
  }

  Status take(const Key& key, Section section, const YamlEntry& entry, const std::string& at) {
    Setting setting{section, &key, layer_, entry.values, path_ + ":" + std::to_string(entry.line)};
    if (entry.shape == Shape::empty) return invalid(at + entry.key + ": has no value");
    const bool takes_list = key.form == Key::Form::list ||
                            (key.form == Key::Form::addresses && entry.shape == Shape::list);
    if (!takes_list && entry.shape != Shape::scalar)
      return invalid(at + entry.key + ": must be a single value");
    for (const YamlEntry& pair : entry.below) {
      if (pair.shape != Shape::scalar)
        return invalid(path_ + ":" + std::to_string(pair.line) + ": " + entry.key + "." + pair.key +
                       ": must be a single value");
      setting.values.push_back(pair.key + "=" + pair.values.front());
    }
    settings.push_back(std::move(setting));
    return Nothing{};
  }

  const std::string path_;
  const Layer layer_;
};

}  // namespace

std::string Setting::text() const {
  std::string out;
  for (const std::string& value : values) out += (out.empty() ? "" : ",") + value;
  return out;
}

std::string Setting::place() const {
  return layer == Layer::flag || layer == Layer::variable ? from
                                                          : from + ": " + full_name(section, *key);
}

const Setting& Settings::operator[](std::string_view name) const {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [name](const Setting& s) { return s.key->name == name; });
  MUSTER_CHECK(found != all_.end(), name);
  return *found;
}

Result<std::vector<Setting>> read_settings(const std::string& text, const std::string& path,
                                           Layer layer, Section own) {
  auto entries = yaml_entries(text);
  if (!entries) return invalid(path + ": " + entries.error().message);
  FileReader reader(path, layer);
  if (Status s = reader.read(*entries, own, true); !s) return s.error();
  return std::move(reader.settings);
}

Config::Config(Env env) : env_(std::move(env)) {
  const auto word = [this](const char* name) {
    const char* text = env_(name);
    return std::string(text != nullptr ? text : "");
  };
  std::string folder = word("XDG_CONFIG_HOME");
  if (folder.empty() && !word("HOME").empty()) folder = word("HOME") + "/.config";
  if (!folder.empty()) user_path_ = folder + "/muster/config.yaml";
  const std::string system = word("MUSTER_SYSTEM_CONFIG");
  system_path_ = system.empty() ? "/etc/muster/config.yaml" : system;
}

Config Config::of_process() {
  return Config([](const char* name) -> const char* { return std::getenv(name); });
}

Config Config::of_files(std::string user_path, std::string system_path) {
  Config config;
  config.user_path_ = std::move(user_path);
  config.system_path_ = std::move(system_path);
  return config;
}

Result<Settings> Config::resolve(Section section, const Flags& flags,
                                 const std::string& given_file) const {
  std::vector<Setting> found;  // in order of precedence
  for (const auto& [name, values] : flags) {
    const Key* key = find_key(section, name);
    MUSTER_CHECK(key != nullptr, name);
    found.push_back({section, key, Layer::flag, values, "--" + name});
  }
  if (env_) {
    for (const Key& key : keys_of(section)) {
      const std::string variable = variable_of(section, key);
      const char* text = env_(variable.c_str());
      if (text == nullptr || *text == '\0') continue;
      found.push_back(
          {section, &key, Layer::variable,
           key.form == Key::Form::list ? split_at_commas(text) : std::vector<std::string>{text},
           variable});
    }
  }
  struct File {
    std::string path;
    Layer layer;
    Section own;
  };
  for (const File& file : {File{given_file, Layer::given_file, section},
                           File{user_path_, Layer::user_file, Section::client},
                           File{system_path_, Layer::system_file, Section::client}}) {
    std::error_code ignored;
    const bool given = file.layer == Layer::given_file;
    if (file.path.empty() || (!given && !std::filesystem::exists(file.path, ignored))) continue;
    auto text = read_file(file.path);
    if (!text) return text.error();
    auto settings = read_settings(*text, file.path, file.layer, file.own);
    if (!settings) return settings.error();
    for (Setting& setting : *settings) {
      if (setting.section == section) found.push_back(std::move(setting));
    }
  }
  std::vector<Setting> all;
  for (const Key& key : keys_of(section)) {
    const auto first = std::find_if(found.begin(), found.end(),
                                    [&key](const Setting& s) { return s.key == &key; });
    if (first != found.end()) {
      all.push_back(*first);
      if (const std::string what = wrong(all.back()); !what.empty())
        return invalid(all.back().place() + ": " + what);
      continue;
    }
    all.push_back({section, &key, Layer::built_in, {}, "default"});
    if (*key.fallback != '\0') all.back().values.emplace_back(key.fallback);
  }
  return Settings(std::move(all));
}

}  // namespace muster::cli
