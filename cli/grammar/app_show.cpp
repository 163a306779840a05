// The grammar of the verbs that show something (get, describe, explain, why, top, logs, wait), of
// the daemons, and of the verbs about muster itself (config, completion, kubeconfig, version).
#include "base/text/nearest.hpp"
#include "cli/grammar/parser.hpp"
#include "cli/verbs/daemon_options.hpp"
#include "client/connect/objects.hpp"
#include "core/index_set.hpp"

#include <algorithm>
#include <strings.h>

namespace muster::cli {
namespace {

constexpr int64_t kIndexMax = 4294967294;

// Checks that `text` is an index set, such as "3,7-9".
std::optional<Usage> check_set(const std::string& flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto set = core::IndexSet::parse_strict(text, kIndexMax + 1);
  if (!set.ok()) return Usage{flag + ": " + set.error().message + "; write a set like 3,7-9"};
  return std::nullopt;
}

// Reads "attempts job/J"; `what` has both words.
Judged read_attempts(const std::vector<std::string>& what, const GetOptions& get,
                     const std::string& index, bool failed, const Settings& settings,
                     bool headers) {
  AttemptsOptions o;
  o.target = get.target;
  if (what.size() != 2) return Usage{"attempts of which job? muster get attempts job/NAME"};
  auto name = job_name(what[1]);
  if (auto* wrong = std::get_if<Usage>(&name)) return *wrong;
  if (get.watch || get.all_namespaces || !get.selector.empty())
    return Usage{"attempts belong to one job and cannot be watched: omit -w, -A and -l"};
  o.job = std::get<std::string>(name);
  o.index = index;
  o.failed = failed;
  o.output = read_output(settings.text("output"));
  o.headers = headers;
  return o;
}

// "pods", "jobs,pods" or "all", which is jobs and pods, into `o`.
std::optional<Usage> read_kinds(const std::string& text, GetOptions& o) {
  std::vector<Kind> kinds;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(',', from), text.size());
    const std::string word = text.substr(from, end - from);
    from = end + 1;
    const auto kind = parse_kind(word);
    if (word != "all" && !kind) return unknown_kind(word);
    for (const Kind one : kind ? std::vector{*kind} : std::vector{Kind::job, Kind::pod})
      if (std::find(kinds.begin(), kinds.end(), one) == kinds.end()) kinds.push_back(one);
  }
  o.kind = kinds.front();
  o.more.assign(kinds.begin() + 1, kinds.end());
  return std::nullopt;
}

Verb add_get(CLI::App& root) {
  struct Words {
    GetOptions o;
    std::vector<std::string> what;
    std::string index;
    bool failed = false;
    bool no_headers = false;
  };
  auto w = std::make_shared<Words>();
  Verb verb =
      new_verb(root, "Jobs", "get", "List jobs, pods, nodes, events, or the attempts of a job");
  CLI::App* app = verb.app;
  app->add_option("what", w->what,
                  "Kind of object (jobs, pods, nodes, events, configmaps, namespaces; all: jobs "
                  "and pods), and names; "
                  "several kinds as jobs,pods; or attempts job/NAME")
      ->type_name("KIND [NAME...]")
      ->required();
  add_key(verb, *find_key(Section::client, "output"), "-o,--output");
  app->add_option("-l,--selector", w->o.selector, "Label selector, such as a=b,c!=d")
      ->type_name("SELECTOR");
  app->add_flag("-w,--watch", w->o.watch, "Watch for changes after listing");
  app->add_flag("-A,--all-namespaces", w->o.all_namespaces, "List objects of all namespaces");
  app->add_flag("--no-headers", w->no_headers, "Omit the header line");
  app->add_option("--index", w->index, "Show only attempts of these indexes, such as 3,7-9")
      ->type_name("SET");
  app->add_flag("--failed", w->failed, "Show only failed attempts");
  add_target(verb);
  app->footer(
      "Examples:\n  muster get jobs\n  muster get pods -l batch.kubernetes.io/job-name=sweep -o "
      "wide\n  muster get all -A\n  muster get job sweep -w\n  muster get events -w\n"
      "  muster get attempts job/sweep --index 3,7-9 --failed\n"
      "  muster get attempts job/sweep -o tsv > joblog\n"
      "The columns of -o tsv are those of GNU parallel's --joblog, then Index, Attempt, Counted "
      "and "
      "Pod. Seq is the index plus 1.");
  verb.finish = [w](const Settings& settings, const Target& target) -> Judged {
    GetOptions& o = w->o;
    o.target = target;
    const std::string first = w->what.front();
    if (auto wrong = check_set("--index", w->index)) return *wrong;
    if (first == "attempts" || first == "attempt")
      return read_attempts(w->what, o, w->index, w->failed, settings, !w->no_headers);
    if (!w->index.empty() || w->failed)
      return Usage{"--index and --failed apply to attempts only: muster get attempts job/NAME"};
    const size_t slash = first.find('/');
    if (auto wrong = read_kinds(first.substr(0, slash), o)) return *wrong;
    const std::optional<Kind> kind = o.kind;
    if (!o.more.empty() && (slash != std::string::npos || w->what.size() > 1 || o.watch))
      return Usage{"`" + first.substr(0, slash) + "`: omit names and -w to list several kinds"};
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
    if (o.watch && o.names.size() > 1)
      return Usage{"-w watches all objects or one: omit the names, or give one"};
    if (o.all_namespaces && !o.names.empty()) return Usage{"-A lists all objects: omit the name"};
    if (!o.selector.empty() && !o.names.empty())
      return Usage{"-l selects from all objects: omit the name"};
    o.output = read_output(settings.text("output"));
    if (o.output == Output::tsv)
      return Usage{"-o tsv is the joblog of one job: muster get attempts job/NAME -o tsv"};
    o.headers = !w->no_headers;
    return o;
  };
  return verb;
}

Verb add_describe(CLI::App& root) {
  auto o = std::make_shared<DescribeOptions>();
  auto what = std::make_shared<std::vector<std::string>>();
  Verb verb = new_verb(root, "Jobs", "describe",
                       "Show details of a job, pod or node, with its latest failures");
  verb.app
      ->add_option("what", *what,
                   "Kind of object (job, pod or node), and its name; a name alone is a job's, or "
                   "else a pod's or a node's")
      ->type_name("[KIND] NAME")
      ->required();
  add_target(verb);
  verb.app->footer(
      "Examples:\n  muster describe job sweep\n  muster describe job/sweep\n"
      "  muster describe node node03\n  muster describe sweep");
  verb.finish = [o, what](const Settings&, const Target& target) -> Judged {
    o->target = target;
    std::vector<std::string> words = *what;
    if (words.size() == 1 && words.front().find('/') != std::string::npos) {
      const size_t slash = words.front().find('/');
      words = {words.front().substr(0, slash), words.front().substr(slash + 1)};
    }
    const auto kind = parse_kind(words.front());
    if (!kind && words.size() == 1) {
      o->name = words.front();
      return *o;
    }
    if (kind != Kind::job && kind != Kind::pod && kind != Kind::node) {
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

// "job", "job.spec.template": a kind and fields.
std::optional<Usage> read_fields(const std::string& text, ExplainOptions& o) {
  size_t end = std::min(text.find('.'), text.size());
  for (const char* name : {"job.batch", "jobs.batch"})
    if ((text + ".").starts_with(std::string(name) + ".")) end = std::string(name).size();
  const auto kind = parse_kind(text.substr(0, end));
  if (!kind) return unknown_kind(text.substr(0, end));
  o.kind = *kind;
  while (end < text.size()) {
    const size_t from = end + 1;
    end = std::min(text.find('.', from), text.size());
    if (end == from) return Usage{"`" + text + "`: a field has no name"};
    o.path.push_back(text.substr(from, end - from));
  }
  return std::nullopt;
}

Verb add_explain(CLI::App& root) {
  auto o = std::make_shared<ExplainOptions>();
  auto what = std::make_shared<std::string>();
  Verb verb = new_verb(root, "Jobs", "explain", "Describe the fields of jobs and other objects");
  verb.app->add_option("what", *what, "Kind of object, and a field of it")
      ->type_name("KIND[.FIELD...]")
      ->required();
  verb.app->add_flag("--recursive", o->recursive, "List all fields below it, without descriptions");
  add_target(verb);
  verb.app->footer(
      "Examples:\n  muster explain job.spec\n  muster explain job.spec.podFailurePolicy.rules\n"
      "  muster explain job --recursive\n"
      "The text says what the coordinator does with a field; docs/job.md has the same.");
  verb.finish = [o, what](const Settings&, const Target& target) -> Judged {
    o->target = target;
    if (auto wrong = read_fields(*what, *o)) return *wrong;
    return *o;
  };
  return verb;
}

Verb add_top(CLI::App& root) {
  auto o = std::make_shared<TopOptions>();
  auto what = std::make_shared<std::string>("nodes");
  auto no_headers = std::make_shared<bool>(false);
  Verb verb = new_verb(root, "Jobs", "top", "Show the nodes or jobs that run the most pods");
  verb.app->add_option("what", *what, "nodes (the default) or jobs")->type_name("nodes | jobs");
  verb.app->add_flag("-A,--all-namespaces", o->all_namespaces, "Jobs of all namespaces");
  verb.app->add_flag("--no-headers", *no_headers, "Omit the header line");
  add_target(verb);
  verb.app->footer(
      "Examples:\n  muster top nodes\n  muster top jobs -A\n"
      "WAITING pods are at the node and start when a slot is free there. CPU and MEMORY are what "
      "the node has: what pods use is not measured.");
  verb.finish = [o, what, no_headers](const Settings&, const Target& target) -> Judged {
    o->target = target;
    o->headers = !*no_headers;
    const auto kind = parse_kind(*what);
    if (kind != Kind::node && kind != Kind::job)
      return Usage{"`" + *what + "`: must be nodes or jobs: what pods use is not measured"};
    o->kind = *kind;
    return *o;
  };
  return verb;
}

Verb add_logs(CLI::App& root) {
  auto o = std::make_shared<LogsOptions>();
  auto what = std::make_shared<std::string>();
  auto prefixed = std::make_shared<bool>(false);
  Verb verb = new_verb(root, "Jobs", "logs", "Print the output of pods, running or finished");
  CLI::App* app = verb.app;
  app->add_option("what", *what, "Pod or job")->type_name("POD | job/J");
  app->add_option("-l,--selector", o->selector,
                  "All pods with these labels, such as a=b,c!=d; without --tail, 10 lines of each")
      ->type_name("SELECTOR");
  auto* index = app->add_option("--index", o->indexes,
                                "Indexes of the job, such as 3,7-9; with several, lines are "
                                "prefixed with index and attempt")
                    ->type_name("SET");
  app->add_flag("--failed", o->failed, "Print the last lines of each failed index of the job")
      ->excludes(index);
  app->add_option("--attempt", o->attempt, "Attempt of the index, from 0 (default: the latest)")
      ->type_name("K")
      ->check(whole(0, kIndexMax))
      ->needs(index);
  app->add_flag("-f,--follow", o->follow,
                "Print output as it arrives, until the pod, or the job with all its attempts, is "
                "over");
  auto* prefix =
      app->add_flag("--prefix", *prefixed,
                    "Prefix each line with its pod; --prefix=false: never (default: with several)");
  app->add_option("--max-log-requests", o->live_max,
                  "With -f, pods to follow at a time; others are printed when they end (default "
                  "16)")
      ->type_name("N")
      ->check(whole(1, 1'000));
  app->add_option("--tail", o->tail, "Number of most recent lines to print (default: all)")
      ->type_name("N")
      ->check(whole(0, std::numeric_limits<int32_t>::max()));
  add_target(verb);
  app->footer(
      "Examples:\n  muster logs job/sweep --failed\n  muster logs job/sweep --index 3,7-9\n  "
      "muster logs job/sweep --index 7 --attempt 0 "
      "--tail 20\n  muster logs -f sweep-7-x2bqd\n  muster logs -f job/sweep\n"
      "  muster logs -f -l app=train --tail 1");
  verb.finish = [o, what, prefixed, prefix](const Settings&, const Target& target) -> Judged {
    o->target = target;
    if (prefix->count() > 0) o->prefix = *prefixed;
    if (o->follow && o->failed)
      return Usage{"-f and --failed are mutually exclusive: --failed prints the end of each log"};
    if (!o->selector.empty()) {
      if (!what->empty() || !o->indexes.empty() || o->failed)
        return Usage{"-l selects from all pods: omit the name, --index and --failed"};
      return *o;
    }
    if (what->empty()) return Usage{"needs POD, job/J or -l SELECTOR"};
    const size_t slash = what->find('/');
    const auto kind = slash == std::string::npos
                          ? Kind::pod
                          : parse_kind(what->substr(0, slash)).value_or(Kind::node);
    const std::string name = slash == std::string::npos ? *what : what->substr(slash + 1);
    if ((kind != Kind::pod && kind != Kind::job) || name.empty())
      return Usage{"`" + *what + "`: must be POD, pod/POD or job/J"};
    if (kind == Kind::pod && (!o->indexes.empty() || o->failed))
      return Usage{"--index and --failed apply to jobs only: muster logs job/J --index 3,7-9"};
    if (auto wrong = check_set("--index", o->indexes)) return *wrong;
    (kind == Kind::pod ? o->pod : o->job) = name;
    return *o;
  };
  return verb;
}

// Reads "condition=Complete", "delete" and the like into `o`.
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
  Verb verb = new_verb(root, "Jobs", "wait", "Wait until jobs are Complete or Failed");
  CLI::App* app = verb.app;
  app->add_option("what", w->what, "Jobs to wait for")->type_name("job/J...")->required();
  app->add_option("--for", w->until,
                  "condition=NAME, condition=NAME=false or delete (default: Complete or Failed)")
      ->type_name("WHAT");
  app->add_option("--timeout", w->timeout,
                  "Time to wait before giving up, such as 2h (default: no limit)")
      ->type_name("T");
  add_target(verb);
  app->footer(
      "Examples:\n  muster wait job/sweep\n  muster wait job/sweep job/train --timeout 2h\n"
      "  muster wait job/sweep --for=condition=Complete --timeout 60s\n"
      "Exit codes: 0 condition met, 1 a job Failed, 3 a job was deleted, 124 --timeout expired.");
  verb.finish = [w](const Settings&, const Target& target) -> Judged {
    w->o.target = target;
    auto names = job_names(w->what);
    if (auto* wrong = std::get_if<Usage>(&names)) return *wrong;
    w->o.jobs = std::get<std::vector<std::string>>(names);
    if (auto wrong = read_limit("--timeout", w->timeout, w->o.timeout_ms)) return *wrong;
    if (auto wrong = read_until(w->until, w->o)) return *wrong;
    return w->o;
  };
  return verb;
}

Verb add_why(CLI::App& root) {
  auto o = std::make_shared<WhyOptions>();
  auto what = std::make_shared<std::string>();
  Verb verb = new_verb(root, "Jobs", "why",
                       "Explain what a job or an index is waiting for, or how it ended");
  verb.app->add_option("what", *what, "Job, or one index of it")
      ->type_name("job/J[/INDEX]")
      ->required();
  Key form = *find_key(Section::client, "output");
  form.words = {"table", "json", "yaml"};
  form.help = "Output format: table, json or yaml";
  add_key(verb, form, "-o,--output");
  add_target(verb);
  verb.app->footer("Examples:\n  muster why job/sweep\n  muster why job/sweep/950");
  verb.finish = [o, what](const Settings& settings, const Target& target) -> Judged {
    o->target = target;
    // The configuration may name a form that is for other verbs.
    const Output wanted = read_output(settings.text("output"));
    if (wanted == Output::json || wanted == Output::yaml) o->output = wanted;
    std::string word = *what;
    const size_t last = word.rfind('/');
    const bool kind_first = parse_kind(word.substr(0, word.find('/'))).has_value();
    if (last != std::string::npos && (!kind_first || word.find('/') != last)) {
      auto set = core::IndexSet::parse_strict(word.substr(last + 1), kIndexMax + 1);
      if (!set.ok() || set->size() != 1)
        return Usage{"`" + word + "`: must be job/J or job/J/INDEX, one index"};
      o->index = static_cast<int64_t>(set->lowest());
      word.resize(last);
    }
    auto name = job_name(word);
    if (auto* wrong = std::get_if<Usage>(&name)) return *wrong;
    o->job = std::get<std::string>(name);
    return *o;
  };
  return verb;
}

Verb add_coordinator(CLI::App& root) {
  Verb verb = new_verb(root, "Daemons", "coordinator", "Run the coordinator");
  verb.section = Section::coordinator;
  for (const Key& key : keys_of(Section::coordinator)) add_key(verb, key);
  verb.app
      ->add_option("--config", *verb.given_file,
                   "YAML file with these flags as keys (data-dir: D); flags take precedence")
      ->type_name("F.yaml");
  verb.app->footer(
      "Example:\n  muster coordinator --data-dir /var/lib/muster\n"
      "Once it is serving, D/endpoints.json has its addresses and pid.");
  verb.finish = [](const Settings& settings, const Target&) -> Judged {
    auto options = coordinator_options(settings);
    if (!options) return Usage{options.error().message};
    return *options;
  };
  return verb;
}

Verb add_agent(CLI::App& root) {
  Verb verb = new_verb(root, "Daemons", "agent", "Run the node agent");
  verb.section = Section::agent;
  for (const Key& key : keys_of(Section::agent)) add_key(verb, key);
  verb.app
      ->add_option("--config", *verb.given_file,
                   "YAML file with these flags as keys (work-dir: D); flags take precedence")
      ->type_name("F.yaml");
  verb.app->footer(
      "Examples:\n  muster agent --coordinator 127.0.0.1:7118 --work-dir /var/lib/muster-agent "
      "--slots 8 --label disk=ssd\n"
      "  muster agent --hollow --slots 1000 --hollow-duration 100ms\n"
      "SIGTERM drains: pods get SIGTERM and their grace period. SIGUSR2 exits at once; pods keep "
      "running.");
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
  Verb verb =
      new_verb(root, "About", "config", "Show effective settings and where each comes from");
  verb.app
      ->add_option("what", w->what,
                   "view (settings and their origin) or path (configuration files)")
      ->type_name("view | path")
      ->check(one_of({"view", "path"}))
      ->required();
  verb.app->add_option("-o,--output", w->output, "Output format: wide, json or yaml")
      ->check(one_of({"wide", "json", "yaml"}))
      ->type_name("FORM");
  add_target(verb);
  verb.app->footer(
      "Examples:\n  muster config view\n  muster config view -o yaml\n  muster config path\n"
      "Order of precedence: flag, MUSTER_* variable, user file, system file, default.");
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
  Verb verb = new_verb(root, "About", "completion", "Generate a shell completion script");
  verb.app->add_option("shell", o->shell, "Shell to generate the script for")
      ->type_name("bash | zsh | fish")
      ->check(one_of({"bash", "zsh", "fish"}))
      ->required();
  verb.app->footer(
      "Examples:\n  source <(muster completion bash)      # in this shell; add it to ~/.bashrc to "
      "keep it\n"
      "  muster completion fish > ~/.config/fish/completions/muster.fish\n"
      "  muster completion zsh > ~/.zfunc/_muster   # with ~/.zfunc in fpath");
  verb.configured = false;
  verb.finish = [o](const Settings&, const Target&) -> Judged { return *o; };
  return verb;
}

Verb add_kubeconfig(CLI::App& root) {
  auto o = std::make_shared<KubeconfigOptions>();
  Verb verb = new_verb(root, "About", "kubeconfig", "Print a kubeconfig for kubectl");
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
  Verb verb = new_verb(root, "About", "version",
                       "Show the versions of this executable and of the coordinator");
  verb.app->add_flag("--client", w->o.client_only, "Show only the version of this executable");
  verb.app->add_option("-o,--output", w->output, "Output format: wide, json or yaml")
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

}  // namespace

std::vector<Verb> show_verbs(CLI::App& root) {
  return {add_get(root),  add_describe(root), add_explain(root),     add_why(root),  add_top(root),
          add_logs(root), add_wait(root),     add_coordinator(root), add_agent(root)};
}

std::vector<Verb> about_verbs(CLI::App& root, const Config& config) {
  return {add_config(root, config), add_completion(root), add_kubeconfig(root), add_version(root)};
}

}  // namespace muster::cli
