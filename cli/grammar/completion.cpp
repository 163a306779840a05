#include "cli/grammar/completion.hpp"

#include "cli/verbs/verb.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"

#include <iostream>

namespace muster::cli {

struct CompletionOptions {
  std::string shell;  // bash, zsh, fish
};

namespace {

constexpr char kBashHead[] = R"sh(# bash completion of muster: muster completion bash
_muster_names() { # KIND: asks the coordinator that the line names
  local prefix=
  [[ $1 != jobs ]] || prefix=job/
  "${_muster_words[0]}" get "$1" -o name --request-timeout 1s "${_muster_target[@]}" 2>/dev/null </dev/null |
    sed "s|^[^/]*/|$prefix|"
}
_muster_offer() { # SOURCE...: @NAME is asked for, another word is offered as it is
  local source
  for source in "$@"; do
    case $source in
      @files) compopt -o filenames 2>/dev/null; compgen -f -- "$cur" ;;
      @folders) compopt -o filenames 2>/dev/null; compgen -d -- "$cur" ;;
      @kinds)
        if ((${#args[@]} == 0)) && [[ $cur != */* ]]; then
          compgen -W 'KINDS' -- "$cur"
        elif ((${#args[@]} > 0)); then
          compgen -W "$(_muster_names "${args[0]%%/*}" | sed 's|^job/||')" -- "$cur"
        elif [[ $cur == job/* || $cur == jobs/* ]]; then
          compgen -W "$(_muster_names jobs)" -- "$cur"
        fi ;;
      @*) compgen -W "$(_muster_names "${source#@}")" -- "$cur" ;;
      *) compgen -W "$source" -- "$cur" ;;
    esac
  done
}
)sh";

constexpr char kBashTail[] = R"sh(_muster() {
  local line=${COMP_LINE:0:COMP_POINT} cur word verb= flag= i
  local -a args=() _muster_words=() _muster_target=()
  read -ra _muster_words <<<"$line"
  [[ $line != *[[:space:]] ]] || _muster_words+=("")
  cur=${_muster_words[-1]}
  COMPREPLY=()
  for ((i = 1; i < ${#_muster_words[@]} - 1; i++)); do
    word=${_muster_words[i]}
    case $word in
      --) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
      --api=* | --namespace=*) _muster_target+=("$word") ;;
      --*=*) ;;
      -*)
        [[ " $(_muster_valued "${verb:-get}") " == *" $word "* ]] || continue
        i=$((i + 1))
        case $word in --api | --namespace | -n) _muster_target+=("$word" "${_muster_words[i]}") ;; esac
        ((i < ${#_muster_words[@]} - 1)) || flag=$word ;;
      *) if [[ -z $verb ]]; then verb=$word; else args+=("$word"); fi ;;
    esac
  done
  if [[ -z $flag && $cur == --*=* ]]; then
    flag=${cur%%=*} cur=${cur#*=}
  fi
  if [[ -z $verb ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$_muster_verbs --help --version" -- "$cur")
  elif [[ -n $flag ]]; then
    mapfile -t COMPREPLY < <(_muster_offer $(_muster_values "$verb" "$flag"))
  elif [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_muster_flags "$verb")" -- "$cur")
  else
    mapfile -t COMPREPLY < <(_muster_offer $(_muster_what "$verb"))
  fi
}
complete -o default -F _muster muster
)sh";

constexpr char kZshHead[] = R"sh(#compdef muster
# zsh completion of muster: muster completion zsh
_muster_names() { # KIND PREFIX: asks the coordinator that the line names
  local -a target names
  local i
  for ((i = 2; i < CURRENT; i++)); do
    case ${words[i]} in
      --api | --namespace | -n) target+=("${words[i]}" "${words[i + 1]}") ;;
      --api=* | --namespace=*) target+=("${words[i]}") ;;
    esac
  done
  names=(${(f)"$(muster get "$1" -o name --request-timeout 1s $target 2>/dev/null </dev/null)"})
  compadd -- "$2"${^names#*/}
}
_muster_jobs() {
  _muster_names jobs job/
}
_muster_pods() {
  _muster_names pods ''
}
_muster_nodes() {
  _muster_names nodes ''
}
_muster_kinds() {
  if ((CURRENT == 2)); then
    compadd KINDS
  else
    _muster_names "${words[2]}" ''
  fi
}
)sh";

constexpr char kFishHead[] = R"sh(# fish completion of muster: muster completion fish
function __muster_names # KIND PREFIX: asks the coordinator
    set -l target
    set -l words (commandline -opc)
    for i in (seq (count $words))
        switch $words[$i]
            case --api --namespace -n
                set -a target $words[$i] $words[(math $i + 1)]
            case '--api=*' '--namespace=*'
                set -a target $words[$i]
        end
    end
    muster get $argv[1] -o name --request-timeout 1s $target 2>/dev/null </dev/null | string replace -r '^[^/]*/' $argv[2]
end
function __muster_kinds
    set -l words (commandline -opc)
    if test (count $words) -le 2
        printf '%s\n' KINDS
    else
        __muster_names $words[3] ''
    end
end
complete -c muster -f
)sh";

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// The opening of a script, with the kinds that `get` lists.
std::string head_of(const char* text) {
  return replaced(text, "KINDS", joined(kind_words()) + " all attempts coordinators allocations");
}

std::string quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

// The sources, in the form that _muster_offer expects.
std::string bash_sources(const Completes& c) {
  std::vector<std::string> sources = c.words;
  if (c.kinds) sources.emplace_back("@kinds");
  if (c.jobs) sources.emplace_back("@jobs");
  if (c.pods) sources.emplace_back("@pods");
  if (c.nodes) sources.emplace_back("@nodes");
  if (c.files) sources.emplace_back("@files");
  if (c.folders) sources.emplace_back("@folders");
  return joined(sources);
}

std::string zsh_action(const Completes& c) {
  if (!c.words.empty()) return "(" + joined(c.words) + ")";
  std::vector<std::string> parts;
  if (c.kinds) return "_muster_kinds";
  if (c.jobs) parts.emplace_back("_muster_jobs");
  if (c.pods) parts.emplace_back("_muster_pods");
  if (c.nodes) parts.emplace_back("_muster_nodes");
  if (c.files) parts.emplace_back("_files");
  if (c.folders) parts.emplace_back("_files -/");
  if (parts.empty()) return " ";
  return parts.size() == 1 ? parts.front() : "{ " + joined(parts, "; ") + " }";
}

std::string zsh_text(std::string text) {
  for (const char* special : {"\\", "[", "]", ":"})
    text = replaced(std::move(text), special, "\\" + std::string(special));
  return text;
}

std::string fish_words(const Completes& c) {
  std::vector<std::string> parts = c.words;
  if (c.kinds) parts.emplace_back("(__muster_kinds)");
  if (c.jobs) parts.emplace_back("(__muster_names jobs job/)");
  if (c.pods) parts.emplace_back("(__muster_names pods \"\")");
  if (c.nodes) parts.emplace_back("(__muster_names nodes \"\")");
  if (c.folders) parts.emplace_back("(__fish_complete_directories)");
  return joined(parts);
}

// "NAME) echo 'A B' ;;" for each verb for which `say` returns text.
template <class Say>
std::string bash_cases(const std::string& function, const std::vector<VerbWords>& verbs,
                       const Say& say) {
  std::string out = function + "() {\n  case $1 in\n";
  for (const VerbWords& verb : verbs) {
    if (const std::string text = say(verb); !text.empty())
      out += "    " + verb.name + ") echo " + quoted(text) + " ;;\n";
  }
  return out + "  esac\n}\n";
}

}  // namespace

Completes completes(const std::string& type, const std::vector<std::string>& words) {
  Completes c;
  c.words = words;
  if (!words.empty()) return c;
  const auto has = [&type](const char* part) { return type.find(part) != std::string::npos; };
  c.kinds = has("KIND");
  c.jobs = has("job/");
  c.pods = has("POD");
  c.nodes = type == "NODE" || has("NODE.");
  c.files = type == "F" || has(".yaml");
  c.folders = type == "D";
  return c;
}

std::string bash_completion(const std::vector<VerbWords>& verbs) {
  std::vector<std::string> names;
  for (const VerbWords& verb : verbs) names.push_back(verb.name);
  std::string out = head_of(kBashHead);
  out += "_muster_verbs=" + quoted(joined(names)) + "\n";
  out += bash_cases("_muster_flags", verbs, [](const VerbWords& verb) {
    std::vector<std::string> flags;
    for (const FlagWords& flag : verb.flags)
      flags.insert(flags.end(), flag.names.begin(), flag.names.end());
    return joined(flags);
  });
  out += bash_cases("_muster_valued", verbs, [](const VerbWords& verb) {
    std::vector<std::string> flags;
    for (const FlagWords& flag : verb.flags) {
      if (!flag.type.empty()) flags.insert(flags.end(), flag.names.begin(), flag.names.end());
    }
    return joined(flags);
  });
  out += bash_cases("_muster_what", verbs, [](const VerbWords& verb) {
    return bash_sources(completes(verb.what, verb.what_words));
  });
  out += "_muster_values() {\n  case $1$2 in\n";
  for (const VerbWords& verb : verbs) {
    for (const FlagWords& flag : verb.flags) {
      const std::string sources = bash_sources(completes(flag.type, flag.words));
      if (flag.type.empty() || sources.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : flag.names) patterns.push_back(verb.name + name);
      out += "    " + joined(patterns, " | ") + ") echo " + quoted(sources) + " ;;\n";
    }
  }
  return out + "  esac\n}\n" + kBashTail;
}

std::string zsh_completion(const std::vector<VerbWords>& verbs) {
  std::string out = head_of(kZshHead);
  out += "_muster() {\n  local -a verbs=(\n";
  for (const VerbWords& verb : verbs)
    out += "    " + quoted(verb.name + ":" + zsh_text(verb.help)) + "\n";
  out +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe verb verbs\n    return\n  fi\n"
      "  local verb=${words[2]}\n  shift words\n  ((CURRENT--))\n  case $verb in\n";
  for (const VerbWords& verb : verbs) {
    out += "    " + verb.name + ") _arguments -s";
    for (const FlagWords& flag : verb.flags) {
      const bool several = flag.names.size() > 1;
      std::string spec = "'[" + replaced(zsh_text(flag.help), "'", "'\\''") + "]";
      if (!flag.type.empty())
        spec += ":" + replaced(zsh_text(flag.type), "'", "'\\''") + ":" +
                zsh_action(completes(flag.type, flag.words));
      out += " \\\n      " +
             (several ? "'*'{" + joined(flag.names, ",") + "}" : "'*'" + flag.names.front()) +
             spec + "'";
    }
    if (!verb.what.empty())
      out += " \\\n      " + quoted("*:" + zsh_text(verb.what) + ":" +
                                    zsh_action(completes(verb.what, verb.what_words)));
    out += " ;;\n";
  }
  return out + "  esac\n}\n_muster \"$@\"\n";
}

std::string fish_completion(const std::vector<VerbWords>& verbs) {
  std::string out = head_of(kFishHead);
  for (const VerbWords& verb : verbs) {
    out += "complete -c muster -n __fish_use_subcommand -a " + verb.name + " -d " +
           quoted(verb.help) + "\n";
    const std::string lead =
        "complete -c muster -n '__fish_seen_subcommand_from " + verb.name + "'";
    const Completes what = completes(verb.what, verb.what_words);
    if (const std::string words = fish_words(what); !words.empty() || what.files)
      out +=
          lead + (words.empty() ? "" : " -a " + quoted(words)) + (what.files ? " -F" : "") + "\n";
    for (const FlagWords& flag : verb.flags) {
      out += lead;
      for (const std::string& name : flag.names)
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      const Completes value = completes(flag.type, flag.words);
      if (!flag.type.empty()) out += value.files ? " -r -F" : " -x";
      if (const std::string words = fish_words(value); !words.empty())
        out += " -a " + quoted(words);
      out += " -d " + quoted(flag.help) + "\n";
    }
  }
  return out;
}

int execute(const CompletionOptions& options) {
  const std::vector<VerbWords> verbs = grammar();
  std::cout << (options.shell == "bash"  ? bash_completion(verbs)
                : options.shell == "zsh" ? zsh_completion(verbs)
                                         : fish_completion(verbs))
            << std::flush;
  return kDone;
}

Verb completion_verb() {
  auto o = std::make_shared<CompletionOptions>();
  return {.title = {"About", "completion", "Generate a shell completion script"},
          .rows = {{"shell", "bash | zsh | fish", "Shell to generate the script for", &o->shell,
                    one_of({"bash", "zsh", "fish"}), kRequired}},
          .footer =
              "Examples:\n  source <(muster completion bash)      # in this shell; add it to "
              "~/.bashrc to keep it\n"
              "  muster completion fish > ~/.config/fish/completions/muster.fish\n"
              "  muster completion zsh > ~/.zfunc/_muster   # with ~/.zfunc in fpath",
          .configured = false,
          .finish = as_given(o)};
}

}  // namespace muster::cli
