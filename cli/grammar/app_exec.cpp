// The grammar of the verb that runs the command after `--` in a running pod.
#include "cli/grammar/parser.hpp"
#include "client/connect/objects.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace muster::cli {
namespace {

Verb add_exec(CLI::App& root, const std::vector<std::string>& tail) {
  struct Words {
    ExecOptions o;
    std::vector<std::string> what;
  };
  auto w = std::make_shared<Words>();
  Verb verb = new_verb(root, "Jobs", "exec", "Run a command in a running pod");
  verb.takes_command = true;
  CLI::App* app = verb.app;
  app->add_option("what", w->what, "Pod, or job with --index, and the command after --")
      ->type_name("POD | job/J -- CMD ARG...")
      ->required();
  app->add_option("--index", w->o.index, "Index of the job")
      ->type_name("I")
      ->check(whole(0, std::numeric_limits<int32_t>::max()));
  app->add_flag("-i,--stdin", w->o.input, "Pass standard input to the command");
  app->add_flag("-t,--tty", w->o.terminal,
                "Give the command a terminal, with -i; standard input must be one");
  add_target(verb);
  app->footer(
      "Examples:\n  muster exec sweep-7-x2bqd -- nvidia-smi\n"
      "  muster exec job/sweep --index 7 -- sh -c 'df -h .; uptime'\n"
      "  muster exec -it sweep-7-x2bqd -- bash\n"
      "  muster exec -i sweep-7-x2bqd -- sh -c 'cat > input.csv' < input.csv\n"
      "CMD runs in the pod's first container, with its user, environment, directory and limits, "
      "until CMD or the pod ends. Without -i its standard input is empty. Ctrl-C sends it "
      "SIGTERM, then SIGKILL after 5 s; with -t it is passed on like any other key.\n"
      "Exit codes: that of CMD (128+S if signal S ended it); 3 no such pod, 4 coordinator "
      "unreachable, 5 the pod is not running, 130 interrupted.");
  verb.finish = [w, tail](const Settings&, const Target& target) -> Judged {
    ExecOptions& o = w->o;
    o.target = target;
    if (o.terminal && !o.input) return Usage{"-t needs -i: muster exec -it POD -- CMD"};
    if (w->what.size() > 1)
      return Usage{"`" + w->what[1] + "`: the command comes after `--`: muster exec POD -- CMD"};
    const std::string& word = w->what.front();
    const size_t slash = word.find('/');
    const auto kind = slash == std::string::npos
                          ? Kind::pod
                          : parse_kind(word.substr(0, slash)).value_or(Kind::node);
    const std::string name = slash == std::string::npos ? word : word.substr(slash + 1);
    if ((kind != Kind::pod && kind != Kind::job) || name.empty())
      return Usage{"`" + word + "`: must be POD, pod/POD or job/J"};
    if (kind == Kind::pod && o.index)
      return Usage{"--index applies to jobs only: muster exec job/J --index 3 -- CMD"};
    (kind == Kind::pod ? o.pod : o.job) = name;
    if (tail.empty()) return Usage{"needs a command: muster exec " + word + " -- CMD ARG..."};
    o.command = tail;
    return o;
  };
  return verb;
}

}  // namespace

std::vector<Verb> exec_verbs(CLI::App& root, const std::vector<std::string>& tail) {
  return {add_exec(root, tail)};
}

}  // namespace muster::cli
