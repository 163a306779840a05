#include "cli/verbs/allocate/engine.hpp"

#include "base/process/shell_words.hpp"

#include <algorithm>

namespace muster::cli::allocate {
namespace {

constexpr Millis kSpareMax = 30'000;  // between the end of a node and that of its allocation

// Where the agent does not know its end: from now, and a little before the batch system ends it.
std::string until_lines(const Request& request, const ScriptWords& words) {
  const Millis spare = std::min(kSpareMax, request.time_ms / 20);
  const std::string line =
      "set -- \"$@\" --until +" + std::to_string((request.time_ms - spare) / 1000) + "s\n";
  return words.end.empty() ? line : "[ -n \"" + words.end + "\" ] || " + line;
}

std::string resource_lines(const Request& request, const ScriptWords& words) {
  std::string text;
  if (!words.cpus.empty())
    text += "cpus=" + words.cpus + "\n[ -z \"$cpus\" ] || set -- \"$@\" --cpu \"$cpus\"" +
            (request.with_slots ? "" : " --slots \"$cpus\"") + "\n";
  if (!words.memory_mi.empty())
    text += "memory=" + words.memory_mi +
            "\n[ \"${memory:-0}\" = 0 ] || set -- \"$@\" --memory \"${memory}Mi\"\n";
  return text;
}

// The token is written when the id of the allocation is known, which may be running by then.
std::string token_lines(const Request& request) {
  return "token=" + shell_quoted(request.dir) +
         "/$node.token\n"
         "tries=0\n"
         "until [ -s \"$token\" ]; do\n"
         "  tries=$((tries + 1))\n"
         "  [ $tries -le 120 ] || { echo \"there is no $token\" >&2; exit 1; }\n"
         "  sleep 1\n"
         "done\n"
         "set -- \"$@\" --token-file \"$token\"\n";
}

}  // namespace

std::string job_name(const std::string& pool) {
  return "muster-" + pool;
}

std::string script_of(const Request& request, const ScriptWords& words) {
  const std::string base =
      request.work_base.empty() ? "\"${TMPDIR:-/tmp}\"" : shell_quoted(request.work_base);
  std::string text =
      "#!/bin/sh\n"
      "# A node of muster: an allocation of `muster allocate`, pool " +
      request.pool +
      ".\n"
      "umask 077\n"
      "node=" +
      request.pool + "-" + words.id +
      "\n"
      "work=$(mktemp -d " +
      base + "/muster-\"$node\"-XXXXXX) || exit 1\n";
  text += "set -- --name \"$node\" --work-dir \"$work/agent\" --coordinator " +
          shell_quoted(request.coordinator) + " --label muster.dev/pool=" + request.pool + "\n";
  if (!request.agent_flags.empty()) {
    text += "set -- \"$@\"";
    for (const std::string& word : request.agent_flags) text += " " + shell_quoted(word);
    text += "\n";
  }
  text += resource_lines(request, words) + until_lines(request, words);
  if (request.with_token) text += token_lines(request);
  text +=
      "agent=\n"
      "trap '[ -z \"$agent\" ] || kill -TERM \"$agent\"' TERM INT\n" +
      shell_quoted(request.executable) +
      " agent \"$@\" &\n"
      "agent=$!\n"
      "while :; do  # a signal ends wait\n"
      "  wait \"$agent\"\n"
      "  code=$?\n"
      "  kill -0 \"$agent\" 2>/dev/null || break\n"
      "done\n"
      "[ $code -ne 0 ] || rm -rf -- \"$work\"\n"
      "exit $code\n";
  return text;
}

std::string option_of_ours(const std::vector<std::string>& options,
                           const std::vector<std::string>& ours) {
  for (const std::string& option : options)
    for (const std::string& one : ours) {
      const bool is_long = one.starts_with("--");
      if (option == one || option.starts_with(one + "=") ||
          (!is_long && option.starts_with(one) && !option.starts_with("--")))
        return one;
    }
  return "";
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (size_t bar = 0; bar != line.npos; line.remove_prefix(bar + 1)) {
    bar = line.find('|');
    cells.emplace_back(line.substr(0, bar));
    if (bar == line.npos) break;
  }
  return cells;
}

}  // namespace muster::cli::allocate
