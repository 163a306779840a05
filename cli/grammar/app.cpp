#include "cli/grammar/app.hpp"

#include "base/text/nearest.hpp"
#include "cli/grammar/grammar.hpp"
#include "cli/grammar/parser.hpp"
#include "client/terminal/exit_codes.hpp"

#include <charconv>
#include <iostream>

namespace muster::cli {
namespace {

// Help that shows what a verb's arguments are ("job/J...") instead of CLI11's placeholder.
class Help : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string words = " COMMAND";
    if (app->get_parent() != nullptr) {
      const auto found = app->get_options([](const CLI::Option* o) { return o->get_positional(); });
      words = found.empty() ? "" : " " + found.front()->get_type_name();
    }
    return "Usage: " + name + words + " [flags]\n";
  }
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    return positional ? option->get_type_name() : CLI::Formatter::make_option_name(option, false);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const bool bare = option->get_type_size() == 0 || option->get_positional();
    return bare ? "" : " " + option->get_type_name();
  }
  // CLI11 puts two blank lines between groups of flags.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    for (size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
    return text;
  }
};

std::vector<Verb> all_verbs(CLI::App& root, const std::vector<std::string>& tail,
                            const Config& config) {
  std::vector<Verb> verbs = run_verbs(root, tail);
  for (Verb& verb : exec_verbs(root, tail)) verbs.push_back(std::move(verb));
  for (Verb& verb : job_verbs(root)) verbs.push_back(std::move(verb));
  for (Verb& verb : show_verbs(root)) verbs.push_back(std::move(verb));
  for (Verb& verb : access_verbs(root)) verbs.push_back(std::move(verb));
  for (Verb& verb : dev_verbs(root, tail)) verbs.push_back(std::move(verb));
  for (Verb& verb : state_verbs(root)) verbs.push_back(std::move(verb));
  for (Verb& verb : drill_verbs(root)) verbs.push_back(std::move(verb));
  for (Verb& verb : about_verbs(root, config)) verbs.push_back(std::move(verb));
  return verbs;
}

std::unique_ptr<CLI::App> new_root() {
  auto root = std::make_unique<CLI::App>(
      "muster runs indexed batch jobs as real processes, with the semantics of a Kubernetes Job.",
      "muster");
  root->footer(
      "A first job:\n  muster run -n 10 -- sh -c 'echo hello $JOB_COMPLETION_INDEX'\n"
      "Run `muster COMMAND --help` for the flags of a command. Those that name the coordinator "
      "and\n"
      "the namespace may also precede it: muster -n lab get jobs.\n"
      "Exit codes: 0 success, 1 the job failed, 2 usage error, 3 not found, 4 coordinator "
      "unreachable,\n"
      "5 rejected, 124 --timeout expired, 130 interrupted.");
  auto help = std::make_shared<Help>();
  help->label("Positionals", "Arguments");
  root->formatter(help);
  root->require_subcommand(0, 1);
  root->option_defaults()->group("Flags");
  root->set_help_flag("-h,--help", "Show this help");
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

// The first unknown flag, with the nearest known one, or else the first unexpected argument.
std::string leftover(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining();
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (std::string& name : names_of(*option)) known.push_back(std::move(name));
  }
  for (const std::string& word : rest) {
    if (word.size() < 2 || word.front() != '-') continue;
    const std::string flag = word.substr(0, word.find('='));
    for (const char* of_mpirun : {"-H", "--host", "--hostfile", "--machinefile"})
      if (app.get_name() == "mpirun" && flag == of_mpirun)
        return "`" + flag +
               "`: muster chooses the hosts; -N says how many, and --slots how many "
               "ranks each gets";
    // A single letter resembles every other.
    return "`" + flag + "`: unknown flag" + (flag.size() > 3 ? did_you_mean(flag, known) : "");
  }
  return rest.empty() ? "" : "`" + rest.front() + "`: unexpected argument";
}

// CLI11's message in our own form: "--output needs a value: FORM", "needs job/J...: ...".
std::string complaint(const CLI::ParseError& error, const CLI::App& app) {
  if (std::string words = leftover(app); !words.empty()) return words;
  std::string said = error.what();
  for (const char* form : {"jsonpath", "custom-columns", "go-template"})
    if (said.find(std::string("`") + form) != std::string::npos)
      return std::string("-o ") + form +
             " is kubectl's (muster kubeconfig); otherwise pipe -o json into jq";
  std::replace(said.begin(), said.end(), '\n', ' ');
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool positional = option->get_positional();
    if (said == name + " is required")
      return "needs " + (positional ? "" : name + " ") + option->get_type_name() + ": " +
             option->get_description();
    if (!positional && said.starts_with(name + ": ") && said.ends_with(" missing"))
      return name + " needs a value: " + option->get_type_name();
    // Elsewhere -n is the namespace.
    if (option->check_sname("n") && name != "--namespace" && said.starts_with(name + ": `"))
      return said + "; the namespace is --namespace, or -n before the command";
    if (positional && said.starts_with(name + ": ")) return said.substr(name.size() + 2);
    if (said.starts_with(name + " requires "))
      return name + " requires " + said.substr(name.size() + 10);
  }
  return said;
}

// The flags that name the coordinator and the namespace may precede the verb, as with kubectl.
// Removes them from `words` and returns them in long form: before the verb, -n always means the
// namespace.
std::vector<std::string> take_early(std::vector<std::string>& words) {
  std::vector<std::string> early;
  size_t end = 1;
  while (end < words.size()) {
    std::string word = words[end];
    if (word.starts_with("-n")) {
      const std::string value = word.substr(word.starts_with("-n=") ? 3 : 2);
      word = value.empty() ? "--namespace" : "--namespace=" + value;
    }
    const size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    const auto& known = early_flags();
    if (std::find(known.begin(), known.end(), flag) == known.end()) break;
    early.push_back(word);
    ++end;
    if (equals != std::string::npos || end == words.size()) continue;
    early.push_back(words[end]);
    ++end;
  }
  words.erase(words.begin() + 1, words.begin() + static_cast<std::ptrdiff_t>(end));
  return early;
}

// The flags among `early` that this verb has. A verb without a namespace ignores one.
std::vector<std::string> early_of(const CLI::App& app, const std::vector<std::string>& early) {
  std::vector<std::string> out;
  for (size_t i = 0; i < early.size(); ++i) {
    const bool pair = early[i].find('=') == std::string::npos && i + 1 < early.size();
    if (!early[i].starts_with("--namespace") || app.get_option_no_throw("--namespace") != nullptr)
      out.insert(out.end(), early.begin() + static_cast<std::ptrdiff_t>(i),
                 early.begin() + static_cast<std::ptrdiff_t>(i) + (pair ? 2 : 1));
    i += pair ? 1 : 0;
  }
  return out;
}

// "-host": a long flag with one dash, as mpirun has them.
bool long_with_one_dash(const std::string& word) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return word.size() > 2 && word[0] == '-' && word[1] != 'x' && lower(word[1]) && lower(word[2]);
}

// Accepts common guesses: --version, help [VERB], and the long flags of mpirun, which have one
// dash. "-host" must not be taken for -h with more letters, which prints help.
std::vector<std::string> translated(std::vector<std::string> words) {
  const bool mpirun = words.size() > 1 && words[1] == "mpirun";
  for (std::string& word : words)
    if ((mpirun || word.starts_with("-h")) && long_with_one_dash(word)) word.insert(0, 1, '-');
  if (words.size() > 1 && words[1] == "--version") return {words[0], "version", "--client"};
  if (words.size() == 2 && words[1] == "help") return {words[0], "--help"};
  if (words.size() == 3 && words[1] == "help") return {words[0], words[2], "--help"};
  return words;
}

std::string joined_early() {
  std::string text;
  for (const std::string& flag : early_flags()) text += (text.empty() ? "" : ", ") + flag;
  return text;
}

// The first word that is not a flag, whether or not it is a known verb.
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
    } catch (const CLI::OptionNotFound&) {  // no validator
    }
    if (option->get_group().empty()) continue;  // part of the first argument, or not shown
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
  verb.app->set_help_flag("-h,--help", "Show this help");
  return verb;
}

CLI::Option* add_key(const Verb& verb, const Key& key, const std::string& names) {
  const std::string flag = names.empty() ? std::string("--") + key.name : names;
  const std::string name = key.name;
  std::string help = key.help;
  if (*key.fallback != '\0' && key.form != Key::Form::toggle)
    help += " (default " + std::string(key.fallback) + ")";
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
  // The last one wins, so that an --api in an alias can be overridden.
  const auto add = [&](const char* name, const std::string& flags = "") {
    add_key(verb, key(name), flags)->take_last()->group("Coordinator");
  };
  for (const char* name : {"api", "token-file", "ca-file", "munge-socket"}) add(name);
  if (!ns_flags.empty()) add("namespace", ns_flags);
  for (const char* name : {"request-timeout", "connect-timeout", "color"}) add(name);
}

const std::vector<std::string>& early_flags() {
  static const std::vector<std::string> flags = {
      "--api",       "--token-file",      "--ca-file",         "--munge-socket",
      "--namespace", "--request-timeout", "--connect-timeout", "--color"};
  return flags;
}

void add_log_level(CLI::App& app, std::string& level) {
  app.add_option("--log-level", level, "Log level (default " + level + ")")
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
  // What follows `--` is the command to run, including its flags.
  const std::vector<std::string> given(argv, argv + argc);
  const auto dashes = std::find(given.begin(), given.end(), "--");
  std::vector<std::string> tail(dashes == given.end() ? dashes : dashes + 1, given.end());
  std::vector<std::string> words(given.begin(), dashes);
  const std::vector<std::string> early = take_early(words);
  words = translated(std::move(words));

  const auto root = new_root();
  const std::vector<Verb> verbs = all_verbs(*root, tail, config);
  const std::string meant = meant_verb(words);
  std::vector<std::string> names;
  for (const Verb& verb : verbs) names.push_back(verb.app->get_name());
  const auto found = std::find(names.begin(), names.end(), meant);
  if (words.size() > 1 && words[1].starts_with('-') && words[1] != "-h" && words[1] != "--help")
    return usage("", "`" + words[1] + "`: flags must follow the command, except " + joined_early() +
                         ": muster COMMAND [flags]");
  if (!meant.empty() && found == names.end())
    return usage("", "`" + meant + "`: unknown command" + did_you_mean(meant, names));
  const CLI::App& spoken = meant.empty() ? *root : *verbs[found - names.begin()].app;
  if (!meant.empty() && !early.empty()) {
    // A daemon's --api is a different flag.
    if (verbs[found - names.begin()].section != Section::client)
      return usage(meant, "`" + early.front() + "`: flags of " + meant +
                              " must follow the command: muster " + meant + " [flags]");
    const std::vector<std::string> more = early_of(spoken, early);
    words.insert(words.begin() + 2, more.begin(), more.end());
  }
  try {
    root->parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
  } catch (const CLI::CallForHelp& help) {
    return {std::nullopt, root->exit(help, std::cout, std::cerr) == 0 ? kDone : kUsage};
  } catch (const CLI::ParseError& error) {
    return usage(meant, complaint(error, spoken));
  }
  for (const Verb& verb : verbs) {
    if (!verb.app->parsed()) continue;
    if (!tail.empty() && !verb.takes_command)
      return usage(meant,
                   "`--` is only for verbs that run a command: run, submit, mpirun, exec, dev");
    auto settings =
        (verb.configured ? config : Config()).resolve(verb.section, *verb.flags, *verb.given_file);
    if (!settings) return usage(meant, settings.error().message);
    Target target;
    if (verb.section == Section::client) {
      auto found = target_of(*settings);
      if (!found) return usage(meant, found.error().message);
      target = *found;
    }
    Judged judged = verb.finish(*settings, target);
    if (auto* wrong = std::get_if<Usage>(&judged)) return usage(meant, wrong->message);
    return {std::get<Options>(std::move(judged)), 0};
  }
  std::cout << root->help();
  return {std::nullopt, kUsage};
}

}  // namespace muster::cli
