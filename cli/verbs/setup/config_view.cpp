// muster config: `view` shows effective settings and where each comes from, of a new process or of
// a running daemon, `path` the paths of the files, `check` whether the daemons would start with
// theirs.
#include "cli/verbs/daemons/daemon_options.hpp"
#include "cli/verbs/setup/config_daemon.hpp"
#include "cli/verbs/verb.hpp"
#include "cli/verbs/words.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/table.hpp"

#include <filesystem>
#include <iostream>

namespace muster::cli {

struct ConfigOptions {
  enum class What { view, path, check };
  What what = What::view;
  std::vector<Setting> settings;  // of all sections
  std::string user_path, system_path;
  Output output = Output::table;
  std::vector<std::string> checked{};  // files without errors
};
int execute(const ConfigOptions& options);

namespace {

bool exists(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && std::filesystem::exists(path, ignored);
}

Json json_of(const Setting& setting) {
  Json json = {{"key", full_name(setting.section, *setting.key)},
               {"from", setting.from},
               {"variable", variable_of(setting.section, *setting.key)}};
  if (setting.key->form == Key::Form::list) {
    json["value"] = setting.values;
  } else if (!setting.values.empty()) {
    json["value"] = setting.text();
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
  std::cout << whose << (path.empty() ? "nowhere: HOME is not set" : path)
            << (!path.empty() && !exists(path) ? " (not found)" : "") << "\n";
}

// Whether the daemon would start with this file (daemon_file). Adds it to `checked`.
template <class T>
Status check_daemon(const Config& config, Section section, const std::string& given,
                    Result<T> (*read)(const Settings&), std::vector<std::string>& checked) {
  const std::string file = daemon_file(section, given);
  auto settings = config.resolve(section, {}, file);
  if (!settings) return settings.error();
  if (file.empty()) return Nothing{};
  if (auto options = read(*settings); !options)
    return invalid((options.error().message.starts_with(file) ? "" : file + ": ") +
                   options.error().message);
  checked.push_back(file);
  return Nothing{};
}

struct DaemonFiles {
  std::string coordinator, agent;
};

Judged check_all(const Given& given, const DaemonFiles& files) {
  ConfigOptions o{.what = ConfigOptions::What::check};
  for (const std::string& path : {given.config.user_path(), given.config.system_path()})
    if (exists(path)) o.checked.push_back(path);
  if (Status ok = check_daemon(given.config, Section::coordinator, files.coordinator,
                               coordinator_options, o.checked);
      !ok)
    return Usage{ok.error().message};
  if (Status ok = check_daemon(given.config, Section::agent, files.agent, agent_options, o.checked);
      !ok)
    return Usage{ok.error().message};
  return o;
}

// Flags that would do nothing.
std::optional<Usage> check_config_flags(const std::string& what, const std::string& daemon,
                                        const Given& given) {
  if (!daemon.empty() && what != "view")
    return Usage{"--daemon belongs to muster config view; muster config " + what +
                 " is about files"};
  const auto unused = [&](const char* flag, bool used, const char* of) {
    return given.flags.contains(flag) && !used
               ? std::optional(Usage{std::string(flag) + " needs --daemon " + of})
               : std::nullopt;
  };
  if (auto wrong = unused("--data-dir", daemon == "coordinator", "coordinator")) return wrong;
  if (auto wrong = unused("--work-dir", daemon == "agent" || daemon == "keeper", "agent or keeper"))
    return wrong;
  return unused("--keeper-env", daemon == "keeper", "keeper");
}

}  // namespace

int execute(const ConfigOptions& options) {
  for (const std::string& path : options.checked) std::cout << path << ": no errors\n";
  if (options.what == ConfigOptions::What::check) {
    if (options.checked.empty()) std::cout << "there are no configuration files\n";
    std::cout.flush();
    return kDone;
  }
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
    std::string what, output, daemon, data_dir, work_dir;
    std::string keeper_file = "/etc/muster/keeper.env";
    DaemonFiles files;
  };
  auto w = std::make_shared<Words>();
  return {
      .title = {"About", "config", "Show effective settings and where each comes from"},
      .rows = {{"what", "view | path | check",
                "view (settings and their origin), path (configuration files) or check (whether "
                "the daemons would start with their files)",
                &w->what, one_of({"view", "path", "check"}), kRequired},
               {"--daemon", "DAEMON", "View what the daemon that runs on this machine uses:",
                &w->daemon, one_of({"coordinator", "agent", "keeper"})},
               {"--data-dir", "D",
                "With --daemon coordinator: its data directory (default: configured)",
                &w->data_dir},
               {"--work-dir", "D",
                "With --daemon agent or keeper: the agent's work directory (default: configured)",
                &w->work_dir},
               {"--coordinator-config", "F.yaml",
                "File of the coordinator to check, or to find its data directory (default: "
                "/etc/muster/coordinator.yaml, if it exists)",
                &w->files.coordinator},
               {"--agent-config", "F.yaml",
                "File of the agent to check, or to find its work directory (default: "
                "/etc/muster/agent.yaml, if it exists)",
                &w->files.agent},
               {"--keeper-env", "F", "With --daemon keeper: file with its variables (default)",
                &w->keeper_file},
               {"-o,--output", "FORM", "Output format:", &w->output,
                one_of({"wide", "json", "yaml"})}},
      .asks = {&w->target},
      .footer =
          "Examples:\n  muster config view\n  muster config view -o yaml\n  muster config path\n"
          "  muster config view --daemon coordinator\n"
          "  muster config check && systemctl restart muster-coordinator\n"
          "Order of precedence: flag, MUSTER_* variable, user file, system file, default.",
      .finish = [w](const Given& given) -> Judged {
        if (auto wrong = check_config_flags(w->what, w->daemon, given)) return *wrong;
        if (w->what == "check") return check_all(given, w->files);
        if (!w->daemon.empty()) {
          const bool head = w->daemon == "coordinator";
          return read_daemon_config(
              given.config, w->daemon, head ? w->data_dir : w->work_dir,
              head ? w->files.coordinator : w->files.agent,
              {.keeper_file = w->keeper_file, .output = read_output(w->output)});
        }
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
