// The grammar of the verbs that create and change objects: create, apply, retry, delete, suspend,
// resume, scale, cordon, uncordon, drain.
#include "cli/grammar/parser.hpp"
#include "client/connect/objects.hpp"

namespace muster::cli {
namespace {

constexpr int64_t kNumberMax = std::numeric_limits<int32_t>::max();
constexpr char kFileHelp[] =
    "File or directory of manifests, or - for stdin; may hold several documents; repeatable";
constexpr char kDryRunHelp[] = "Validate on the coordinator without storing anything";

Verb add_create(CLI::App& root) {
  struct Words {
    CreateOptions o;
    std::string output;
  };
  auto w = std::make_shared<Words>();
  Verb verb =
      new_verb(root, "Jobs", "create", "Create jobs, ConfigMaps and namespaces from manifests");
  CLI::App* app = verb.app;
  app->add_option("-f,--file,--filename", w->o.files, kFileHelp)
      ->type_name("F")
      ->required()
      ->take_all();
  app->add_option("-o,--output", w->output, "Output format: name, json or yaml")
      ->check(one_of({"name", "json", "yaml"}))
      ->type_name("FORM");
  app->add_flag("--dry-run", w->o.dry_run, kDryRunHelp);
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
  Verb verb = new_verb(root, "Jobs", "apply", "Create or update objects to match their manifests");
  verb.app->add_option("-f,--file,--filename", o->files, kFileHelp)
      ->type_name("F")
      ->required()
      ->take_all();
  verb.app->add_flag("--dry-run", o->dry_run, kDryRunHelp);
  add_target(verb);
  verb.app->footer(
      "Examples:\n  muster apply -f sweep.yaml\n  muster get job sweep -o yaml | muster apply -f "
      "-");
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
  app->add_option("job", *what, "Job to retry; it is not changed")->type_name("job/J");
  auto* failed = app->add_flag("--failed", o->wishes.failed, "Retry the indexes that failed");
  auto* index =
      app->add_option("--index", o->wishes.index,
                      "Indexes to retry, such as 3,7-9 (default: all that have not succeeded)")
          ->type_name("SET")
          ->excludes(failed);
  app->add_option("--task", o->wishes.task,
                  "The same for a job submitted with --array, by the numbers of its tasks")
      ->type_name("SET")
      ->excludes(failed)
      ->excludes(index);
  app->add_option("--name", o->wishes.name, "Name of the new job (default: J-r2, J-r3, ...)")
      ->type_name("NAME");
  auto* wait = app->add_flag("--wait", o->wait, "Wait until the new job is Complete or Failed");
  auto* dir = app->add_option("--data-dir", o->data_dir,
                              "Retry the job of muster run --data-dir D, here and without a "
                              "coordinator, and wait for it")
                  ->type_name("D")
                  ->excludes(wait);
  app->add_option("--slots", o->slots,
                  "With --data-dir, slots on this machine (default: as many as the run had)")
      ->type_name("N")
      ->check(whole(1, kNumberMax))
      ->needs(dir);
  add_target(verb);
  app->footer(
      "Examples:\n  muster retry job/sweep --failed\n  muster retry job/sweep --index 3,7-9 "
      "--wait\n  muster retry --data-dir ./sweep --failed\n"
      "Indexes keep their numbers (JOB_COMPLETION_INDEX) and get all their retries again.");
  verb.finish = [o, what](const Settings&, const Target& target) -> Judged {
    o->target = target;
    if (what->empty() && o->data_dir.empty()) return Usage{"which job? muster retry job/J"};
    if (what->empty()) return *o;
    auto name = job_name(*what);
    if (auto* wrong = std::get_if<Usage>(&name)) return *wrong;
    o->job = std::get<std::string>(name);
    return *o;
  };
  return verb;
}

// "job NAME...", "pod/NAME...": one kind, and names. Checks that the kind can be deleted.
std::optional<Usage> read_deleted(const std::vector<std::string>& what, DeleteOptions& o) {
  const std::string& first = what.front();
  const size_t slash = first.find('/');
  const auto kind = parse_kind(first.substr(0, slash));
  if (!kind && slash == std::string::npos)
    return Usage{"`" + first + "`: a job, pod or node? muster delete job " + first};
  if (!kind) return unknown_kind(first.substr(0, slash));
  if (*kind == Kind::event)
    return Usage{"`" + first.substr(0, slash) + "`: events cannot be deleted"};
  o.kind = *kind;
  for (size_t i = slash == std::string::npos ? 1 : 0; i < what.size(); ++i) {
    const size_t at = what[i].find('/');
    const bool named = at != std::string::npos;
    if ((!named && slash != std::string::npos) ||
        (named && parse_kind(what[i].substr(0, at)) != kind))
      return Usage{"`" + what[i] + "`: must be " + kind_name(*kind) + "/NAME like the first"};
    o.names.push_back(named ? what[i].substr(at + 1) : what[i]);
    if (o.names.back().empty()) return Usage{"`" + what[i] + "`: has no name"};
  }
  return std::nullopt;
}

Verb add_delete(CLI::App& root) {
  auto o = std::make_shared<DeleteOptions>();
  auto what = std::make_shared<std::vector<std::string>>();
  Verb verb = new_verb(root, "Jobs", "delete", "Delete jobs and terminate their pods");
  CLI::App* app = verb.app;
  app->add_option("what", *what, "Jobs to delete, as job NAME or job/NAME; other kinds likewise")
      ->type_name("job NAME... | job/NAME...");
  app->add_option("-f,--file,--filename", o->files,
                  "Delete the objects of manifests: a file or directory, or - for stdin; "
                  "repeatable")
      ->type_name("F")
      ->allow_extra_args(false)
      ->take_all();
  app->add_option("-l,--selector", o->selector, "Delete those with these labels, such as a=b,c!=d")
      ->type_name("SELECTOR");
  app->add_flag("--all", o->all, "Delete all of the namespace");
  app->add_flag("--ignore-not-found", o->ignore_missing, "Do not fail if an object does not exist");
  add_target(verb);
  app->footer(
      "Examples:\n  muster delete job sweep\n  muster delete job/sweep job/train\n"
      "  muster delete -f sweep.yaml\n  muster delete jobs -l app=train");
  verb.finish = [o, what, flags = verb.flags](const Settings&, const Target& target) -> Judged {
    o->target = target;
    o->ns_given = flags->contains("namespace");
    const bool selected = o->all || !o->selector.empty();
    if (!o->files.empty()) {
      if (!what->empty() || selected)
        return Usage{"-f says what to delete: omit names, -l and --all"};
      return *o;
    }
    if (what->empty()) return Usage{"what? muster delete job NAME, or -f FILE"};
    if (auto wrong = read_deleted(*what, *o)) return *wrong;
    if (selected && (!o->names.empty() || (o->all && !o->selector.empty())))
      return Usage{"names, -l and --all are mutually exclusive"};
    if (selected && !is_namespaced(o->kind))
      return Usage{std::string(kind_plural(o->kind)) + " are deleted by name: muster delete " +
                   kind_name(o->kind) + " NAME"};
    if (!selected && o->names.empty())
      return Usage{"which " + std::string(kind_plural(o->kind)) + "? give names, -l or --all"};
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

std::vector<Verb> job_verbs(CLI::App& root) {
  using What = ChangeOptions::What;
  return {
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
