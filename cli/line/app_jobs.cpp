// The grammar of the verbs that create and change objects: run, create, apply, retry, delete,
// suspend, resume, scale, cordon, uncordon, drain.
#include "cli/client/objects.hpp"
#include "cli/line/parser.hpp"

#include <filesystem>

namespace muster::cli {
namespace {

constexpr int64_t kNumberMax = std::numeric_limits<int32_t>::max();

RunOptions::Shown shown_of(const std::string& text) {
  using Shown = RunOptions::Shown;
  if (text == "prefix") return Shown::prefixed;
  if (text == "raw") return Shown::raw;
  return text == "none" ? Shown::none : Shown::automatic;
}

std::optional<Usage> read_surroundings(const std::string& names,
                                       const std::vector<std::string>& variables,
                                       const std::string& dir, RunOptions& o) {
  auto wanted = parse_export(names.empty() ? "ALL" : names);
  if (!wanted) return Usage{"--export: " + wanted.error().message};
  o.exported = *wanted;
  for (const std::string& text : variables) {
    auto variable = parse_variable(text);
    if (!variable) return Usage{"--env: " + variable.error().message};
    o.environment[variable->first] = variable->second;
  }
  if (dir.empty()) return std::nullopt;
  std::error_code error;
  o.dir = std::filesystem::absolute(dir, error).lexically_normal().string();
  if (o.dir.size() > 1 && o.dir.ends_with('/')) o.dir.pop_back();
  return std::nullopt;
}

Verb add_run(CLI::App& root, const std::vector<std::string>& tail) {
  struct Words {
    RunOptions o;
    std::vector<std::string> rest, variables;
    std::string timeout, exported, dir, shown;
  };
  auto w = std::make_shared<Words>();
  Verb verb = new_verb(root, "Jobs", "run", "Run a job to completion, here or on a coordinator");
  CLI::App* app = verb.app;
  app->add_option("job", w->rest, "Manifest of the job, or a command after --")
      ->type_name("JOB.yaml | -- CMD ARG...");
  app->add_option("-f,--file", w->o.file, "Manifest of the job (- reads stdin)")
      ->type_name("JOB.yaml");
  auto* n = app->add_option("-n,--completions", w->o.completions,
                            "Number of indexes to run (JOB_COMPLETION_INDEX is 0 to N-1)")
                ->type_name("N")
                ->check(whole(1, kNumberMax));
  app->add_option("-j,--parallelism", w->o.parallelism,
                  "Maximum running at once (default: one per slot)")
      ->type_name("P")
      ->check(whole(1, kNumberMax))
      ->needs(n);
  app->add_option("--name", w->o.name, "Name of the job (default: derived from the command)")
      ->type_name("J")
      ->needs(n);
  app->add_option("--retries,--backoff-limit-per-index", w->o.retries,
                  "Retries per index; an index that exhausts them fails without affecting others "
                  "(default 0)")
      ->type_name("R")
      ->check(whole(0, kNumberMax))
      ->needs(n);
  app->add_option("--export", w->exported,
                  "Environment variables to pass to CMD: ALL, NONE or NAME,NAME...; stored with "
                  "the job (default ALL)")
      ->type_name("NAMES")
      ->needs(n);
  app->add_option("--env", w->variables, "Set an environment variable for CMD; repeatable")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->take_all()
      ->needs(n);
  app->add_option("--chdir", w->dir, "Working directory of CMD (default: the current directory)")
      ->type_name("DIR")
      ->needs(n);
  app->add_option("--output", w->shown,
                  "Output of pods: prefix (prefix each line with its index), raw or none (default: "
                  "prefix, raw for one index)")
      ->check(one_of({"prefix", "raw", "none"}))
      ->type_name("HOW");
  app->add_option("--slots", w->o.slots,
                  "Slots on this machine (default: the value of -j, else the number of CPUs)")
      ->type_name("N")
      ->check(whole(1, kNumberMax));
  app->add_option("--data-dir", w->o.data_dir,
                  "Directory for state and logs; rerun with the same D to continue after a crash")
      ->type_name("D");
  app->add_flag("--keep", w->o.keep,
                "Keep state and logs of a Complete job even without --data-dir");
  app->add_option("--timeout", w->timeout,
                  "Time to wait before giving up, such as 10m or 1h30m (default: no limit)")
      ->type_name("T");
  add_log_level(*app, w->o.log_level);
  add_target(verb, "--namespace");
  app->footer(
      "Examples:\n  muster run job.yaml\n  muster run -n 20 -j 4 --retries 2 -- sh -c 'echo "
      "$JOB_COMPLETION_INDEX'\n"
      "  muster run --data-dir ./sweep job.yaml      # continue after a crash\n"
      "CMD runs as typed, with this shell's environment and directory. A command that cannot be "
      "started fails the job.\n"
      "Exit codes: 0 Complete, 1 Failed, 124 --timeout expired, 130 interrupted; with -n 1, that "
      "of the command.");
  verb.finish = [w, n, tail](const Settings&, const Target& target) -> Judged {
    RunOptions& o = w->o;
    o.target = target;
    if (auto wrong = read_limit("--timeout", w->timeout, o.timeout_ms)) return *wrong;
    o.shown = shown_of(w->shown);
    if (n->count() > 0) {
      if (auto wrong = read_surroundings(w->exported, w->variables, w->dir, o)) return *wrong;
      if (!tail.empty() && !w->rest.empty()) {
        return Usage{"`" + w->rest.front() + "` before `--`: the whole command comes after it"};
      }
      o.command = w->rest;
      o.command.insert(o.command.end(), tail.begin(), tail.end());
      if (!o.file.empty())
        return Usage{"-n and -f are mutually exclusive: -n runs a command, -f a manifest"};
      if (o.command.empty()) return Usage{"-n needs a command: muster run -n 10 -- CMD ARG..."};
      return o;
    }
    if (!tail.empty()) return Usage{"a command needs -n: muster run -n 10 -- CMD ARG..."};
    if (w->rest.size() + (o.file.empty() ? 0 : 1) != 1)
      return Usage{"needs one manifest, JOB.yaml, or -n N -- CMD"};
    if (o.file.empty()) o.file = w->rest.front();
    return o;
  };
  return verb;
}

Verb add_create(CLI::App& root) {
  struct Words {
    CreateOptions o;
    std::string output;
  };
  auto w = std::make_shared<Words>();
  Verb verb = new_verb(root, "Jobs", "create", "Create jobs from manifests");
  CLI::App* app = verb.app;
  app->add_option("-f,--file,--filename", w->o.files,
                  "Manifest to read (- reads stdin); may hold several documents; repeatable")
      ->type_name("F")
      ->required()
      ->take_all();
  app->add_option("-o,--output", w->output, "Output format: name, json or yaml")
      ->check(one_of({"name", "json", "yaml"}))
      ->type_name("FORM");
  app->add_flag("--dry-run", w->o.dry_run, "Validate on the coordinator without storing anything");
  add_target(verb);
  app->footer("Examples:\n  muster create -f job.yaml\n  cat *.yaml | muster create -f -");
  verb.finish = [w, flags = verb.flags](const Settings&, const Target& target) -> Judged {
    w->o.target = target;
    w->o.output = read_output(w->output);
    w->o.ns_given = flags->contains("namespace");
    return w->o;
  };
  return verb;
}

Verb add_apply(CLI::App& root) {
  auto o = std::make_shared<ApplyOptions>();
  Verb verb = new_verb(root, "Jobs", "apply", "Create or update jobs to match their manifests");
  verb.app
      ->add_option("-f,--file,--filename", o->files,
                   "Manifest to read (- reads stdin); may hold several documents; repeatable")
      ->type_name("F")
      ->required()
      ->take_all();
  add_target(verb);
  verb.app->footer("Example:\n  muster apply -f sweep.yaml");
  verb.finish = [o](const Settings&, const Target& target) -> Judged {
    o->target = target;
    return *o;
  };
  return verb;
}

Verb add_retry(CLI::App& root) {
  auto o = std::make_shared<RetryOptions>();
  auto what = std::make_shared<std::string>();
  Verb verb = new_verb(root, "Jobs", "retry", "Run indexes of a finished job again, as a new job");
  CLI::App* app = verb.app;
  app->add_option("job", *what, "Job to retry; it is not changed")->type_name("job/J")->required();
  auto* failed = app->add_flag("--failed", o->failed, "Retry the indexes that failed");
  app->add_option("--index", o->index,
                  "Indexes to retry, such as 3,7-9 (default: all that have not succeeded)")
      ->type_name("SET")
      ->excludes(failed);
  app->add_option("--name", o->name, "Name of the new job (default: J-r2, J-r3, ...)")
      ->type_name("NAME");
  app->add_flag("--wait", o->wait, "Wait until the new job is Complete or Failed");
  add_target(verb);
  app->footer(
      "Examples:\n  muster retry job/sweep --failed\n  muster retry job/sweep --index 3,7-9 "
      "--wait\n"
      "Indexes keep their numbers (JOB_COMPLETION_INDEX) and get all their retries again.");
  verb.finish = [o, what](const Settings&, const Target& target) -> Judged {
    o->target = target;
    auto name = job_name(*what);
    if (auto* wrong = std::get_if<Usage>(&name)) return *wrong;
    o->job = std::get<std::string>(name);
    return *o;
  };
  return verb;
}

Verb add_delete(CLI::App& root) {
  auto o = std::make_shared<DeleteOptions>();
  auto what = std::make_shared<std::vector<std::string>>();
  Verb verb = new_verb(root, "Jobs", "delete", "Delete jobs and terminate their pods");
  verb.app->add_option("what", *what, "Jobs to delete, as job NAME or job/NAME")
      ->type_name("job NAME... | job/NAME...")
      ->required();
  add_target(verb);
  verb.app->footer("Examples:\n  muster delete job sweep\n  muster delete job/sweep job/train");
  verb.finish = [o, what](const Settings&, const Target& target) -> Judged {
    o->target = target;
    const std::string& first = what->front();
    if (first.find('/') == std::string::npos) {
      if (parse_kind(first) != Kind::job)
        return Usage{"`" + first + "`: only jobs can be deleted: muster delete job NAME"};
      if (what->size() == 1) return Usage{"which job? muster delete job NAME"};
    }
    auto names = job_names(*what);
    if (auto* wrong = std::get_if<Usage>(&names)) return *wrong;
    o->jobs = std::get<std::vector<std::string>>(names);
    return *o;
  };
  return verb;
}

Verb add_change(CLI::App& root, ChangeOptions::What change, const char* name, const char* help,
                const char* example) {
  auto o = std::make_shared<ChangeOptions>();
  o->what = change;
  const bool node =
      change == ChangeOptions::What::cordon || change == ChangeOptions::What::uncordon;
  auto what = std::make_shared<std::vector<std::string>>();
  Verb verb = new_verb(root, node ? "Nodes" : "Jobs", name, help);
  CLI::App* app = verb.app;
  app->add_option("what", *what, node ? "Nodes, by name" : "Jobs, as job/NAME or NAME")
      ->type_name(node ? "NODE..." : "job/NAME...")
      ->required();
  if (change == ChangeOptions::What::scale) {
    app->add_option("--completions", o->completions,
                    "Number of indexes of an elastic job; sets parallelism to the same value")
        ->type_name("N")
        ->check(whole(0, kNumberMax));
    app->add_option("--parallelism,--replicas", o->parallelism, "Maximum pods running at once")
        ->type_name("N")
        ->check(whole(0, kNumberMax));
  }
  add_target(verb, node ? "" : "-n,--namespace");
  app->footer(std::string("Example:\n  ") + example);
  verb.finish = [o, what, node](const Settings&, const Target& target) -> Judged {
    o->target = target;
    if (o->what == ChangeOptions::What::scale && !o->completions && !o->parallelism)
      return Usage{"scale to what? --completions N or --parallelism N"};
    if (node) {
      for (const std::string& word : *what) o->names.push_back(node_name(word));
      return *o;
    }
    auto names = job_names(*what);
    if (auto* wrong = std::get_if<Usage>(&names)) return *wrong;
    o->names = std::get<std::vector<std::string>>(names);
    return *o;
  };
  return verb;
}

Verb add_drain(CLI::App& root) {
  struct Words {
    DrainOptions o;
    std::string deadline;
  };
  auto w = std::make_shared<Words>();
  Verb verb =
      new_verb(root, "Nodes", "drain", "Cordon a node and wait until its pods have finished");
  CLI::App* app = verb.app;
  app->add_option("node", w->o.node, "Node to drain")->type_name("NODE")->required();
  app->add_flag("--now", w->o.now,
                "Evict pods immediately; their indexes run again on other nodes");
  app->add_option(
         "--deadline", w->deadline,
         "Evict pods that are still running after this time, such as 2h (default: wait for them)")
      ->type_name("T");
  add_target(verb, "");
  app->footer(
      "Examples:\n  muster drain node-a\n  muster drain node-a --deadline 2h\n"
      "Exit codes: 0 drained, 130 interrupted (the node stays cordoned).");
  verb.finish = [w](const Settings&, const Target& target) -> Judged {
    w->o.target = target;
    w->o.node = node_name(w->o.node);
    if (auto wrong = read_limit("--deadline", w->deadline, w->o.deadline_ms)) return *wrong;
    return w->o;
  };
  return verb;
}

}  // namespace

std::vector<Verb> job_verbs(CLI::App& root, const std::vector<std::string>& tail) {
  using What = ChangeOptions::What;
  return {
      add_run(root, tail),
      add_create(root),
      add_apply(root),
      add_retry(root),
      add_delete(root),
      add_change(root, What::suspend, "suspend",
                 "Suspend a job: terminate its pods without counting them as failed",
                 "muster suspend job/sweep"),
      add_change(root, What::resume, "resume", "Resume a suspended job", "muster resume job/sweep"),
      add_change(root, What::scale, "scale",
                 "Set the number of indexes of a job, or how many run at once",
                 "muster scale job/sweep --completions 200"),
      add_change(root, What::cordon, "cordon", "Mark a node unschedulable", "muster cordon node-a"),
      add_change(root, What::uncordon, "uncordon", "Mark a node schedulable",
                 "muster uncordon node-a"),
      add_drain(root)};
}

}  // namespace muster::cli
