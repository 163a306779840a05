// muster run and muster mpirun: run one job to its end; locally (run_here.hpp), or with --api or
// MUSTER_API on a running coordinator.
#include "cli/client/discovery.hpp"
#include "cli/client/follow.hpp"
#include "cli/client/manifests.hpp"
#include "cli/client/mpi_job.hpp"
#include "cli/output/exit_codes.hpp"
#include "cli/settings/files.hpp"
#include "cli/verbs/run_here.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/cluster/prefetch.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <unistd.h>
#include <utility>

namespace muster::cli {
namespace {

struct Wanted {
  RunIdentity job;
  std::string text;  // as sent to the API
  std::string ns;
};

Status words_are_text(const std::vector<std::string>& command) {
  for (size_t i = 0; i < command.size(); ++i) {
    if (!is_utf8(command[i]))
      return Error{Errc::invalid,
                   "word " + std::to_string(i + 1) +
                       " of the command is not UTF-8: put the command in a script",
                   {}};
  }
  return Nothing{};
}

// `slots`: default parallelism of the command form.
Result<Wanted> wanted(const RunOptions& options, int64_t slots) {
  Wanted out{{}, "", options.target.ns};
  if (options.completions > 0) {
    std::error_code ignored;
    const int32_t parallelism =
        options.parallelism > 0
            ? options.parallelism
            : static_cast<int32_t>(std::clamp<int64_t>(slots, 1, options.completions));
    if (Status readable = words_are_text(options.command); !readable) return readable.error();
    std::string here = options.dir;
    if (here.empty()) here = std::filesystem::current_path(ignored).string();
    auto environment = exported(environ, options.exported, here);
    if (!environment) return environment.error();
    out.job.environment = std::move(*environment);
    out.job.dir = std::move(here);
    std::random_device random;
    out.job.manifest = command_manifest(
        {options.completions, parallelism, options.name, options.retries.value_or(0),
         options.command, options.environment, options.dir},
        [&random](uint32_t below) { return random() % below; });
    if (options.mpi) {
      const FoundLauncher launcher = find_launcher(options.mpi->kind);
      if (options.mpi->tag_output && launcher.kind == MpiLauncher::unknown)
        return Error{Errc::invalid,
                     "--tag-output: the mpirun of this machine is none that is known: say which "
                     "one it is with --mpi openmpi or --mpi mpich",
                     {}};
      out.job.manifest = mpi_manifest(std::move(out.job.manifest), *options.mpi, launcher);
    }
    out.job.name_given = !options.name.empty();
    out.text = dumped(with_surroundings(out.job.manifest, out.job.environment, out.job.dir));
    return out;
  }
  auto documents = read_manifests(options.file);
  if (!documents) return documents.error();
  if (documents->size() != 1) {
    return Error{Errc::invalid,
                 shown_path(options.file) + ": holds " + std::to_string(documents->size()) +
                     " documents, but run takes one job",
                 {}};
  }
  Document& document = documents->front();
  out.job.manifest = read_json(document.json);
  out.text = std::move(document.json);
  if (!document.ns.empty()) out.ns = document.ns;
  return out;
}

int64_t slots_of(ApiClient& client) {
  auto nodes = object(client, object_path(Kind::node, ""));
  if (!nodes) return 1;
  int64_t slots = 0;
  for (const Json& node : at(*nodes, {"items"})) {
    slots += std::atoll(text_at(node, {"status", "allocatable", "pods"}).c_str());
  }
  return slots;
}

int run_there(const RunOptions& options) {
  const auto client = connect(options.target);
  auto job =
      wanted(options, options.completions > 0 && options.parallelism == 0 ? slots_of(*client) : 1);
  if (!job) return fail(job.error());
  Signals signals;
  auto created = create_job(*client, job->ns, job->text, false);
  if (!created)
    return fail(created.error(),
                created.error().code == Errc::unavailable ? "" : shown_path(options.file));
  const std::string name = text_at(*created, {"metadata", "name"});
  std::cerr << "job/" << name << " created on " << client->address() << std::endl;
  std::unique_ptr<PodOutput> output;
  if (options.shown != RunOptions::Shown::none)
    output = output_of_api(*client, job->ns, *created, prefixed(options.shown, *created));
  const Follow end = follow(
      *client, signals, job->ns, name,
      {.timeout_ms = options.timeout_ms, .color = options.target.color, .output = output.get()});
  const std::string ns_flag = job->ns == "default" ? "" : " -n " + job->ns;
  const std::string back = "\n  reattach: muster wait job/" + name + ns_flag +
                           "\n  delete:   muster delete job/" + name + ns_flag;
  switch (end.how) {
    case Followed::complete:
    case Followed::failed:
      if (const auto why = start_failure(end.job); why && options.completions > 0)
        return fail(exit_code_of(options, *client, job->ns, end), *why);
      std::cout << summary_text(
                       *client, job->ns, end.job, Paint(options.target.color, STDOUT_FILENO),
                       [&](const Failures& failures) { return more_text(failures, name, job->ns); })
                << std::flush;
      return exit_code_of(options, *client, job->ns, end);
    case Followed::interrupted:
      return fail(kInterrupted,
                  "detached: job/" + name + " keeps running on " + client->address() + back);
    case Followed::timeout:
      return fail(kTimeout, "--timeout expired: job/" + name + " keeps running on " +
                                client->address() + back);
    case Followed::gone:
      return fail(kNotFound, "job/" + name + " was deleted");
    case Followed::unreachable:
      break;
  }
  return fail(end.error);
}

}  // namespace

int execute(const RunOptions& options) {
  if (options.target.named) {
    if (!options.data_dir.empty() || options.slots > 0 || options.keep) {
      return fail(kUsage,
                  std::string(options.mpi ? "mpirun: --data-dir" : "run: --data-dir, --slots") +
                      " and --keep are for running on this machine; --api or MUSTER_API "
                      "selects a coordinator");
    }
    return run_there(options);
  }
  // Here the slots bound how many pods run at once, so the job may have more than that: the rest
  // waits on the node, and a slot that becomes free is filled without a sync and a round trip.
  RunOptions here = options;
  if (here.slots == 0) here.slots = std::exchange(here.parallelism, 0);
  if (here.slots == 0) here.slots = cpu_count();
  const int64_t at_once = here.parallelism > 0 ? here.parallelism : here.slots;
  here.environment.try_emplace("MUSTER_PARALLELISM",
                               std::to_string(std::min<int64_t>(at_once, here.completions)));
  auto job = wanted(here, at_once + core::prefetch_limit(static_cast<uint32_t>(at_once)));
  if (!job) return fail(job.error());
  return run_here(here, job->ns, std::move(job->job), options.completions > 0 ? "" : job->text);
}

}  // namespace muster::cli
