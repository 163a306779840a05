#include "cli/verbs/setup/config_daemon.hpp"

#include "cli/verbs/daemons/daemon_options.hpp"
#include "cli/verbs/daemons/running_settings.hpp"
#include "cli/verbs/setup/keeper_variables.hpp"
#include "cli/verbs/words.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/table.hpp"

#include <algorithm>
#include <iostream>
#include <optional>

namespace muster::cli {
namespace {

// A row of what is shown.
struct Shown {
  std::string key, from, variable;  // variable: empty: it has none that we know
  std::vector<std::string> values{};
  bool list = false;
  struct Change {
    std::vector<std::string> values;
    std::string from;
    const char* at;  // when it takes effect
  };
  std::optional<Change> change{};
};

std::string joined(const std::vector<std::string>& values) {
  return values.empty() ? "<none>" : Setting{.values = values}.text();
}

Json value_of(const std::vector<std::string>& values, bool list) {
  if (list) return values;
  return values.empty() ? Json() : Json(joined(values));
}

void print_shown_table(const std::vector<Shown>& all, bool wide) {
  const bool changed =
      std::ranges::any_of(all, [](const Shown& one) { return one.change.has_value(); });
  std::vector<std::vector<std::string>> rows = {{"KEY", "VALUE", "FROM"}};
  if (changed) rows.front().emplace_back("CHANGED TO");
  if (wide) rows.front().emplace_back("VARIABLE");
  for (const Shown& one : all) {
    rows.push_back({one.key, joined(one.values), one.from});
    if (changed)
      rows.back().push_back(!one.change ? ""
                                        : joined(one.change->values) + " (" + one.change->from +
                                              "), takes effect at a " + one.change->at);
    if (wide) rows.back().push_back(one.variable);
  }
  std::cout << aligned(rows, "");
}

Json shown_json(const std::vector<Shown>& shown) {
  Json all = Json::array();
  for (const Shown& one : shown) {
    Json json = {{"key", one.key}, {"value", value_of(one.values, one.list)}, {"from", one.from}};
    if (!one.variable.empty()) json["variable"] = one.variable;
    if (one.change)
      json["changedTo"] = {{"value", value_of(one.change->values, one.list)},
                           {"from", one.change->from},
                           {"takesEffectAt", one.change->at}};
    all.push_back(std::move(json));
  }
  return all;
}

void print_shown(const std::vector<Shown>& all, Output output) {
  if (is_structured(output))
    std::cout << structured_text(shown_json(all), output);
  else
    print_shown_table(all, output == Output::wide);
  std::cout.flush();
}

int show_running(const DaemonConfigOptions& options, Section section) {
  auto running = find_running_settings(section, options.dir);
  if (!running) return fail(running.error(), "config");
  auto changes = changed_settings(*running);
  std::vector<Shown> all;
  for (const RunningSetting& one : running->settings) {
    const Key* const key = find_key(section, one.key);
    all.push_back({std::string(name_of(section)) + "." + one.key, one.from,
                   key == nullptr ? "" : variable_of(section, *key), one.values, one.list});
    if (!changes) continue;
    if (const auto to = changes->find(one.key); to != changes->end())
      all.back().change = {to->second.values, to->second.from, one.reloads ? "reload" : "restart"};
  }
  print_shown(all, options.output);
  if (changes) return kDone;
  return fail(changes.error(), "config: its files cannot be compared with this");
}

// A keeper has no files: the system starts it with variables, and an agent passes it some.
int show_keeper(const DaemonConfigOptions& options) {
  auto running = find_keeper_variables(options.dir);
  if (!running) return fail(running.error(), "config");
  auto file = read_variables_file(options.keeper_file);
  std::vector<Shown> all;
  for (const auto& [name, value] : *running) {
    all.push_back({name, "environment", name, {value}});
    if (!file) continue;
    if (const auto to = file->find(name); to != file->end() && to->second.text != value)
      all.back().change = {{to->second.text}, to->second.from, "restart"};
  }
  if (file)
    for (const auto& [name, value] : *file)
      if (!running->contains(name))
        all.push_back({.key = name,
                       .from = "default",
                       .variable = name,
                       .change = Shown::Change{{value.text}, value.from, "restart"}});
  print_shown(all, options.output);
  if (file) return kDone;
  return fail(file.error(), "config: its file cannot be compared with this");
}

}  // namespace

int execute(const DaemonConfigOptions& options) {
  return options.section ? show_running(options, *options.section) : show_keeper(options);
}

Judged read_daemon_config(const Config& config, const std::string& daemon, const std::string& dir,
                          const std::string& file, DaemonConfigOptions options) {
  // A keeper has the work-dir of its agent.
  const Section section = daemon == "coordinator" ? Section::coordinator : Section::agent;
  const std::string key = section == Section::coordinator ? "data-dir" : "work-dir";
  if (daemon != "keeper") options.section = section;
  options.dir = dir;
  if (dir.empty()) {
    auto settings = config.resolve(section, {}, daemon_file(section, file));
    if (!settings) return Usage{settings.error().message};
    options.dir = settings->text(key);
  }
  if (options.dir.empty())
    return Usage{"which " + key + "? Give --" + key + " D, or " + key + " in /etc/muster/" +
                 name_of(section) + ".yaml"};
  options.dir = absolute_dir(options.dir);
  return options;
}

}  // namespace muster::cli
