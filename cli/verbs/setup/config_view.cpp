// muster config: `view` shows effective settings and where each comes from, `path` the paths of the
// files.
#include "cli/verbs/verb.hpp"
#include "cli/verbs/words.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/table.hpp"

#include <filesystem>
#include <iostream>

namespace muster::cli {

struct ConfigOptions {
  enum class What { view, path };
  What what = What::view;
  std::vector<Setting> settings;  // of all sections
  std::string user_path, system_path;
  Output output = Output::table;
};

namespace {

Json json_of(const Setting& setting) {
  Json json = {{"key", full_name(setting.section, *setting.key)},
               {"from", setting.from},
               {"variable", variable_of(setting.section, *setting.key)}};
  if (setting.key->form == Key::Form::list) {
    json["value"] = setting.values;
  } else if (!setting.values.empty()) {
    json["value"] = setting.values.front();
  } else {
    json["value"] = nullptr;
  }
  return json;
}

void print_table(const ConfigOptions& options) {
  const bool wide = options.output == Output::wide;
  std::vector<std::vector<std::string>> rows = {{"KEY", "VALUE", "FROM"}};
  if (wide) rows.front().insert(rows.front().end(), {"VARIABLE", "WHAT"});
  for (const Setting& s : options.settings) {
    rows.push_back({full_name(s.section, *s.key), s.values.empty() ? "<none>" : s.text(), s.from});
    if (wide) rows.back().insert(rows.back().end(), {variable_of(s.section, *s.key), s.key->help});
  }
  std::cout << aligned(rows, "");
}

void print_path(const char* whose, const std::string& path) {
  std::error_code ignored;
  std::cout << whose << (path.empty() ? "nowhere: HOME is not set" : path)
            << (!path.empty() && !std::filesystem::exists(path, ignored) ? " (not found)" : "")
            << "\n";
}

}  // namespace

int execute(const ConfigOptions& options) {
  if (options.what == ConfigOptions::What::path) {
    print_path("user    ", options.user_path);
    print_path("system  ", options.system_path);
  } else if (is_structured(options.output)) {
    Json settings = Json::array();
    for (const Setting& setting : options.settings) settings.push_back(json_of(setting));
    std::cout << structured_text(settings, options.output);
  } else {
    print_table(options);
  }
  std::cout.flush();
  return kDone;
}

Verb config_verb() {
  struct Words {
    Target target;
    std::string what, output;
  };
  auto w = std::make_shared<Words>();
  return {
      .title = {"About", "config", "Show effective settings and where each comes from"},
      .rows = {{"what", "view | path",
                "view (settings and their origin) or path (configuration files)", &w->what,
                one_of({"view", "path"}), kRequired},
               {"-o,--output", "FORM", "Output format:", &w->output,
                one_of({"wide", "json", "yaml"})}},
      .asks = {&w->target},
      .footer =
          "Examples:\n  muster config view\n  muster config view -o yaml\n  muster config path\n"
          "Order of precedence: flag, MUSTER_* variable, user file, system file, default.",
      .finish = [w](const Given& given) -> Judged {
        ConfigOptions o{w->what == "path" ? ConfigOptions::What::path : ConfigOptions::What::view,
                        given.settings.all(), given.config.user_path(), given.config.system_path(),
                        read_output(w->output)};
        for (const Section section : {Section::coordinator, Section::agent}) {
          auto settings = given.config.resolve(section, {});
          if (!settings) return Usage{settings.error().message};
          o.settings.insert(o.settings.end(), settings->all().begin(), settings->all().end());
        }
        return o;
      }};
}

}  // namespace muster::cli
