#include "cli/grammar/reference.hpp"

#include "client/terminal/text.hpp"

#include <algorithm>
#include <cctype>

namespace muster::cli {
namespace {

constexpr char kManHead[] = R"(muster(1)

# NAME

muster - run indexed batch jobs as processes, with the semantics of a Kubernetes Job

# SYNOPSIS

*muster* _VERB_ [_FLAGS_...] [_ARGUMENTS_...]++
*muster* _VERB_ *--help*

# DESCRIPTION

A coordinator (*muster-coordinator*(8)) schedules jobs, and agents (*muster-agent*(8)) run their processes. Submissions,
starts and ends are on disk before they are acknowledged or shown. All other verbs are clients of the coordinator's HTTP API. It is the Kubernetes
API, so kubectl works as well. Without a coordinator, *muster run* starts one of its own, and an agent.

The address of the coordinator is taken from *--api*, *MUSTER_API* or the configuration (*muster-config*(5)); the default is
127.0.0.1:7117. Several addresses, separated by commas, are tried in turn. The flags that name the coordinator and the namespace may also precede the verb, where *-n* is the namespace for all verbs.
*muster-job*(5) describes manifests.
)";

constexpr char kManTail[] = R"(
# EXIT STATUS

|[ *0*
:[ success; for *run* and *wait*: the job is Complete
|  *1*
:  the job has Failed
|  *2*
:  a usage error, or an unreadable configuration
|  *3*
:  no such object
|  *4*
:  the coordinator cannot be reached
|  *5*
:  rejected: an invalid or unreadable manifest, or a conflict
|  *124*
:  *--timeout* expired; the job continues
|  *130*
:  interrupted

# ENVIRONMENT

*MUSTER_API*, *MUSTER_NAMESPACE* and the other variables of *muster-config*(5). *NO_COLOR* turns colors off. *muster run*
without *--data-dir* keeps its state in *TMPDIR*.

# FILES

_~/.config/muster/config.yaml_, _/etc/muster/config.yaml_: see *muster-config*(5).

# SEE ALSO

*muster-job*(5), *muster-config*(5), *muster-coordinator*(8), *muster-agent*(8), *kubectl*(1)
)";

// Escapes text for scdoc.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '*' || c == '_' || c == '[' || c == '#' || c == '|') out += '\\';
    out += c;
  }
  return out;
}

// In a footer, indented lines are examples and the rest is text.
std::string man_footer(const std::string& footer) {
  std::string out, rest = footer + "\n";
  bool literal = false;
  for (size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1)) {
    const std::string line = rest.substr(0, end);
    const bool example = line.starts_with("  ");
    if (example != literal) out += "```\n";
    if (literal && !example) out += "\n";
    literal = example;
    const char* const start = line.starts_with('-') ? "\\" : "";  // or it would be a list item
    out += example ? line.substr(2) + "\n" : start + plain(line) + "\n\n";
  }
  return out + (literal ? "```\n" : "");
}

std::string flag_text(const Key& key) {
  return std::string("--") + key.name + (*key.type != '\0' ? std::string(" ") + key.type : "");
}

}  // namespace

std::string man_flags(const VerbWords& verb) {
  std::string out;
  for (const FlagWords& flag : verb.flags) {
    std::string names;
    for (const std::string& name : flag.names)
      names += (names.empty() ? "*" : ", *") + plain(name) + "*";
    out += names + (flag.type.empty() ? "" : " _" + plain(flag.type) + "_") + "\n\t" +
           plain(flag.help) + (flag.required ? ". Required" : "") + ".\n\n";
  }
  return out;
}

std::string man_page(const std::vector<VerbWords>& verbs) {
  std::vector<const VerbWords*> sorted;  // by group, in the order of the help
  for (const VerbWords& verb : verbs) {
    if (verb.daemon) continue;
    const auto last = std::find_if(sorted.rbegin(), sorted.rend(), [&verb](const VerbWords* other) {
      return other->group == verb.group;
    });
    sorted.insert(last == sorted.rend() ? sorted.end() : last.base(), &verb);
  }
  std::string out = kManHead, group;
  for (const VerbWords* next : sorted) {
    const VerbWords& verb = *next;
    if (verb.group != group) out += "\n# " + upper(verb.group) + "\n";
    group = verb.group;
    // A heading is taken as it is: scdoc would print an escape.
    out += "\n## muster " + verb.name + (verb.what.empty() ? "" : " " + verb.what) + "\n\n" +
           plain(verb.help) + ".";
    if (!verb.what_help.empty()) out += " Arguments: " + plain(verb.what_help) + ".";
    out += "\n\n" + man_flags(verb) + man_footer(verb.footer);
  }
  return out + kManTail;
}

std::string keys_markdown() {
  std::string out = "| key | flag | variable | default | what |\n| --- | --- | --- | --- | --- |\n";
  for (const Section section : kSections) {
    for (const Key& key : keys_of(section)) {
      const std::string fallback = key.fallback;
      out += "| `" + full_name(section, key) + "` | `" + flag_text(key) + "` | `" +
             variable_of(section, key) + "` | " + (fallback.empty() ? "" : "`" + fallback + "`") +
             " | " + key.help;
      for (size_t i = 0; i < key.words.size(); ++i)
        out += (i == 0 ? ": `" : ", `") + key.words[i] + "`";
      out += " |\n";
    }
  }
  return out;
}

std::string keys_man() {
  std::string out;
  for (const Section section : kSections) {
    for (const Key& key : keys_of(section)) {
      out += "*" + plain(full_name(section, key)) + "* (" + plain(variable_of(section, key)) + ")" +
             (*key.fallback == '\0' ? "" : ", default " + plain(key.fallback)) + "\n\t" +
             plain(key.help);
      for (size_t i = 0; i < key.words.size(); ++i) out += (i == 0 ? ": " : ", ") + key.words[i];
      out += ".\n\n";
    }
  }
  return out;
}

std::string with_part(const std::string& text, const std::string& begin, const std::string& end,
                      const std::string& part) {
  const size_t from = text.find(begin + "\n");
  if (from == std::string::npos) return text;
  const size_t start = from + begin.size() + 1;
  const size_t stop = text.find(end + "\n", start);
  return stop == std::string::npos ? text : text.substr(0, start) + part + text.substr(stop);
}

}  // namespace muster::cli
