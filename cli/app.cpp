#include "cli/app.hpp"

#include "base/version.hpp"
#include "cli/coordinator_config.hpp"
#include "cli/exit_codes.hpp"
#include "cli/objects.hpp"
#include "cli/text.hpp"
#include "core/spec/duration.hpp"
#include "core/spec/quantity.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>

namespace muster::cli {
namespace {

constexpr uint32_t kDevicesMax = 100'000;  // of one name; more is a slip

// What is wrong with words that parse; becomes one line and exit code 2.
struct Usage {
  std::string message;
};
using Judged = std::variant<Options, Usage>;

// A verb: declares its flags, and afterwards makes its options of them.
struct Verb {
  CLI::App* app = nullptr;
  std::function<Judged()> finish;
};

const std::vector<std::string> kLogLevels = {"trace", "debug", "info", "warn", "error", "off"};

void add_target(CLI::App& app, Target& target, const std::string& ns_flags = "-n,--namespace") {
  app.add_option("--api", target.api,
                 "the coordinator, HOST:PORT (else MUSTER_API, ~/.config/muster/config.yaml, "
                 "127.0.0.1:7117)")
      ->type_name("ADDR");
  if (!ns_flags.empty())
    app.add_option(ns_flags, target.ns, "namespace")->type_name("NS")->capture_default_str();
}

void add_log_level(CLI::App& app, std::string& level) {
  app.add_option("--log-level", level, "trace, debug, info, warn, error or off")
      ->check(CLI::IsMember(kLogLevels))
      ->type_name("LEVEL")
      ->capture_default_str();
}

// "job/J" or "J" -> "J"; another kind before the slash is refused.
std::variant<std::string, Usage> job_name(const std::string& word) {
  const size_t slash = word.find('/');
  if (slash == std::string::npos) return word;
  const auto kind = parse_kind(word.substr(0, slash));
  if (kind != Kind::job || slash + 1 == word.size())
    return Usage{"`" + word + "`: must be job/NAME"};
  return word.substr(slash + 1);
}

// "job/J", "job J" or "J".
std::variant<std::string, Usage> one_job(std::vector<std::string> words) {
  if (words.size() == 2 && parse_kind(words.front()) == Kind::job) words.erase(words.begin());
  if (words.size() != 1) return Usage{"must name one job: job/NAME"};
  return job_name(words.front());
}

std::optional<Usage> read_span(const std::string& flag, const std::string& text, Millis& target) {
  if (text.empty()) return std::nullopt;
  auto span = core::parse_duration(text);
  if (!span) return Usage{flag + ": " + span.error().message};
  target = *span;
  return std::nullopt;
}

std::optional<Output> read_output(const std::string& text) {
  if (text.empty()) return Output::table;
  if (text == "wide") return Output::wide;
  if (text == "name") return Output::name;
  if (text == "json") return Output::json;
  if (text == "yaml") return Output::yaml;
  return std::nullopt;
}

Usage unknown_kind(const std::string& word) {
  return {"`" + word + "`: no such kind" + did_you_mean(word, kind_words()) +
          " (there are jobs, pods, nodes, events)"};
}

Verb add_run(CLI::App& root, const std::vector<std::string>& tail) {
  struct Words {
    RunOptions o;
    std::vector<std::string> rest;
    std::string timeout;
    bool counted = false;
  };
  auto w = std::make_shared<Words>();
  CLI::App* app = root.add_subcommand("run", "run one job to its end, here or on a coordinator");
  app->add_option("job", w->rest, "the manifest, or after `--` a command")
      ->type_name("JOB.yaml | -- CMD ARG...");
  app->add_option("-f,--file", w->o.file, "the manifest (- is stdin)")->type_name("JOB.yaml");
  auto* n = app->add_option("-n,--completions", w->o.completions,
                            "run CMD this often, JOB_COMPLETION_INDEX 0 to N-1")
                ->type_name("N")
                ->check(CLI::PositiveNumber);
  app->add_option("-j,--parallelism", w->o.parallelism, "so many at a time (default: one a slot)")
      ->type_name("P")
      ->check(CLI::PositiveNumber)
      ->needs(n);
  app->add_option("--name", w->o.name, "the job's name (default: of the command)")
      ->type_name("J")
      ->needs(n);
  app->add_option("--retries,--backoff-limit-per-index", w->o.retries,
                  "how often an index that failed is tried again; an index that "
                  "has none left fails alone, the others go on")
      ->type_name("R")
      ->check(CLI::NonNegativeNumber)
      ->needs(n);
  app->add_option("--slots", w->o.slots, "pods at a time on this machine (default: its CPUs)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  app->add_option(
         "--data-dir", w->o.data_dir,
         "keep state and logs in D; run again with the same D after any crash and it goes on")
      ->type_name("D");
  app->add_flag("--keep", w->o.keep,
                "without --data-dir: keep state and logs also when the job is Complete");
  app->add_option("--timeout", w->timeout, "stop waiting after this long (10m, 1h30m)")
      ->type_name("T");
  add_log_level(*app, w->o.log_level);
  add_target(*app, w->o.target, "--namespace");
  app->footer(
      "Examples:\n  muster run job.yaml\n  muster run -n 20 -j 4 --retries 2 -- sh -c 'echo "
      "$JOB_COMPLETION_INDEX'\n"
      "  muster run --data-dir ./sweep job.yaml      # again after a crash: it goes on\n"
      "Exit code: 0 Complete, 1 Failed, 124 --timeout passed, 130 interrupted.");
  return {
      app, [w, n, tail]() -> Judged {
        RunOptions& o = w->o;
        if (auto wrong = read_span("--timeout", w->timeout, o.timeout_ms)) return *wrong;
        if (n->count() > 0) {
          if (!tail.empty() && !w->rest.empty()) {
            return Usage{"`" + w->rest.front() + "` before `--`: the whole command comes after it"};
          }
          o.command = w->rest;
          o.command.insert(o.command.end(), tail.begin(), tail.end());
          if (!o.file.empty()) return Usage{"-n runs a command, -f a manifest: only one of them"};
          if (o.command.empty()) return Usage{"-n needs a command: muster run -n 10 -- CMD ARG..."};
          return o;
        }
        if (!tail.empty()) return Usage{"a command needs -n: muster run -n 10 -- CMD ARG..."};
        if (w->rest.size() + (o.file.empty() ? 0 : 1) != 1)
          return Usage{"needs one manifest, JOB.yaml, or -n N -- CMD"};
        if (o.file.empty()) o.file = w->rest.front();
        return o;
      }};
}

Verb add_coordinator(CLI::App& root) {
  auto values = std::make_shared<Words>();
  auto config = std::make_shared<std::string>();
  auto insecure = std::make_shared<bool>(false);
  CLI::App* app =
      root.add_subcommand("coordinator", "the daemon that decides: API, jobs, nodes, state");
  const auto word = [&](const std::string& name, const std::string& what, const std::string& type) {
    return app
        ->add_option_function<std::string>(
            "--" + name, [values, name](const std::string& v) { (*values)[name] = v; }, what)
        ->type_name(type);
  };
  word("data-dir", "where the state lives (made when missing)", "D");
  word("api", "serve HTTP here (127.0.0.1:7117; port 0 picks a free one)", "ADDR:PORT");
  word("listen", "serve agents here (127.0.0.1:7118; port 0 picks a free one)", "ADDR:PORT");
  word("pod-failure-backoff-base", "wait this long after an index's first failure, doubling (10s)",
       "T");
  word("pod-failure-backoff-max", "and this long at most (10m)", "T");
  word("node-grace", "an agent silent this long is lost (40s)", "T");
  word("feature-gates",
       "turn features off (all are on): JobBackoffLimitPerIndex, JobSuccessPolicy, "
       "ElasticIndexedJob, JobPodFailurePolicy, JobPodReplacementPolicy, JobManagedBy",
       "NAME=false,...");
  word("log-level", "trace, debug, info, warn, error or off (info)", "LEVEL")
      ->check(CLI::IsMember(kLogLevels));
  app->add_flag("--insecure", *insecure, "serve other addresses than loopback, and other users");
  app->add_option("--config", *config,
                  "a YAML file with these flags as keys (data-dir: D); a flag wins")
      ->type_name("F.yaml");
  app->footer(
      "Example:\n  muster coordinator --data-dir /var/lib/muster\n"
      "When it serves, D/endpoints.json holds its addresses and pid.");
  return {
      app, [=]() -> Judged {
        cli::Words file, flags = *values;
        if (*insecure) flags["insecure"] = "true";
        if (!config->empty()) {
          auto read = read_config(*config);
          if (!read) return Usage{"--config: " + read.error().message};
          file = *read;
        }
        auto options = coordinator_options(flags, file);
        if (!options) return Usage{options.error().message};
        if (std::find(kLogLevels.begin(), kLogLevels.end(), options->log_level) ==
            kLogLevels.end()) {
          return Usage{"--config: log-level: must be one of trace, debug, info, warn, error, off"};
        }
        return *options;
      }};
}

Verb add_agent(CLI::App& root) {
  struct Words {
    AgentOptions o;
    std::string cpu, memory, log_keep, log_max, hollow_duration;
    std::vector<std::string> labels, resources;
  };
  auto w = std::make_shared<Words>();
  w->o.options.coordinator = "127.0.0.1:7118";
  agent::AgentOptions& a = w->o.options;
  CLI::App* app = root.add_subcommand("agent", "the daemon of a node: runs pods as processes");
  app->add_option("--coordinator", a.coordinator, "its address for agents, ADDR:PORT or unix:PATH")
      ->type_name("ADDR")
      ->capture_default_str();
  app->add_option("--name", a.name, "of this node (default: the host's)")->type_name("NODE");
  app->add_option("--slots", a.slots, "pods at a time (default: the CPUs)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  app->add_option("--cpu", w->cpu, "cpu that pods may request, such as 8 or 500m (default: all)")
      ->type_name("Q");
  app->add_option("--memory", w->memory,
                  "memory that pods may request, such as 16Gi (default: all)")
      ->type_name("Q");
  app->add_option(
         "--resource", w->resources,
         "devices that pods may request by name, such as nvidia.com/gpu=4, may be repeated")
      ->type_name("NAME=COUNT")
      ->take_all();
  app->add_option("--label", w->labels, "a label of this node, may be repeated")
      ->type_name("k=v")
      ->take_all();
  app->add_option("--work-dir", a.work_dir, "a directory on a local disk, for this node alone")
      ->type_name("D");
  app->add_option("--log-keep", w->log_keep, "remove pods' logs after this long (7d)")
      ->type_name("T");
  app->add_option("--log-max", w->log_max, "keep at most so many bytes of them, oldest first (10G)")
      ->type_name("Q");
  app->add_flag("--hollow", a.hollow, "start no process: each pod just ends (for scale tests)");
  app->add_option("--hollow-duration", w->hollow_duration, "after this long (0s)")->type_name("T");
  app->add_option("--hollow-exit-code", a.hollow_exit_code, "with this exit code")
      ->type_name("N")
      ->check(CLI::Range(0, 255))
      ->capture_default_str();
  add_log_level(*app, w->o.log_level);
  app->footer(
      "Examples:\n  muster agent --coordinator 127.0.0.1:7118 --work-dir /var/lib/muster-agent "
      "--slots 8 --label disk=ssd\n"
      "  muster agent --hollow --slots 1000 --hollow-duration 100ms\n"
      "SIGTERM drains: pods get SIGTERM and their grace. SIGUSR2 leaves at once, the pods stay.");
  return {
      app, [w]() -> Judged {
        agent::AgentOptions& a = w->o.options;
        if (auto wrong = read_span("--log-keep", w->log_keep, a.log_keep_ms)) return *wrong;
        if (w->hollow_duration != "0") {
          if (auto wrong = read_span("--hollow-duration", w->hollow_duration, a.hollow_duration_ms))
            return *wrong;
        }
        const auto quantity = [](const char* flag, const std::string& text, int64_t divisor,
                                 uint64_t& target) -> std::optional<Usage> {
          if (text.empty()) return std::nullopt;
          auto milli = core::parse_quantity_milli(text);
          if (!milli || *milli <= 0)
            return Usage{std::string(flag) + ": `" + text +
                         "` is no positive quantity, such as 4, 500m or 16Gi"};
          target = static_cast<uint64_t>(*milli / divisor);
          return std::nullopt;
        };
        if (auto wrong = quantity("--cpu", w->cpu, 1, a.cpu_millis)) return *wrong;
        if (auto wrong = quantity("--memory", w->memory, 1000, a.memory_bytes)) return *wrong;
        if (auto wrong = quantity("--log-max", w->log_max, 1000, a.log_max_bytes)) return *wrong;
        for (const std::string& resource : w->resources) {
          const size_t equals = resource.find('=');
          const std::string name = resource.substr(0, equals);
          const std::string count = equals == std::string::npos ? "" : resource.substr(equals + 1);
          const char* end = count.data() + count.size();
          uint32_t number = 0;
          const auto read = std::from_chars(count.data(), end, number);
          if (name.find('/') == std::string::npos || read.ec != std::errc{} || read.ptr != end ||
              number == 0 || number > kDevicesMax)
            return Usage{"--resource: `" + resource +
                         "`: must be NAME=COUNT, such as nvidia.com/gpu=4: a name with a `/` and a "
                         "whole number of at least 1"};
          a.resources[name] = number;
        }
        for (const std::string& label : w->labels) {
          const size_t equals = label.find('=');
          if (equals == std::string::npos || equals == 0)
            return Usage{"--label: `" + label + "`: must be KEY=VALUE"};
          a.labels[label.substr(0, equals)] = label.substr(equals + 1);
        }
        if (a.work_dir.empty() && !a.hollow)
          return Usage{"--work-dir D is needed: a directory on a local disk, for this node alone"};
        return w->o;
      }};
}

Verb add_create(CLI::App& root) {
  struct Words {
    CreateOptions o;
    std::string output, dry_run;
  };
  auto w = std::make_shared<Words>();
  CLI::App* app = root.add_subcommand("create", "create jobs from manifests");
  app->add_option("-f,--file", w->o.files, "a manifest, - is stdin; may hold several documents")
      ->type_name("F")
      ->required()
      ->take_all();
  app->add_option("-o,--output", w->output, "name, json or yaml")
      ->check(CLI::IsMember({"name", "json", "yaml"}))
      ->type_name("FORM");
  app->add_flag("--dry-run", w->o.dry_run, "let the coordinator judge it and store nothing");
  add_target(*app, w->o.target);
  app->footer("Examples:\n  muster create -f job.yaml\n  cat *.yaml | muster create -f -");
  return {app, [w, app]() -> Judged {
            w->o.output = *read_output(w->output);
            w->o.ns_given = app->count("--namespace") > 0;
            return w->o;
          }};
}

Verb add_get(CLI::App& root) {
  struct Words {
    GetOptions o;
    std::vector<std::string> what;
    std::string output;
    bool no_headers = false;
  };
  auto w = std::make_shared<Words>();
  CLI::App* app = root.add_subcommand("get", "list jobs, pods, nodes or events");
  app->add_option("what", w->what, "jobs, pods, nodes or events; names; or KIND/NAME")
      ->type_name("KIND [NAME]")
      ->required();
  app->add_option("-o,--output", w->output, "wide, name, json or yaml")
      ->check(CLI::IsMember({"wide", "name", "json", "yaml"}))
      ->type_name("FORM");
  app->add_option("-l,--selector", w->o.selector, "only those with these labels (a=b,c!=d)")
      ->type_name("SELECTOR");
  app->add_flag("-w,--watch", w->o.watch, "go on with what becomes of them");
  app->add_flag("-A,--all-namespaces", w->o.all_namespaces, "of all namespaces");
  app->add_flag("--no-headers", w->no_headers, "no header line");
  add_target(*app, w->o.target);
  app->footer(
      "Examples:\n  muster get jobs\n  muster get pods -l batch.kubernetes.io/job-name=sweep -o "
      "wide\n  muster get job sweep -w");
  return {app, [w]() -> Judged {
            GetOptions& o = w->o;
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
              for (const std::string& word : w->what)
                o.names.push_back(word.substr(word.find('/') + 1));
            }
            if (o.watch && o.names.size() > 1) return Usage{"-w watches one name or all"};
            if (o.all_namespaces && !o.names.empty())
              return Usage{"-A lists all: it takes no name"};
            if (!o.selector.empty() && !o.names.empty())
              return Usage{"-l selects from all: it takes no name"};
            o.output = *read_output(w->output);
            o.headers = !w->no_headers;
            return o;
          }};
}

Verb add_describe(CLI::App& root) {
  auto o = std::make_shared<DescribeOptions>();
  auto what = std::make_shared<std::vector<std::string>>();
  CLI::App* app = root.add_subcommand("describe", "what a person needs when something failed");
  app->add_option("what", *what, "job, pod or node, and its name")
      ->type_name("KIND NAME")
      ->required();
  add_target(*app, o->target);
  app->footer("Examples:\n  muster describe job sweep\n  muster describe node node03");
  return {app, [o, what]() -> Judged {
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
          }};
}

Verb add_logs(CLI::App& root) {
  auto o = std::make_shared<LogsOptions>();
  auto what = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand("logs", "what a pod wrote, also after its end");
  app->add_option("what", *what, "a pod, or a job with --index")
      ->type_name("POD | job/J")
      ->required();
  auto* index = app->add_option("--index", o->index, "of the job: the pod of this index")
                    ->type_name("I")
                    ->check(CLI::Range(int64_t{0}, int64_t{4294967294}));
  app->add_option("--attempt", o->attempt, "its attempt, counted from 0 (default: the newest)")
      ->type_name("K")
      ->check(CLI::Range(int64_t{0}, int64_t{4294967294}))
      ->needs(index);
  app->add_flag("-f,--follow", o->follow, "go on until the pod has ended");
  app->add_option("--tail", o->tail, "only so many last lines")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  add_target(*app, o->target);
  app->footer(
      "Examples:\n  muster logs job/sweep --index 7\n  muster logs job/sweep --index 7 --attempt 0 "
      "--tail 20\n  muster logs -f sweep-7-x2bqd");
  return {app, [o, what]() -> Judged {
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
          }};
}

Verb add_wait(CLI::App& root) {
  struct Words {
    WaitOptions o;
    std::vector<std::string> what;
    std::string until, timeout;
  };
  auto w = std::make_shared<Words>();
  CLI::App* app = root.add_subcommand("wait", "until a job is Complete or Failed");
  app->add_option("what", w->what, "the job")->type_name("job/J")->required();
  app->add_option("--for", w->until,
                  "condition=Complete, condition=Failed, delete (default: Complete or Failed)")
      ->type_name("WHAT");
  app->add_option("--timeout", w->timeout, "not longer than this (default: for ever)")
      ->type_name("T");
  add_target(*app, w->o.target);
  app->footer(
      "Examples:\n  muster wait job/sweep\n  muster wait job/sweep --for=condition=Complete "
      "--timeout 60s\n"
      "Exit code: 0 what was waited for, 1 it Failed, 124 --timeout passed.");
  return {
      app, [w]() -> Judged {
        auto name = one_job(w->what);
        if (auto* wrong = std::get_if<Usage>(&name)) return *wrong;
        w->o.job = std::get<std::string>(name);
        if (auto wrong = read_span("--timeout", w->timeout, w->o.timeout_ms)) return *wrong;
        constexpr std::string_view kCondition = "condition=";
        std::string until = w->until;
        if (until == "delete") {
          w->o.deleted = true;
        } else if (until.rfind(kCondition, 0) == 0) {
          until.erase(0, kCondition.size());
          const size_t equals = until.find('=');
          const std::string value = equals == std::string::npos ? "true" : until.substr(equals + 1);
          w->o.condition = until.substr(0, equals);
          for (const char* known :
               {"Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
            if (strcasecmp(known, w->o.condition.c_str()) == 0) w->o.condition = known;
          }
          if (w->o.condition.empty() ||
              (strcasecmp(value.c_str(), "true") != 0 && strcasecmp(value.c_str(), "false") != 0)) {
            return Usage{"--for: `" + w->until +
                         "`: must be condition=NAME or condition=NAME=false"};
          }
          w->o.condition_value = strcasecmp(value.c_str(), "true") == 0;
        } else if (!until.empty()) {
          return Usage{"--for: `" + until +
                       "`: must be condition=Complete, condition=Failed or delete"};
        }
        return w->o;
      }};
}

Verb add_change(CLI::App& root, ChangeOptions::What change, const char* name, const char* help,
                const char* example) {
  auto o = std::make_shared<ChangeOptions>();
  o->what = change;
  const bool node =
      change == ChangeOptions::What::cordon || change == ChangeOptions::What::uncordon;
  auto what = std::make_shared<std::vector<std::string>>();
  CLI::App* app = root.add_subcommand(name, help);
  app->add_option("what", *what, node ? "nodes" : "jobs, as job/NAME or NAME")
      ->type_name(node ? "NODE..." : "job/NAME...")
      ->required();
  if (change == ChangeOptions::What::scale) {
    app->add_option("--completions", o->completions,
                    "that many indexes, all at a time (elastic: parallelism moves along)")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
    app->add_option("--parallelism,--replicas", o->parallelism, "that many pods at a time")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
  }
  add_target(*app, o->target, node ? "" : "-n,--namespace");
  app->footer(std::string("Example:\n  ") + example);
  return {app, [o, what, node]() -> Judged {
            if (o->what == ChangeOptions::What::scale && !o->completions && !o->parallelism)
              return Usage{"scale to what? --completions N or --parallelism N"};
            for (std::string word : *what) {
              if (node && word.starts_with("node/")) word.erase(0, 5);
              if (node) {
                o->names.push_back(word);
                continue;
              }
              if (word == "job" && what->size() > 1) continue;
              auto job = job_name(word);
              if (auto* wrong = std::get_if<Usage>(&job)) return *wrong;
              o->names.push_back(std::get<std::string>(job));
            }
            return *o;
          }};
}

Verb add_drain(CLI::App& root) {
  struct Words {
    DrainOptions o;
    std::string deadline;
  };
  auto w = std::make_shared<Words>();
  CLI::App* app = root.add_subcommand(
      "drain", "cordon a node and wait for what runs there; evict it with --now or --deadline");
  app->add_option("node", w->o.node, "the node")->type_name("NODE")->required();
  app->add_flag("--now", w->o.now, "evict at once: SIGTERM, the grace, and elsewhere again");
  app->add_option("--deadline", w->deadline, "evict what still runs after this time")
      ->type_name("T");
  app->add_option("--api", w->o.api, "the coordinator, HOST:PORT")->type_name("ADDR");
  app->footer("Examples:\n  muster drain node-a\n  muster drain node-a --deadline 2h");
  return {app, [w]() -> Judged {
            if (w->o.node.starts_with("node/")) w->o.node.erase(0, 5);
            if (auto wrong = read_span("--deadline", w->deadline, w->o.deadline_ms)) return *wrong;
            return w->o;
          }};
}

Verb add_apply(CLI::App& root) {
  auto o = std::make_shared<ApplyOptions>();
  CLI::App* app =
      root.add_subcommand("apply", "create jobs, or change them to what their manifests say");
  app->add_option("-f,--filename", o->files, "a manifest, - for stdin; again for more")
      ->type_name("F")
      ->required();
  add_target(*app, o->target);
  app->footer("Example:\n  muster apply -f sweep.yaml");
  return {app, [o]() -> Judged { return *o; }};
}

Verb add_delete(CLI::App& root) {
  auto o = std::make_shared<DeleteOptions>();
  auto what = std::make_shared<std::vector<std::string>>();
  CLI::App* app =
      root.add_subcommand("delete", "delete jobs; their pods get SIGTERM and their grace");
  app->add_option("what", *what, "job and names, or job/NAME")
      ->type_name("job NAME...")
      ->required();
  add_target(*app, o->target);
  app->footer("Examples:\n  muster delete job sweep\n  muster delete job/sweep job/train");
  return {app, [o, what]() -> Judged {
            std::vector<std::string> words = *what;
            if (words.front().find('/') == std::string::npos) {
              if (parse_kind(words.front()) != Kind::job)
                return Usage{"`" + words.front() +
                             "`: only jobs can be deleted: muster delete job NAME"};
              words.erase(words.begin());
              if (words.empty()) return Usage{"which job? muster delete job NAME"};
            }
            for (const std::string& word : words) {
              auto name = job_name(word);
              if (auto* wrong = std::get_if<Usage>(&name)) return *wrong;
              o->jobs.push_back(std::get<std::string>(name));
            }
            return *o;
          }};
}

Verb add_version(CLI::App& root) {
  auto o = std::make_shared<VersionOptions>();
  CLI::App* app = root.add_subcommand("version", "of this executable and of the coordinator");
  app->add_flag("--client", o->client_only, "do not ask the coordinator");
  add_target(*app, o->target, "");
  app->footer("Example:\n  muster version --client");
  return {app, [o]() -> Judged { return *o; }};
}

Parsed usage(const std::string& verb, const std::string& message) {
  const std::string name = verb.empty() ? "muster" : "muster " + verb;
  return {std::nullopt,
          fail(kUsage, (verb.empty() ? "" : verb + ": ") + message + " (see " + name + " --help)")};
}

// The first word that is no flag: the verb that was meant, known or not.
std::string meant_verb(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] != '-') return argv[i];
  }
  return "";
}

}  // namespace

Parsed parse(int argc, const char* const* argv) {
  // What follows `--` belongs to somebody else's command, dashes and all.
  int own = 0;
  while (own < argc && std::string_view(argv[own]) != "--") ++own;
  const std::vector<std::string> tail(argv + std::min(own + 1, argc), argv + argc);

  CLI::App root(
      "muster runs indexed batch jobs as real processes, with the semantics of a Kubernetes Job.",
      "muster");
  root.footer(
      "A first job:\n  muster run -n 10 -- sh -c 'echo hello $JOB_COMPLETION_INDEX'\n"
      "`muster VERB --help` explains a verb. Exit codes: 0 done, 1 the job Failed, 2 wrong usage, "
      "3 no such object,\n"
      "4 coordinator not reachable, 5 rejected, 124 --timeout passed, 130 interrupted.");
  root.require_subcommand(0, 1);
  root.set_help_flag("-h,--help", "this text");
  using What = ChangeOptions::What;
  const std::vector<Verb> verbs = {
      add_run(root, tail),
      add_coordinator(root),
      add_agent(root),
      add_create(root),
      add_get(root),
      add_describe(root),
      add_logs(root),
      add_wait(root),
      add_delete(root),
      add_change(root, What::suspend, "suspend",
                 "end a job's pods, counted nowhere, until it is resumed",
                 "muster suspend job/sweep"),
      add_change(root, What::resume, "resume", "let a suspended job go on",
                 "muster resume job/sweep"),
      add_change(root, What::scale, "scale", "change how many indexes a job has, or runs at a time",
                 "muster scale job/sweep --completions 200"),
      add_change(root, What::cordon, "cordon", "give a node no new pods", "muster cordon node-a"),
      add_change(root, What::uncordon, "uncordon", "give a node pods again",
                 "muster uncordon node-a"),
      add_drain(root),
      add_apply(root),
      add_version(root)};
  const std::string meant = meant_verb(own, argv);
  std::vector<std::string> names;
  for (const Verb& verb : verbs) names.push_back(verb.app->get_name());
  const bool known = std::find(names.begin(), names.end(), meant) != names.end();
  if (!meant.empty() && !known)
    return usage("", "`" + meant + "`: no such verb" + did_you_mean(meant, names));
  try {
    root.parse(own, argv);
  } catch (const CLI::CallForHelp& help) {
    return {std::nullopt, root.exit(help, std::cout, std::cerr) == 0 ? kDone : kUsage};
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return usage(meant, message);
  }
  for (const Verb& verb : verbs) {
    if (!verb.app->parsed()) continue;
    if (!tail.empty() && verb.app->get_name() != "run") return usage(meant, "`--` is only for run");
    Judged judged = verb.finish();
    if (auto* wrong = std::get_if<Usage>(&judged)) return usage(meant, wrong->message);
    return {std::get<Options>(std::move(judged)), 0};
  }
  std::cout << root.help();
  return {std::nullopt, kUsage};
}

}  // namespace muster::cli
