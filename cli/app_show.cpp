// The words of the verbs that show something: get, describe, logs, wait.
#include "cli/objects.hpp"
#include "cli/parser.hpp"
#include "cli/text.hpp"

#include <strings.h>

namespace muster::cli {
namespace {

constexpr int64_t kIndexMax = 4294967294;

Verb add_get(CLI::App& root) {
  struct Words {
    GetOptions o;
    std::vector<std::string> what;
    bool no_headers = false;
  };
  auto w = std::make_shared<Words>();
  Verb verb = new_verb(root, "Jobs", "get", "list jobs, pods, nodes or events");
  CLI::App* app = verb.app;
  app->add_option("what", w->what, "jobs, pods, nodes or events; names; or KIND/NAME")
      ->type_name("KIND [NAME...]")
      ->required();
  add_key(verb, *find_key(Section::client, "output"), "-o,--output");
  app->add_option("-l,--selector", w->o.selector, "only those with these labels (a=b,c!=d)")
      ->type_name("SELECTOR");
  app->add_flag("-w,--watch", w->o.watch, "go on with what becomes of them");
  app->add_flag("-A,--all-namespaces", w->o.all_namespaces, "of all namespaces");
  app->add_flag("--no-headers", w->no_headers, "no header line");
  add_target(verb);
  app->footer(
      "Examples:\n  muster get jobs\n  muster get pods -l batch.kubernetes.io/job-name=sweep -o "
      "wide\n  muster get job sweep -w\n  muster get events -w");
  verb.finish = [w](const Settings& settings, const Target& target) -> Judged {
    GetOptions& o = w->o;
    o.target = target;
    const std::string first = w->what.front();
    const size_t slash = first.find('/');
    const auto kind = parse_kind(first.substr(0, slash));
    if (!kind) return unknown_kind(first.substr(0, slash));
    o.kind = *kind;
    o.names.assign(w->what.begin() + 1, w->what.end());
    if (slash != std::string::npos) {
      for (const std::string& word : w->what) {
        const size_t at = word.find('/');
        if (at == std::string::npos || parse_kind(word.substr(0, at)) != kind ||
            at + 1 == word.size()) {
          return Usage{"`" + word + "`: must be " + first.substr(0, slash) +
                       "/NAME like the first"};
        }
      }
      o.names.clear();
      for (const std::string& word : w->what) o.names.push_back(word.substr(word.find('/') + 1));
    }
    if (o.watch && o.names.size() > 1) return Usage{"-w watches one name or all"};
    if (o.all_namespaces && !o.names.empty()) return Usage{"-A lists all: it takes no name"};
    if (!o.selector.empty() && !o.names.empty())
      return Usage{"-l selects from all: it takes no name"};
    o.output = read_output(settings.text("output"));
    o.headers = !w->no_headers;
    return o;
  };
  return verb;
}

Verb add_describe(CLI::App& root) {
  auto o = std::make_shared<DescribeOptions>();
  auto what = std::make_shared<std::vector<std::string>>();
  Verb verb = new_verb(root, "Jobs", "describe", "what a person needs when something failed");
  verb.app->add_option("what", *what, "job, pod or node, and its name")
      ->type_name("KIND NAME")
      ->required();
  add_target(verb);
  verb.app->footer("Examples:\n  muster describe job sweep\n  muster describe node node03");
  verb.finish = [o, what](const Settings&, const Target& target) -> Judged {
    o->target = target;
    std::vector<std::string> words = *what;
    if (words.size() == 1 && words.front().find('/') != std::string::npos) {
      const size_t slash = words.front().find('/');
      words = {words.front().substr(0, slash), words.front().substr(slash + 1)};
    }
    const auto kind = parse_kind(words.front());
    if (!kind || *kind == Kind::event) {
      return Usage{"`" + words.front() + "`: must be job, pod or node" +
                   did_you_mean(words.front(), {"job", "pod", "node"})};
    }
    if (words.size() != 2 || words.back().empty())
      return Usage{"needs a kind and one name: muster describe job NAME"};
    o->kind = *kind;
    o->name = words.back();
    return *o;
  };
  return verb;
}

Verb add_logs(CLI::App& root) {
  auto o = std::make_shared<LogsOptions>();
  auto what = std::make_shared<std::string>();
  Verb verb = new_verb(root, "Jobs", "logs", "what a pod wrote, also after its end");
  CLI::App* app = verb.app;
  app->add_option("what", *what, "a pod, or a job with --index")
      ->type_name("POD | job/J")
      ->required();
  auto* index = app->add_option("--index", o->index, "of the job: the pod of this index")
                    ->type_name("I")
                    ->check(whole(0, kIndexMax));
  app->add_option("--attempt", o->attempt, "its attempt, counted from 0 (default: the newest)")
      ->type_name("K")
      ->check(whole(0, kIndexMax))
      ->needs(index);
  app->add_flag("-f,--follow", o->follow, "go on until the pod has ended");
  app->add_option("--tail", o->tail, "only so many last lines")
      ->type_name("N")
      ->check(whole(0, std::numeric_limits<int32_t>::max()));
  add_target(verb);
  app->footer(
      "Examples:\n  muster logs job/sweep --index 7\n  muster logs job/sweep --index 7 --attempt 0 "
      "--tail 20\n  muster logs -f sweep-7-x2bqd");
  verb.finish = [o, what](const Settings&, const Target& target) -> Judged {
    o->target = target;
    const size_t slash = what->find('/');
    const auto kind = slash == std::string::npos
                          ? Kind::pod
                          : parse_kind(what->substr(0, slash)).value_or(Kind::node);
    const std::string name = slash == std::string::npos ? *what : what->substr(slash + 1);
    if ((kind != Kind::pod && kind != Kind::job) || name.empty())
      return Usage{"`" + *what + "`: must be POD, pod/POD or job/J"};
    if (kind == Kind::pod && o->index)
      return Usage{"--index is of a job: muster logs job/" + name + " --index " +
                   std::to_string(*o->index)};
    (kind == Kind::pod ? o->pod : o->job) = name;
    return *o;
  };
  return verb;
}

// "condition=Complete", "delete", … into `o`.
std::optional<Usage> read_until(const std::string& text, WaitOptions& o) {
  constexpr std::string_view kCondition = "condition=";
  if (text.empty()) return std::nullopt;
  if (text == "delete") {
    o.deleted = true;
    return std::nullopt;
  }
  if (!text.starts_with(kCondition))
    return Usage{"--for: `" + text + "`: must be condition=Complete, condition=Failed or delete"};
  const std::string until = text.substr(kCondition.size());
  const size_t equals = until.find('=');
  const std::string value = equals == std::string::npos ? "true" : until.substr(equals + 1);
  o.condition = until.substr(0, equals);
  const std::vector<std::string> known = {"Complete", "Failed", "Suspended", "FailureTarget",
                                          "SuccessCriteriaMet"};
  for (const std::string& name : known) {
    if (strcasecmp(name.c_str(), o.condition.c_str()) == 0) o.condition = name;
  }
  if (o.condition.empty() ||
      (strcasecmp(value.c_str(), "true") != 0 && strcasecmp(value.c_str(), "false") != 0)) {
    return Usage{"--for: `" + text + "`: must be condition=NAME or condition=NAME=false"};
  }
  if (std::find(known.begin(), known.end(), o.condition) == known.end())
    return Usage{"--for: `" + o.condition + "`: a job has no such condition" +
                 did_you_mean(o.condition, known)};
  o.condition_value = strcasecmp(value.c_str(), "true") == 0;
  return std::nullopt;
}

Verb add_wait(CLI::App& root) {
  struct Words {
    WaitOptions o;
    std::vector<std::string> what;
    std::string until, timeout;
  };
  auto w = std::make_shared<Words>();
  Verb verb = new_verb(root, "Jobs", "wait", "until jobs are Complete or Failed");
  CLI::App* app = verb.app;
  app->add_option("what", w->what, "the jobs")->type_name("job/J...")->required();
  app->add_option("--for", w->until,
                  "condition=Complete, condition=Failed, delete (default: Complete or Failed)")
      ->type_name("WHAT");
  app->add_option("--timeout", w->timeout, "not longer than this (default: for ever)")
      ->type_name("T");
  add_target(verb);
  app->footer(
      "Examples:\n  muster wait job/sweep\n  muster wait job/sweep job/train --timeout 2h\n"
      "  muster wait job/sweep --for=condition=Complete --timeout 60s\n"
      "Exit code: 0 what was waited for, 1 one of them Failed, 3 one is gone, 124 --timeout "
      "passed.");
  verb.finish = [w](const Settings&, const Target& target) -> Judged {
    w->o.target = target;
    auto names = job_names(w->what);
    if (auto* wrong = std::get_if<Usage>(&names)) return *wrong;
    w->o.jobs = std::get<std::vector<std::string>>(names);
    if (auto wrong = read_span("--timeout", w->timeout, w->o.timeout_ms)) return *wrong;
    if (auto wrong = read_until(w->until, w->o)) return *wrong;
    return w->o;
  };
  return verb;
}

}  // namespace

std::vector<Verb> show_verbs(CLI::App& root) {
  return {add_get(root), add_describe(root), add_logs(root), add_wait(root)};
}

}  // namespace muster::cli
