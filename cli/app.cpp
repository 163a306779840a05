#include "cli/app.hpp"

#include "base/version.hpp"
#include "cli/daemon_options.hpp"
#include "cli/exit_codes.hpp"
#include "cli/grammar.hpp"
#include "cli/parser.hpp"
#include "cli/text.hpp"

#include <charconv>
#include <iostream>

namespace muster::cli {
namespace {

Verb add_coordinator(CLI::App& root) {
  Verb verb =
      new_verb(root, "Daemons", "coordinator", "the daemon that decides: API, jobs, nodes, state");
  verb.section = Section::coordinator;
  for (const Key& key : keys_of(Section::coordinator)) add_key(verb, key);
  verb.app
      ->add_option("--config", *verb.given_file,
                   "a YAML file with these flags as keys (data-dir: D); a flag wins")
      ->type_name("F.yaml");
  verb.app->footer(
      "Example:\n  muster coordinator --data-dir /var/lib/muster\n"
      "When it serves, D/endpoints.json holds its addresses and pid.");
  verb.finish = [](const Settings& settings, const Target&) -> Judged {
    auto options = coordinator_options(settings);
    if (!options) return Usage{options.error().message};
    return *options;
  };
  return verb;
}

Verb add_agent(CLI::App& root) {
  Verb verb = new_verb(root, "Daemons", "agent", "the daemon of a node: runs pods as processes");
  verb.section = Section::agent;
  for (const Key& key : keys_of(Section::agent)) add_key(verb, key);
  verb.app
      ->add_option("--config", *verb.given_file,
                   "a YAML file with these flags as keys (work-dir: D); a flag wins")
      ->type_name("F.yaml");
  verb.app->footer(
      "Examples:\n  muster agent --coordinator 127.0.0.1:7118 --work-dir /var/lib/muster-agent "
      "--slots 8 --label disk=ssd\n"
      "  muster agent --hollow --slots 1000 --hollow-duration 100ms\n"
      "SIGTERM drains: pods get SIGTERM and their grace. SIGUSR2 leaves at once, the pods stay.");
  verb.finish = [](const Settings& settings, const Target&) -> Judged {
    auto options = agent_options(settings);
    if (!options) return Usage{options.error().message};
    return *options;
  };
  return verb;
}

Verb add_config(CLI::App& root, const Config& config) {
  struct Words {
    std::string what, output;
  };
  auto w = std::make_shared<Words>();
  Verb verb = new_verb(root, "About", "config", "which settings hold, and who said so");
  verb.app
      ->add_option("what", w->what, "view: each setting and where it comes from; path: the files")
      ->type_name("view | path")
      ->check(one_of({"view", "path"}))
      ->required();
  verb.app->add_option("-o,--output", w->output, "wide, json or yaml")
      ->check(one_of({"wide", "json", "yaml"}))
      ->type_name("FORM");
  add_target(verb);
  verb.app->footer(
      "Examples:\n  muster config view\n  muster config view -o yaml\n  muster config path\n"
      "The first that names a key wins it: flag, MUSTER_* variable, the user's file, the system's "
      "file, what is built in.");
  verb.finish = [w, config](const Settings& client, const Target&) -> Judged {
    ConfigOptions o;
    o.what = w->what == "path" ? ConfigOptions::What::path : ConfigOptions::What::view;
    o.output = read_output(w->output);
    o.user_path = config.user_path();
    o.system_path = config.system_path();
    o.settings = client.all();
    for (const Section section : {Section::coordinator, Section::agent}) {
      auto settings = config.resolve(section, {});
      if (!settings) return Usage{settings.error().message};
      o.settings.insert(o.settings.end(), settings->all().begin(), settings->all().end());
    }
    return o;
  };
  return verb;
}

Verb add_completion(CLI::App& root) {
  auto o = std::make_shared<CompletionOptions>();
  Verb verb = new_verb(root, "About", "completion", "a script that completes muster's words");
  verb.app->add_option("shell", o->shell, "for this shell")
      ->type_name("bash | zsh | fish")
      ->check(one_of({"bash", "zsh", "fish"}))
      ->required();
  verb.app->footer(
      "Examples:\n  source <(muster completion bash)      # now; in ~/.bashrc for good\n"
      "  muster completion fish > ~/.config/fish/completions/muster.fish\n"
      "  muster completion zsh > ~/.zfunc/_muster   # with ~/.zfunc in fpath");
  verb.configured = false;
  verb.finish = [o](const Settings&, const Target&) -> Judged { return *o; };
  return verb;
}

Verb add_kubeconfig(CLI::App& root) {
  auto o = std::make_shared<KubeconfigOptions>();
  Verb verb = new_verb(root, "About", "kubeconfig", "a configuration for kubectl, on stdout");
  add_target(verb);
  verb.app->footer(
      "Examples:\n  kubectl --kubeconfig <(muster kubeconfig) get jobs\n"
      "  muster kubeconfig --api mgmt1:7117 > ~/.kube/muster");
  verb.finish = [o](const Settings&, const Target& target) -> Judged {
    o->target = target;
    return *o;
  };
  return verb;
}

Verb add_version(CLI::App& root) {
  struct Words {
    VersionOptions o;
    std::string output;
  };
  auto w = std::make_shared<Words>();
  Verb verb = new_verb(root, "About", "version", "of this executable and of the coordinator");
  verb.app->add_flag("--client", w->o.client_only, "do not ask the coordinator");
  verb.app->add_option("-o,--output", w->output, "wide, json or yaml")
      ->check(one_of({"wide", "json", "yaml"}))
      ->type_name("FORM");
  add_target(verb, "");
  verb.app->footer("Examples:\n  muster version --client\n  muster version -o yaml");
  verb.finish = [w](const Settings&, const Target& target) -> Judged {
    w->o.target = target;
    w->o.output = read_output(w->output);
    return w->o;
  };
  return verb;
}

std::vector<Verb> all_verbs(CLI::App& root, const std::vector<std::string>& tail,
                            const Config& config) {
  std::vector<Verb> verbs = job_verbs(root, tail);
  for (Verb& verb : show_verbs(root)) verbs.push_back(std::move(verb));
  for (Verb verb : {add_coordinator(root), add_agent(root), add_config(root, config),
                    add_completion(root), add_kubeconfig(root), add_version(root)})
    verbs.push_back(std::move(verb));
  return verbs;
}

std::unique_ptr<CLI::App> new_root() {
  auto root = std::make_unique<CLI::App>(
      "muster runs indexed batch jobs as real processes, with the semantics of a Kubernetes Job.",
      "muster");
  root->footer(
      "A first job:\n  muster run -n 10 -- sh -c 'echo hello $JOB_COMPLETION_INDEX'\n"
      "`muster VERB --help` explains a verb. Exit codes: 0 done, 1 the job Failed, 2 wrong usage, "
      "3 no such object,\n"
      "4 coordinator not reachable, 5 rejected, 124 --timeout passed, 130 interrupted.");
  root->require_subcommand(0, 1);
  root->set_help_flag("-h,--help", "this text");
  return root;
}

Parsed usage(const std::string& verb, const std::string& message) {
  const std::string name = verb.empty() ? "muster" : "muster " + verb;
  return {std::nullopt,
          fail(kUsage, (verb.empty() ? "" : verb + ": ") + message + " (see " + name + " --help)")};
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// What the parser did not take: an unknown flag before all else, with the nearest known one.
std::string leftover(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining();
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (std::string& name : names_of(*option)) known.push_back(std::move(name));
  }
  for (const std::string& word : rest) {
    if (word.size() < 2 || word.front() != '-') continue;
    const std::string flag = word.substr(0, word.find('='));
    return "`" + flag + "`: no such flag" + did_you_mean(flag, known);
  }
  return rest.empty() ? "" : "`" + rest.front() + "`: one word too many";
}

// What CLI11 says, in our own form: "--output needs a FORM", "needs job/J...".
std::string complaint(const CLI::ParseError& error, const CLI::App& app) {
  if (std::string words = leftover(app); !words.empty()) return words;
  std::string said = error.what();
  std::replace(said.begin(), said.end(), '\n', ' ');
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool positional = option->get_positional();
    if (said == name + " is required")
      return "needs " + (positional ? "" : name + " ") + option->get_type_name() + ": " +
             option->get_description();
    if (!positional && said.starts_with(name + ": ") && said.ends_with(" missing"))
      return name + " needs a value: " + option->get_type_name();
    if (positional && said.starts_with(name + ": ")) return said.substr(name.size() + 2);
    if (said.starts_with(name + " requires "))
      return name + " needs " + said.substr(name.size() + 10) + " beside it";
  }
  return said;
}

// What people try first: --version, help [VERB].
std::vector<std::string> translated(const std::vector<std::string>& words) {
  if (words.size() > 1 && words[1] == "--version") return {words[0], "version", "--client"};
  if (words.size() == 2 && words[1] == "help") return {words[0], "--help"};
  if (words.size() == 3 && words[1] == "help") return {words[0], words[2], "--help"};
  return words;
}

// The first word that is no flag: the verb that was meant, known or not.
std::string meant_verb(const std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (!words[i].starts_with('-')) return words[i];
  }
  return "";
}

VerbWords words_of(const CLI::App& app) {
  VerbWords verb{
      app.get_name(), app.get_group(), app.get_description(), "", "", {}, app.get_footer(), {}};
  for (CLI::Option* option : const_cast<CLI::App&>(app).get_options()) {
    std::vector<std::string> words;
    try {
      const std::string mark = option->get_validator(0)->get_name();
      if (mark.starts_with(kWordsMark)) {
        std::string rest = mark.substr(sizeof kWordsMark - 1);
        for (size_t bar; (bar = rest.find('|')) != std::string::npos; rest.erase(0, bar + 1))
          words.push_back(rest.substr(0, bar));
        words.push_back(rest);
      }
    } catch (const CLI::OptionNotFound&) {  // it has none
    }
    if (option->get_positional()) {
      verb.what = option->get_type_name();
      verb.what_help = option->get_description();
      verb.what_words = std::move(words);
      continue;
    }
    const bool toggle = option->get_items_expected_max() == 0;
    verb.flags.push_back({names_of(*option), toggle ? "" : option->get_type_name(),
                          option->get_description(), std::move(words), option->get_required()});
  }
  return verb;
}

}  // namespace

CLI::Validator one_of(const std::vector<std::string>& words) {
  std::string name = kWordsMark, text;
  for (const std::string& word : words) {
    name += (text.empty() ? "" : "|") + word;
    text += (text.empty() ? "" : ", ") + word;
  }
  return {[words, text](std::string& value) {
            if (std::find(words.begin(), words.end(), value) != words.end()) return std::string();
            return "`" + value + "`: must be one of " + text + did_you_mean(value, words);
          },
          "", name};
}

CLI::Validator whole(int64_t low, int64_t high) {
  return {[low, high](std::string& value) {
            int64_t number = 0;
            const char* end = value.data() + value.size();
            const auto read = std::from_chars(value.data(), end, number);
            if (read.ec == std::errc{} && read.ptr == end && number >= low && number <= high)
              return std::string();
            return "`" + value + "`: must be a whole number, " + std::to_string(low) + " to " +
                   std::to_string(high);
          },
          ""};
}

Verb new_verb(CLI::App& root, const char* group, const std::string& name, const std::string& help) {
  Verb verb;
  verb.app = root.add_subcommand(name, help)->group(group);
  verb.app->set_help_flag("-h,--help", "this text");
  return verb;
}

CLI::Option* add_key(const Verb& verb, const Key& key, const std::string& names) {
  const std::string flag = names.empty() ? std::string("--") + key.name : names;
  const std::string name = key.name;
  std::string help = key.help;
  if (*key.fallback != '\0' && key.form != Key::Form::toggle)
    help += " (" + std::string(key.fallback) + ")";
  const auto flags = verb.flags;
  if (key.form == Key::Form::toggle) {
    return verb.app->add_flag_function(
        flag, [flags, name](int64_t count) { (*flags)[name] = {count > 0 ? "true" : "false"}; },
        help);
  }
  CLI::Option* option = nullptr;
  if (key.form == Key::Form::list) {
    option = verb.app->add_option_function<std::vector<std::string>>(
        flag, [flags, name](const std::vector<std::string>& values) { (*flags)[name] = values; },
        help);
    option->allow_extra_args(false)->take_all();
  } else {
    option = verb.app->add_option_function<std::string>(
        flag, [flags, name](const std::string& value) { (*flags)[name] = {value}; }, help);
  }
  if (!key.words.empty()) option->check(one_of(key.words));
  return option->type_name(key.type);
}

void add_target(const Verb& verb, const std::string& ns_flags) {
  const auto key = [](const char* name) -> const Key& { return *find_key(Section::client, name); };
  add_key(verb, key("api"))->group("Coordinator");
  if (!ns_flags.empty()) add_key(verb, key("namespace"), ns_flags)->group("Coordinator");
  add_key(verb, key("request-timeout"))->group("Coordinator");
  add_key(verb, key("color"))->group("Coordinator");
}

void add_log_level(CLI::App& app, std::string& level) {
  app.add_option("--log-level", level, "how much is logged (" + level + ")")
      ->check(one_of(find_key(Section::coordinator, "log-level")->words))
      ->type_name("LEVEL");
}

std::vector<VerbWords> grammar() {
  const auto root = new_root();
  std::vector<VerbWords> out;
  for (const Verb& verb : all_verbs(*root, {}, {})) out.push_back(words_of(*verb.app));
  return out;
}

Parsed parse(int argc, const char* const* argv, const Config& config) {
  // What follows `--` belongs to somebody else's command, dashes and all.
  const std::vector<std::string> given(argv, argv + argc);
  const auto dashes = std::find(given.begin(), given.end(), "--");
  std::vector<std::string> tail(dashes == given.end() ? dashes : dashes + 1, given.end());
  const std::vector<std::string> words = translated({given.begin(), dashes});

  const auto root = new_root();
  const std::vector<Verb> verbs = all_verbs(*root, tail, config);
  const std::string meant = meant_verb(words);
  std::vector<std::string> names;
  for (const Verb& verb : verbs) names.push_back(verb.app->get_name());
  const auto found = std::find(names.begin(), names.end(), meant);
  if (words.size() > 1 && words[1].starts_with('-') && words[1] != "-h" && words[1] != "--help")
    return usage("", "`" + words[1] + "`: the verb comes first, its flags after it");
  if (!meant.empty() && found == names.end())
    return usage("", "`" + meant + "`: no such verb" + did_you_mean(meant, names));
  const CLI::App& spoken = meant.empty() ? *root : *verbs[found - names.begin()].app;
  try {
    root->parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
  } catch (const CLI::CallForHelp& help) {
    return {std::nullopt, root->exit(help, std::cout, std::cerr) == 0 ? kDone : kUsage};
  } catch (const CLI::ParseError& error) {
    return usage(meant, complaint(error, spoken));
  }
  for (const Verb& verb : verbs) {
    if (!verb.app->parsed()) continue;
    if (!tail.empty() && verb.app->get_name() != "run") return usage(meant, "`--` is only for run");
    auto settings =
        (verb.configured ? config : Config()).resolve(verb.section, *verb.flags, *verb.given_file);
    if (!settings) return usage(meant, settings.error().message);
    Target target;
    if (verb.section == Section::client) {
      auto told = target_of(*settings);
      if (!told) return usage(meant, told.error().message);
      target = *told;
    }
    Judged judged = verb.finish(*settings, target);
    if (auto* wrong = std::get_if<Usage>(&judged)) return usage(meant, wrong->message);
    return {std::get<Options>(std::move(judged)), 0};
  }
  std::cout << root->help();
  return {std::nullopt, kUsage};
}

}  // namespace muster::cli
