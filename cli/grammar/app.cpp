#include "cli/grammar/app.hpp"

#include "base/text/nearest.hpp"
#include "cli/grammar/grammar.hpp"
#include "cli/grammar/typed_words.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/terminal/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>
#include <set>
#include <sstream>

namespace muster::cli {
namespace {

constexpr char kHelpHelp[] = "Show this help";

// Help that shows what a verb's arguments are ("job/J...") instead of CLI11's placeholder.
class Help : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string words = " COMMAND";
    if (app->get_parent() != nullptr) {
      words.clear();
      for (const CLI::Option* option : app->get_options())
        if (option->get_positional() && !option->get_group().empty())
          words += " " + option->get_type_name();
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

// In the order of `muster --help`.
std::vector<Verb> all_verbs() {
  return {
      run_verb(),        submit_verb(),       mpirun_verb(),   shell_verb(),   exec_verb(),
      cp_verb(),         port_forward_verb(), create_verb(),   apply_verb(),   retry_verb(),
      cancel_verb(),     delete_verb(),       suspend_verb(),  resume_verb(),  scale_verb(),
      throttle_verb(),   notify_verb(),       hold_verb(),     release_verb(), set_verb(),
      cordon_verb(),     uncordon_verb(),     drain_verb(),    reboot_verb(),  taint_verb(),
      queue_verb(),      reserve_verb(),      allocate_verb(), get_verb(),     describe_verb(),
      explain_verb(),    why_verb(),          trace_verb(),    top_verb(),     share_verb(),
      history_verb(),    report_verb(),       logs_verb(),     wait_verb(),    coordinator_verb(),
      agent_verb(),      promote_verb(),      demote_verb(),   remove_verb(),  token_verb(),
      node_verb(),       dev_verb(),          backup_verb(),   restore_verb(), verify_verb(),
      journal_verb(),    drill_verb(),        doctor_verb(),   config_verb(),  completion_verb(),
      kubeconfig_verb(), web_verb(),          version_verb()};
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
  root->set_help_flag("-h,--help", kHelpHelp);
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
std::string leftover(const CLI::App& app, const Verb::Refuses& refuses) {
  const std::vector<std::string> rest = app.remaining();
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (std::string& name : names_of(*option)) known.push_back(std::move(name));
  }
  for (const std::string& word : rest) {
    if (word.size() < 2 || word.front() != '-') continue;
    const std::string flag = word.substr(0, word.find('='));
    if (std::find(refuses.flags.begin(), refuses.flags.end(), flag) != refuses.flags.end())
      return "`" + flag + "`: " + refuses.why;
    // A single letter resembles every other.
    return "`" + flag + "`: unknown flag" + (flag.size() > 3 ? did_you_mean(flag, known) : "");
  }
  return rest.empty() ? "" : "`" + rest.front() + "`: unexpected argument";
}

// CLI11's message in our own form: "--output needs a value: FORM", "needs job/J...: ...".
std::string complaint(const CLI::ParseError& error, const CLI::App& app,
                      const Verb::Refuses& refuses) {
  if (std::string words = leftover(app, refuses); !words.empty()) return words;
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
    if (said.starts_with(name + ": At Most 1 ")) return name + ": given more than once";
    // Elsewhere -n is the namespace.
    if (option->check_sname("n") && name != "--namespace" && said.starts_with(name + ": `"))
      return said + "; the namespace is --namespace, or -n before the command";
    if (positional && said.starts_with(name + ": ")) return said.substr(name.size() + 2);
    if (said.starts_with(name + " requires "))
      return name + " requires " + said.substr(name.size() + 10);
  }
  return said;
}

// The flags of all verbs that ask a coordinator: the client's keys but --output, whose forms depend
// on the verb. They may also precede the verb, in long form. All take a value.
const std::vector<std::string>& early_flags() {
  static const std::vector<std::string> flags = [] {
    std::vector<std::string> out;
    for (const Key& key : keys_of(Section::client))
      if (std::string_view(key.name) != "output") out.push_back(std::string("--") + key.name);
    return out;
  }();
  return flags;
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

// "-host": a long flag with one dash.
bool long_with_one_dash(const std::string& word) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return word.size() > 2 && word[0] == '-' && word[1] != 'x' && lower(word[1]) && lower(word[2]);
}

// Accepts common guesses: --version, help [VERB], and long flags with one dash where the verb has
// such. "-host" must not be taken for -h with more letters, which prints help.
std::vector<std::string> translated(std::vector<std::string> words, bool one_dash) {
  for (std::string& word : words)
    if ((one_dash || word.starts_with("-h")) && long_with_one_dash(word)) word.insert(0, 1, '-');
  if (words.size() > 1 && words[1] == "--version") return {words[0], "version", "--client"};
  if (words.size() == 2 && words[1] == "help") return {words[0], "--help"};
  if (words.size() == 3 && words[1] == "help") return {words[0], words[2], "--help"};
  return words;
}

// The first word that is not a flag, whether or not it is a known verb.
std::string meant_verb(const std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (!words[i].starts_with('-')) return words[i];
  }
  return "";
}

// What to type in place of a command of Slurm, PBS, Grid Engine or kubectl; empty: unknown.
std::string foreign_verb(std::string_view word) {
  constexpr std::pair<std::string_view, std::string_view> kForeign[] = {
      {"sbatch", "muster submit SCRIPT"},
      {"qsub", "muster submit SCRIPT"},
      {"bsub", "muster submit SCRIPT"},
      {"srun", "muster run -n N -- CMD, or muster shell"},
      {"salloc", "muster shell"},
      {"squeue", "muster get jobs --running"},
      {"qstat", "muster get jobs --running"},
      {"bjobs", "muster get jobs --running"},
      {"scancel", "muster cancel job/NAME"},
      {"qdel", "muster cancel job/NAME"},
      {"bkill", "muster cancel job/NAME"},
      {"sacct", "muster history, or muster get attempts job/NAME"},
      {"sreport", "muster report"},
      {"seff", "muster describe job NAME"},
      {"sinfo", "muster get nodes"},
      {"qhost", "muster get nodes"},
      {"sshare", "muster share"},
      {"sprio", "muster why job/NAME"},
      {"scontrol", "muster hold, release, set, cordon or drain"},
      {"sbcast", "muster create configmap"},
      {"parallel", "muster run --each FILE -- CMD {}"},
      {"ps", "muster get pods"},
      {"ls", "muster get jobs"},
      {"list", "muster get jobs"},
      {"status", "muster get jobs"},
      {"kill", "muster cancel job/NAME"},
      {"stop", "muster cancel job/NAME"},
      {"edit", "kubectl edit, with muster kubeconfig"},
      {"patch", "kubectl patch, with muster kubeconfig"}};
  for (const auto& [theirs, ours] : kForeign)
    if (theirs == word) return std::string(ours);
  return "";
}

// The rows of a verb and those of its target.
FlagRows rows_of(const Verb& verb) {
  FlagRows rows = verb.rows;
  if (verb.asks.target == nullptr) return rows;
  for (const std::string& flag : early_flags()) {
    const bool is_ns = flag == "--namespace";
    if (is_ns && verb.asks.ns_flags.empty()) continue;
    rows.push_back(
        key_row(*find_key(Section::client, flag.substr(2)), is_ns ? verb.asks.ns_flags : ""));
    rows.back().marks |= kOfTarget;
  }
  return rows;
}

std::vector<std::string> words_of(const FlagRow& row) {
  const auto* words = std::get_if<std::vector<std::string>>(&row.accepts);
  return words == nullptr ? std::vector<std::string>() : *words;
}

std::string help_of(const FlagRow& row) {
  std::string help = row.help;
  if (help.ends_with(':')) help += " " + listed(words_of(row), " or ");
  const size_t fallback = help.find("(default)");
  if (fallback == std::string::npos) return help;
  const std::string value = std::visit(
      [](const auto& into) -> std::string {
        if constexpr (requires { std::to_string(*into); })
          return std::to_string(*into);
        else if constexpr (requires { std::string(*into); })
          return *into;
        else
          return "";
      },
      row.into);
  return help.insert(fallback + 8, " " + value);
}

VerbWords words_of(const Verb& verb) {
  VerbWords out{.name = verb.title.name,
                .group = verb.title.group,
                .help = verb.title.help,
                .footer = verb.footer,
                .daemon = verb.section != Section::client};
  out.flags.push_back({{"-h", "--help"}, "", kHelpHelp, {}, false});
  for (const FlagRow& row : rows_of(verb)) {
    if ((row.marks & kHidden) != 0) continue;
    if (row.names.front() != '-') {
      const bool first = out.what.empty();
      out.what += (first ? "" : " ") + row.type;
      out.what_help += (first ? "" : "; ") + row.help;
      if (first) out.what_words = words_of(row);
      continue;
    }
    FlagWords flag{{}, row.type, help_of(row), words_of(row), (row.marks & kRequired) != 0};
    std::istringstream names(row.names);
    for (std::string name; std::getline(names, name, ',');) flag.names.push_back(name);
    out.flags.push_back(std::move(flag));
  }
  return out;
}

CLI::Validator validator(const std::vector<std::string>& words) {
  return {[words](std::string& value) {
            if (std::find(words.begin(), words.end(), value) != words.end()) return std::string();
            return "`" + value + "`: must be one of " + listed(words) + did_you_mean(value, words);
          },
          ""};
}

CLI::Validator validator(const Range& range) {
  return {[range](std::string& value) {
            int64_t number = 0;
            const char* end = value.data() + value.size();
            const auto read = std::from_chars(value.data(), end, number);
            if (read.ec == std::errc{} && read.ptr == end && number >= range.low &&
                number <= range.high)
              return std::string();
            return "`" + value + "`: must be a whole number, " + std::to_string(range.low) +
                   " to " + std::to_string(range.high);
          },
          ""};
}

// A verb, and its parser.
struct Declared {
  Verb verb;
  CLI::App* app = nullptr;
  std::shared_ptr<Flags> keys = std::make_shared<Flags>();  // on the command line
};

template <class T>
CLI::Option* add(const Declared& to, const FlagRow& row, T* into) {
  if constexpr (std::is_same_v<T, bool>)
    return to.app->add_flag(row.names, *into);
  else if constexpr (std::is_same_v<T, Output>)
    return to.app->add_option_function<std::string>(
        row.names, [into](const std::string& word) { *into = read_output(word); });
  else
    return to.app->add_option(row.names, *into);
}

CLI::Option* add(const Declared& to, const FlagRow& row, const KeyName& key) {
  const auto keys = to.keys;
  const std::string name = key.name;
  switch (key.form) {
    case Key::Form::toggle:
      return to.app->add_flag_function(
          row.names, [keys, name](int64_t n) { (*keys)[name] = {n > 0 ? "true" : "false"}; });
    case Key::Form::list:
      return to.app->add_option_function<std::vector<std::string>>(
          row.names, [keys, name](const std::vector<std::string>& all) { (*keys)[name] = all; });
    case Key::Form::text:
    case Key::Form::addresses:
      break;
  }
  return to.app->add_option_function<std::string>(
      row.names, [keys, name](const std::string& value) { (*keys)[name] = {value}; });
}

void add_row(const Declared& to, const FlagRow& row) {
  CLI::Option* option = std::visit([&](const auto& into) { return add(to, row, into); }, row.into);
  option->description(help_of(row));
  if (!row.type.empty()) option->type_name(row.type);
  if (const auto words = words_of(row); !words.empty()) option->check(validator(words));
  if (const auto* range = std::get_if<Range>(&row.accepts)) option->check(validator(*range));
  const auto marked = [&row](unsigned mark) { return (row.marks & mark) != 0; };
  if (marked(kRequired)) option->required();
  if (!option->get_positional()) option->allow_extra_args(marked(kSeveral));
  if (marked(kOptional)) option->expected(0, 1);
  if (marked(kHidden)) option->group("");
  // The last one wins, so that an --api in an alias can be overridden.
  if (marked(kOfTarget)) option->take_last()->group("Coordinator");
  for (const std::string& other : row.excludes) option->excludes(to.app->get_option(other));
  if (!row.needs.empty()) option->needs(to.app->get_option(row.needs));
}

Declared declare(CLI::App& root, const Verb& verb) {
  Declared declared{verb,
                    root.add_subcommand(verb.title.name, verb.title.help)->group(verb.title.group)};
  declared.app->set_help_flag("-h,--help", kHelpHelp);
  declared.app->footer(verb.footer);
  for (const FlagRow& row : rows_of(verb)) add_row(declared, row);
  return declared;
}

std::vector<Declared> declare_all(CLI::App& root) {
  std::vector<Declared> out;
  for (const Verb& verb : all_verbs()) out.push_back(declare(root, verb));
  return out;
}

// Checks a line of a script's flags, which must be like those of the command line.
std::optional<Usage> check_line(const std::string& verb, const ScriptFlags& script,
                                const ScriptFlags::Line& line) {
  const auto root = new_root();
  const auto all = all_verbs();  // a value of its own: parsing sets the options that it owns
  const auto found = std::ranges::find(all, verb, [](const Verb& one) { return one.title.name; });
  const Declared declared = declare(*root, *found);
  const std::string place = script.file + ":" + std::to_string(line.number) + ": ";
  if (const std::string word = empty_flag(rows_of(*found), line.words); !word.empty())
    return Usage{place + "`" + word + "` needs a value"};
  try {
    std::vector<std::string> words(line.words.rbegin(), line.words.rend());
    words.push_back(verb);
    root->parse(words);
  } catch (const CLI::CallForHelp&) {
    return Usage{place + "`--help` is for the command line"};
  } catch (const CLI::ParseError& error) {
    return Usage{place + complaint(error, *declared.app, found->refuses)};
  }
  const std::vector<std::string> rest = typed_words(rows_of(*found), line.words).rest;
  if (!rest.empty())
    return Usage{place + "`" + rest.front() + "`: must be a flag of muster " + verb};
  return std::nullopt;
}

// Puts a command that is followed by values, as in `muster run gzip ::: A B`, into `tail`.
// `dashes`: `words` ended with `--`.
void take_values(const std::vector<Declared>& verbs, bool dashes, std::vector<std::string>& words,
                 std::vector<std::string>& tail) {
  if (words.size() < 2 || std::ranges::find(words, ":::") == words.end()) return;
  const auto found =
      std::ranges::find(verbs, words[1], [](const Declared& one) { return one.verb.title.name; });
  if (found == verbs.end() || !found->verb.takes_values) return;
  std::vector<std::string> command =
      typed_words(rows_of(found->verb), {words.begin() + 2, words.end()}).rest;
  words.resize(words.size() - command.size());
  if (dashes) command.emplace_back("--");
  tail.insert(tail.begin(), command.begin(), command.end());
}

// If the first argument is a script, adds its flags to `words` and puts what follows it, its
// arguments, into `tail`. `dashes`: `words` ended with `--`.
std::optional<Usage> take_script(const std::vector<Declared>& verbs, bool dashes,
                                 std::vector<std::string>& words, std::vector<std::string>& tail) {
  if (words.size() < 2) return std::nullopt;
  const auto found =
      std::ranges::find(verbs, words[1], [](const Declared& one) { return one.verb.title.name; });
  if (found == verbs.end() || !found->verb.script) return std::nullopt;
  const FlagRows rows = rows_of(found->verb);
  const TypedWords typed = typed_words(rows, {words.begin() + 2, words.end()});
  if (typed.rest.empty()) return std::nullopt;
  const ReadScript read = found->verb.script(typed.rest.front(), typed.flags);
  if (const auto* wrong = std::get_if<Usage>(&read)) return *wrong;
  const auto* script = std::get_if<ScriptFlags>(&read);
  if (script == nullptr) return std::nullopt;
  for (const ScriptFlags::Line& line : script->lines)
    if (auto wrong = check_line(words[1], *script, line)) return wrong;
  std::vector<std::string> arguments(typed.rest.begin() + 1, typed.rest.end());
  const std::string flag = first_flag(rows, arguments);
  if (!flag.empty())
    std::cerr << "muster: warning: " << flag << " is an argument of " << script->file
              << ": flags of muster " << words[1] << " must precede it" << std::endl;
  if (dashes && !arguments.empty()) arguments.emplace_back("--");
  tail.insert(tail.begin(), arguments.begin(), arguments.end());
  words.resize(2);
  const auto flags = with_script_flags(rows, *script, typed);
  words.insert(words.end(), flags.begin(), flags.end());
  return std::nullopt;
}

// Checks what was parsed for a verb.
Judged judge(const Declared& declared, const Config& config, const std::vector<std::string>& tail) {
  const Verb& verb = declared.verb;
  const auto settings =
      (verb.configured ? config : Config())
          .resolve(verb.section, *declared.keys, verb.given_file ? *verb.given_file : "");
  if (!settings) return Usage{settings.error().message};
  if (verb.section == Section::client) {
    auto found = target_of(*settings);
    if (!found) return Usage{found.error().message};
    if (verb.asks.target != nullptr) *verb.asks.target = *found;
  }
  std::set<std::string> given;
  for (const CLI::Option* option : declared.app->get_options())
    if (option->count() > 0) given.insert(option->get_name());
  return verb.finish({*settings, config, given, tail});
}

}  // namespace

std::vector<VerbWords> grammar() {
  std::vector<VerbWords> out;
  for (const Verb& verb : all_verbs()) out.push_back(words_of(verb));
  return out;
}

Parsed parse(int argc, const char* const* argv, const Config& config) {
  // What follows `--` is the command to run, including its flags.
  const std::vector<std::string> given(argv, argv + argc);
  const auto dashes = std::find(given.begin(), given.end(), "--");
  std::vector<std::string> tail(dashes == given.end() ? dashes : dashes + 1, given.end());
  std::vector<std::string> words(given.begin(), dashes);
  const std::vector<std::string> early = take_early(words);
  const auto root = new_root();
  const std::vector<Declared> verbs = declare_all(*root);
  take_values(verbs, dashes != given.end(), words, tail);
  if (auto wrong = take_script(verbs, dashes != given.end(), words, tail))
    return usage(words[1], wrong->message);
  std::vector<std::string> names, of_commands;
  bool one_dash = false;
  for (const auto& [verb, app, keys] : verbs) {
    names.push_back(verb.title.name);
    if (verb.takes_command) of_commands.push_back(verb.title.name);
    one_dash |= verb.one_dash && words.size() > 1 && words[1] == verb.title.name;
  }
  words = translated(std::move(words), one_dash);
  const std::string meant = meant_verb(words);
  const auto found = std::find(names.begin(), names.end(), meant);
  if (words.size() > 1 && words[1].starts_with('-') && words[1] != "-h" && words[1] != "--help")
    return usage("", "`" + words[1] + "`: flags must follow the command, except " +
                         listed(early_flags()) + ": muster COMMAND [flags]");
  if (const std::string ours = foreign_verb(meant); !ours.empty() && found == names.end())
    return usage("", "`" + meant + "`: unknown command; here, that is " + ours);
  if (!meant.empty() && found == names.end())
    return usage("", "`" + meant + "`: unknown command" + did_you_mean(meant, names));
  const CLI::App& spoken = meant.empty() ? *root : *verbs[found - names.begin()].app;
  if (!meant.empty() && !early.empty()) {
    // A daemon's --api is a different flag.
    if (verbs[found - names.begin()].verb.section != Section::client)
      return usage(meant, "`" + early.front() + "`: flags of " + meant +
                              " must follow the command: muster " + meant + " [flags]");
    const std::vector<std::string> more = early_of(spoken, early);
    words.insert(words.begin() + 2, more.begin(), more.end());
  }
  if (!meant.empty())
    if (const std::string word = empty_flag(rows_of(verbs[found - names.begin()].verb), words);
        !word.empty())
      return usage(meant, "`" + word + "` needs a value");
  try {
    root->parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
  } catch (const CLI::CallForHelp& help) {
    return {std::nullopt, root->exit(help, std::cout, std::cerr) == 0 ? kDone : kUsage};
  } catch (const CLI::ParseError& error) {
    return usage(meant, complaint(error, spoken,
                                  meant.empty() ? Verb::Refuses()
                                                : verbs[found - names.begin()].verb.refuses));
  }
  for (const Declared& one : verbs) {
    if (!one.app->parsed()) continue;
    if (!tail.empty() && !one.verb.takes_command)
      return usage(meant, "`--` is only for verbs that run a command: " + listed(of_commands));
    Judged judged = judge(one, config, tail);
    if (auto* wrong = std::get_if<Usage>(&judged)) return usage(meant, wrong->message);
    return {std::get<Call>(std::move(judged)), 0};
  }
  std::cout << root->help();
  return {std::nullopt, kUsage};
}

}  // namespace muster::cli
