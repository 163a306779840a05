// muster doctor: checks this machine as a client, a node or a head, and says what to do.
#include "cli/doctor/look.hpp"
#include "cli/doctor/report.hpp"
#include "cli/verbs/daemons/daemon_options.hpp"
#include "cli/verbs/verb.hpp"
#include "cli/verbs/words.hpp"
#include "client/terminal/exit_codes.hpp"

#include <filesystem>
#include <iostream>

namespace muster::cli {

// A daemon of this machine, by its configuration.
template <class T>
struct DaemonToCheck {
  std::string config_error;  // why it cannot start with it; then only its directory is in `with`
  T with{};
};

struct DoctorOptions {
  Target target;
  bool client = false;
  std::optional<DaemonToCheck<AgentOptions>> node{};
  std::optional<DaemonToCheck<CoordinatorOptions>> head{};
  Output output = Output::table;
  bool all = false;
};
int execute(const DoctorOptions& options);

namespace {

struct DoctorWords {
  Target target;
  std::string role, output, data_dir, work_dir, coordinator_file, agent_file;
  bool all = false, json = false;
};

// How to find and read the configuration of a daemon.
template <class T>
struct DaemonSource {
  Section section;
  const char* dir_key;  // of its own directory
  std::string dir;      // the value of that flag; empty: not given
  std::string file;
  Result<T> (*read)(const Settings&);
  std::string& (*dir_of)(T&);
  int (*process_of)(const std::string& dir);  // of the daemon that runs there; 0: none
};

// What a daemon was started with: its flags, and in `file` that of --config.
Flags flags_of(Section section, const std::vector<std::string>& command, std::string& file) {
  Flags flags;
  for (size_t i = 0; i < command.size(); ++i) {
    if (!command[i].starts_with("--")) continue;
    const size_t equals = command[i].find('=');
    const std::string name =
        command[i].substr(2, equals == std::string::npos ? equals : equals - 2);
    const Key* const key = find_key(section, name);
    if (key == nullptr && name != "config") continue;
    std::string value = "true";
    if (equals != std::string::npos)
      value = command[i].substr(equals + 1);
    else if (key == nullptr || key->form != Key::Form::toggle)
      value = ++i < command.size() ? command[i] : "";
    if (key == nullptr)
      file = value;
    else
      flags[name].push_back(value);
  }
  return flags;
}

// The same of a process, whose relative path of a file is one in its directory.
Flags flags_of(Section section, int pid, std::string& file) {
  std::string given;
  Flags flags = flags_of(section, doctor::command_of(pid), given);
  std::error_code error;
  const auto dir = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/cwd", error);
  if (!given.empty()) file = error ? given : (dir / given).string();
  return flags;
}

// Unset: its directory is not configured, so it is not on this machine. Of one that runs, its own
// flags count.
template <class T>
std::optional<DaemonToCheck<T>> find_daemon(const Config& config, const DaemonSource<T>& source) {
  DaemonToCheck<T> found;
  std::string& dir = source.dir_of(found.with);
  dir = source.dir;
  Flags flags;
  std::string file = source.file;
  if (!dir.empty()) flags[source.dir_key] = {dir};
  auto settings = config.resolve(source.section, flags, daemon_file(source.section, file));
  if (settings) {
    if (settings->text(source.dir_key).empty()) return std::nullopt;
    dir = absolute_dir(settings->text(source.dir_key));
    if (const int pid = source.process_of(dir); pid != 0) {
      flags = flags_of(source.section, pid, file);
      if (!source.file.empty()) file = source.file;
      flags[source.dir_key] = {dir};
      settings = config.resolve(source.section, flags, daemon_file(source.section, file));
    }
  }
  if (!settings) {
    found.config_error = settings.error().message;
    return found;
  }
  const std::string where = dir;
  if (auto options = source.read(*settings))
    found.with = std::move(*options);
  else
    found.config_error = options.error().message;
  dir = where;
  return found;
}

Judged read_doctor(const DoctorWords& w, const Given& given) {
  DoctorOptions o{.target = w.target, .output = read_output(w.output), .all = w.all};
  if (w.json) o.output = Output::json;
  if (w.role.empty() || w.role == "head")
    o.head = find_daemon<CoordinatorOptions>(
        given.config,
        {Section::coordinator, "data-dir", w.data_dir, w.coordinator_file, coordinator_options,
         [](CoordinatorOptions& all) -> std::string& { return all.options.data_dir; },
         [](const std::string& dir) {
           const auto pid = doctor::coordinator_of(dir);
           return pid ? *pid : 0;
         }});
  if (w.role.empty() || w.role == "node")
    o.node = find_daemon<AgentOptions>(
        given.config,
        {Section::agent, "work-dir", w.work_dir, w.agent_file, agent_options,
         [](AgentOptions& all) -> std::string& { return all.options.work_dir; },
         [](const std::string& dir) { return doctor::look_at_keeper(dir).agent_pid; }});
  if (w.role == "head" && !o.head)
    return Usage{"which data-dir? Give --data-dir D, or data-dir in /etc/muster/coordinator.yaml"};
  if (w.role == "node" && !o.node)
    return Usage{"which work-dir? Give --work-dir D, or work-dir in /etc/muster/agent.yaml"};
  const bool named = given.settings["api"].layer != Layer::built_in;
  o.client = w.role.empty() ? named || (!o.head && !o.node) : w.role == "client";
  return o;
}

}  // namespace

int execute(const DoctorOptions& options) {
  std::vector<doctor::Part> parts;
  if (options.head) {
    const CoordinatorOptions& with = options.head->with;
    doctor::HeadFacts facts =
        doctor::look_at_head(with.options, with.standby ? with.standby->peers : "");
    facts.config_error = options.head->config_error;
    doctor::Findings found;
    judge_head(facts, found);
    parts.push_back({"head", found.all()});
  }
  if (options.node) {
    doctor::NodeFacts facts = doctor::look_at_node(options.node->with.options, doctor::Depth::all);
    facts.config_error = options.node->config_error;
    doctor::Findings found;
    judge_node(facts, found);
    parts.push_back({"node", found.all()});
  }
  if (options.client) {
    doctor::Findings found;
    judge_client(doctor::look_at_client(options.target), found);
    parts.push_back({"client", found.all()});
  }
  std::cout << (is_structured(options.output) ? structured_text(report_json(parts), options.output)
                                              : report_text(parts, options.all));
  std::cout.flush();
  return has_problem(parts) ? kFailed : kDone;
}

Verb doctor_verb() {
  auto w = std::make_shared<DoctorWords>();
  return {
      .title = {"About", "doctor", "Check this machine, and say what to do about each finding"},
      .rows =
          {{"role", "client | node | head",
            "Role to check (default: each daemon configured here, and client if --api is set or "
            "there is no daemon)",
            &w->role, one_of({"client", "node", "head"})},
           {"--data-dir", "D", "Data directory of the coordinator here (default: configured)",
            &w->data_dir},
           {"--work-dir", "D", "Work directory of the agent here (default: configured)",
            &w->work_dir},
           {"--coordinator-config", "F.yaml",
            "File of the coordinator (default: /etc/muster/coordinator.yaml, if it exists)",
            &w->coordinator_file},
           {"--agent-config", "F.yaml",
            "File of the agent (default: /etc/muster/agent.yaml, if it exists)", &w->agent_file},
           {"--all", "", "Also show what is in order", &w->all},
           {"-o,--output", "FORM", "Output format:", &w->output, one_of({"json", "yaml"})},
           {"--json", "", "Same as -o json", &w->json, kAnything, 0, {"--output"}}},
      .asks = {&w->target, ""},
      .footer =
          "Examples:\n  muster doctor\n  muster doctor node --work-dir /local/muster --all\n"
          "  muster doctor client --api https://head:7443 -o json\n"
          "Run it as root to see everything. It changes nothing.\n"
          "Exit codes: 0 no problem (perhaps warnings), 1 at least one problem.",
      .finish = [w](const Given& given) { return read_doctor(*w, given); }};
}

}  // namespace muster::cli
