// muster create: sends each manifest of each file to the API, in order. A refused manifest does not
// stop the others. Also makes a cron job from a command or a Job's manifest, and a job from a cron
// job.
#include "cli/verbs/run/wanted_job.hpp"
#include "cli/verbs/verb.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/documents/document_writes.hpp"
#include "client/documents/placed.hpp"
#include "client/terminal/exit_codes.hpp"

#include <iostream>
#include <optional>
#include <utility>

namespace muster::cli {

struct CreateOptions {
  Target target;
  bool ns_given = false;  // false: use each manifest's own
  std::vector<std::string> files;
  bool dry_run = false;
  Output output = Output::table;  // table: "job.batch/J created"
  // A cron job of this name...
  std::string cron;
  std::string schedule, time_zone, concurrency = "Allow";
  std::vector<std::string> command;  // empty: `files` is the manifest of its jobs
  // ...or a job of this name, from this cron job.
  std::string job, from;
};

namespace {

// Set on a job that was not started by the schedule, as kubectl does.
constexpr const char* kInstantiateKey = "cronjob.kubernetes.io/instantiate";

void print_created(const Json& job, const CreateOptions& options) {
  const std::string name =
      std::string(manifest_kind(text_at(job, {"kind"}))) + "/" + text_at(job, {"metadata", "name"});
  switch (options.output) {
    case Output::json:
      std::cout << dumped(job, 4) << "\n";
      break;
    case Output::yaml:
      std::cout << to_yaml(job);
      break;
    case Output::name:
      std::cout << name << "\n";
      break;
    case Output::table:
    case Output::wide:
    case Output::tsv:
      std::cout << name << " created" << (options.dry_run ? " (dry run)" : "") << "\n";
      break;
  }
  std::cout.flush();
}

// The manifest of the jobs that the cron job starts.
Result<Json> job_of(const CreateOptions& options) {
  RunOptions run;
  run.target = options.target;
  if (options.command.empty()) {
    run.file = options.files.front();
  } else {
    run.command = options.command;
    run.name = options.cron;
    run.completions = run.parallelism = 1;
  }
  auto wanted = wanted_job(run, 1, std::nullopt, "");
  if (!wanted) return wanted.error();
  if (!wanted->configs.empty())
    return placed(invalid("create the ConfigMaps first, and name a file with the Job alone"),
                  wanted->configs.front());
  return read_json(wanted->text);
}

// The labels and annotations of metadata.
Json copied_metadata(const Json& metadata) {
  Json out = Json::object();
  for (const char* name : {"labels", "annotations"})
    if (const Json& value = at(metadata, {name}); value.is_object()) out[name] = value;
  return out;
}

Result<Json> cron_manifest(const CreateOptions& options) {
  auto job = job_of(options);
  if (!job) return job.error();
  Json spec = {
      {"schedule", options.schedule},
      {"concurrencyPolicy", options.concurrency},
      {"jobTemplate",
       {{"metadata", copied_metadata(at(*job, {"metadata"}))}, {"spec", at(*job, {"spec"})}}}};
  if (!options.time_zone.empty()) spec["timeZone"] = options.time_zone;
  return Json{{"apiVersion", "batch/v1"},
              {"kind", "CronJob"},
              {"metadata", {{"name", options.cron}}},
              {"spec", std::move(spec)}};
}

Result<Json> job_from_cron(ApiClient& client, const CreateOptions& options) {
  auto cron = object(client, object_path(Kind::cron_job, options.target.ns, options.from));
  if (!cron) return cron.error();
  Json metadata = copied_metadata(at(*cron, {"spec", "jobTemplate", "metadata"}));
  metadata["name"] = options.job;
  metadata["annotations"][kInstantiateKey] = "manual";
  metadata["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                              {"kind", "CronJob"},
                                              {"name", options.from},
                                              {"uid", text_at(*cron, {"metadata", "uid"})},
                                              {"controller", true}}});
  return Json{{"apiVersion", "batch/v1"},
              {"kind", "Job"},
              {"metadata", std::move(metadata)},
              {"spec", at(*cron, {"spec", "jobTemplate", "spec"})}};
}

int create_one(ApiClient& client, const CreateOptions& options, const Result<Json>& manifest) {
  if (!manifest) return fail(manifest.error());
  const std::string kind = text_at(*manifest, {"kind"});
  const Document document{dumped(*manifest), kind, text_at(*manifest, {"metadata", "name"}), ""};
  auto object = create_document(client, document, options.target.ns, options.dry_run);
  if (!object) return fail(object.error());
  print_created(*object, options);
  return kDone;
}

std::optional<Usage> read_cron_job(const std::vector<std::string>& what, CreateOptions& o) {
  if (what.size() != 2 || what[1].empty())
    return Usage{"needs a kind and one name: muster create cronjob NAME --schedule S -- CMD"};
  o.cron = what[1];
  if (o.schedule.empty())
    return Usage{"when? --schedule '30 2 * * *' (minute, hour, day, month, weekday)"};
  if (o.command.empty() != (o.files.size() == 1))
    return Usage{"start what? either a command after --, or -f with the manifest of a Job"};
  if (!o.from.empty())
    return Usage{"--from creates a job: muster create job NAME --from cronjob/C"};
  return std::nullopt;
}

std::optional<Usage> read_job_from(const std::vector<std::string>& what, CreateOptions& o) {
  if (what.size() != 2 || what[1].empty())
    return Usage{"needs a kind and one name: muster create job NAME --from cronjob/C"};
  o.job = what[1];
  const size_t slash = o.from.find('/');
  if (slash == std::string::npos || parse_kind(o.from.substr(0, slash)) != Kind::cron_job ||
      slash + 1 == o.from.size())
    return Usage{"from which cron job? --from cronjob/NAME; for a new job, use muster submit"};
  o.from.erase(0, slash + 1);
  if (!o.command.empty() || !o.files.empty())
    return Usage{"--from says what to run: omit -f and the command"};
  return std::nullopt;
}

std::optional<Usage> read_created(const std::vector<std::string>& what, CreateOptions& o) {
  const auto kind = what.empty() ? std::nullopt : parse_kind(what.front());
  if (kind != Kind::cron_job && (!o.schedule.empty() || !o.time_zone.empty()))
    return Usage{"--schedule and --time-zone are of a cron job: muster create cronjob NAME"};
  if (kind == Kind::cron_job) return read_cron_job(what, o);
  if (kind == Kind::job) return read_job_from(what, o);
  if (!what.empty())
    return Usage{"`" + what.front() +
                 "`: must be cronjob or job; other objects are created from "
                 "manifests: muster create -f FILE"};
  if (o.files.empty()) return Usage{"create what? muster create -f FILE"};
  if (!o.command.empty())
    return Usage{"a command is run by a cron job, or at once by muster submit: omit it"};
  if (!o.from.empty())
    return Usage{"--from creates a job: muster create job NAME --from cronjob/C"};
  return std::nullopt;
}

}  // namespace

int execute(const CreateOptions& options) {
  const auto client = connect(options.target);
  if (!options.cron.empty()) return create_one(*client, options, cron_manifest(options));
  if (!options.job.empty()) return create_one(*client, options, job_from_cron(*client, options));
  return each_document(options.files, [&](const Document& document) -> Status {
    auto ns = namespace_of(document, options.target.ns, options.ns_given);
    if (!ns) return ns.error();
    auto object = create_document(*client, document, *ns, options.dry_run);
    if (!object) return object.error();
    print_created(*object, options);
    return Nothing{};
  });
}

Verb create_verb() {
  auto w = std::make_shared<Raw<CreateOptions, std::vector<std::string>>>();
  CreateOptions& o = w->o;
  return {.title = {"Jobs", "create",
                    "Create jobs, cron jobs, ConfigMaps and namespaces from manifests"},
          .rows = {{"what", "cronjob NAME | job NAME",
                    "Instead of manifests: a cron job that runs CMD or the Job of -f, or a job "
                    "from a cron job",
                    &w->what},
                   {"-f,--file,--filename", "F", kFilesHelp, &o.files, kAnything, kSeveral},
                   {"--schedule", "S",
                    "When the cron job starts a job: the five fields of a crontab, @daily and the "
                    "like, or \"@every 90m\"",
                    &o.schedule},
                   {"--time-zone", "ZONE",
                    "Time zone of the schedule, such as Europe/Berlin (default: the coordinator's)",
                    &o.time_zone},
                   {"--concurrency", "POLICY",
                    "What happens while an earlier job is unfinished (default):", &o.concurrency,
                    one_of({"Allow", "Forbid", "Replace"})},
                   {"--from", "cronjob/C", "The cron job whose job is created now", &o.from},
                   {"-o,--output", "FORM", "Output format:", &o.output,
                    one_of({"name", "json", "yaml"})},
                   {"--dry-run", "", kDryRunHelp, &o.dry_run}},
          .asks = {&o.target},
          .footer =
              "Examples:\n  muster create -f job.yaml\n  cat *.yaml | muster create -f -\n"
              "  muster create cronjob nightly --schedule '30 2 * * *' -- ./backup\n"
              "  muster create cronjob sweep --schedule @daily -f job.yaml\n"
              "  muster create job now --from cronjob/nightly",
          .takes_command = true,
          .finish = [w](const Given& given) -> Judged {
            w->o.ns_given = given.flags.contains("--namespace");
            w->o.command = given.tail;
            return judged(read_created(w->what, w->o), w->o);
          }};
}

}  // namespace muster::cli
