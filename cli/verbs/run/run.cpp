// muster run: runs one job to its end; locally (run_here.hpp), or with --api or MUSTER_API on a
// running coordinator. muster mpirun (mpirun.cpp) runs its job by the same execute().
#include "base/process/physical_memory.hpp"
#include "base/process/usable_cpus.hpp"
#include "cli/verbs/run/job_flags.hpp"
#include "cli/verbs/run/run_here.hpp"
#include "cli/verbs/run/run_options.hpp"
#include "cli/verbs/run/script_flags.hpp"
#include "cli/verbs/run/shell.hpp"
#include "cli/verbs/run/wanted_job.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/follow/follow.hpp"
#include "client/follow/pod_files.hpp"
#include "client/inputs/resources.hpp"
#include "client/inputs/run_identity.hpp"
#include "client/news/attempts.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/safe_output.hpp"
#include "core/cluster/slots/prefetch.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace muster::cli {
namespace {

// Cancels the job of an MPI program and waits until its ranks have ended; returns the exit code.
int end_ranks(ApiClient& client, Signals& signals, const std::string& ns, const std::string& name,
              Followed why, PodOutput* output) {
  const bool interrupted = why == Followed::interrupted;
  const std::string title = "job/" + name, ns_flag = ns == "default" ? "" : " -n " + ns;
  std::cerr << stop_text(why) << ": ending " << title
            << "; its ranks get SIGTERM and their grace period, Ctrl-C leaves them to that"
            << std::endl;
  const int code = interrupted ? kInterrupted : kTimeout;
  const auto answer = client.replace(own_path(ns, name, "cancel"), "{}");
  const Status cancelled = !answer        ? Status(answer.error())
                           : answer->ok() ? Status(Nothing{})
                                          : Status(refusal(*answer));
  if (!cancelled)
    return fail(code, title + " could not be ended: " + cancelled.error().message +
                          "\n  try again: muster cancel " + title + ns_flag);
  const Follow end = follow(client, signals, ns, name, {.output = output, .quiet = true});
  if (end.how == Followed::interrupted) std::cerr << title << " is still ending" << std::endl;
  return code;
}

int run_there(const RunOptions& options, const std::optional<Inputs>& inputs) {
  outlive_reader();  // a job that nobody reads is left, and an MPI program ended, as by Ctrl-C
  const auto inputs_dir = shared_inputs_dir();
  if (inputs && !inputs_dir) return fail(inputs_dir.error());
  const auto client = connect(options.target);
  auto job = wanted_job(options, kParallelismMax, inputs, inputs_dir ? *inputs_dir : "");
  if (!job) return fail(job.error());
  if (options.dry_run) return print_manifest(*job, options.output);
  if (Status right = check_output(options, job->job.manifest); !right) return fail(right.error());
  if (inputs)
    if (Status shared = share_inputs(*inputs_dir, job->job.inputs); !shared)
      return fail(shared.error());
  Signals signals;
  auto created = create_wanted(*client, *job, options.exists, options.quiet);
  if (!created) return fail(created.error());
  const std::string name = text_at(*created, {"metadata", "name"});
  if (!options.quiet)
    std::cerr << "job/" << name << " created on " << client->address() << std::endl;
  std::unique_ptr<PodOutput> output;
  std::optional<PodFiles> files = wanted_files(options);
  if (files || options.shown != Shown::none)
    output = output_of_api(*client, job->ns, *created,
                           output_wishes(options, *created, files ? &*files : nullptr));
  const Follow end = follow(*client, signals, job->ns, name,
                            {.timeout_ms = options.timeout_ms,
                             .color = options.target.color,
                             .output = output.get(),
                             .known = known_of(*created),
                             .quiet = options.quiet});
  const std::string ns_flag = job->ns == "default" ? "" : " -n " + job->ns;
  const std::string title = " job/" + name + ns_flag;
  std::string back = "\n  reattach: muster wait" + title + "\n  output:   muster logs -f" + title +
                     "\n  end it:   muster cancel" + title + "\n  delete:   muster delete" + title;
  if (files)
    back = "\n  files:    not written any further; muster logs" + title + " has all" + back;
  if (options.mpi && !options.mpi->detach &&
      (end.how == Followed::interrupted || end.how == Followed::timeout))
    return end_ranks(*client, signals, job->ns, name, end.how, output.get());
  switch (end.how) {
    case Followed::complete:
    case Followed::failed:
      if (const auto why = start_failure(end.job); why && options.completions > 0)
        return fail(exit_code_of(options, *client, job->ns, end), *why);
      if (!options.quiet || end.how == Followed::failed)
        raw_err() << summary_text(*client, job->ns, end.job,
                                  Paint(options.target.color, STDERR_FILENO),
                                  [&](const Failures& failures) {
                                    return more_text(failures, name, job->ns);
                                  })
                  << std::flush;
      if (files && files->failures() > 0)
        return fail(kFailed,
                    "some files of --output or --error could not be written: muster logs job/" +
                        name + ns_flag + " has all output");
      return exit_code_of(options, *client, job->ns, end);
    case Followed::interrupted:
      return fail(kInterrupted,
                  (reader_left() ? stop_text(end.how) + ", so detached: job/" : "detached: job/") +
                      name + " keeps running on " + client->address() + back);
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

// The directory for inputs that the manifest would not carry.
Result<std::string> dry_inputs_dir(const std::string& data_dir) {
  if (data_dir.empty()) return shared_inputs_dir();
  std::error_code ignored;
  return std::filesystem::absolute(data_dir, ignored).lexically_normal().string();
}

// Whether the only node of a run without a coordinator can start the job's pods.
Status fits_this_machine(const RunOptions& options) {
  if (options.dry_run) return Nothing{};
  const bool together = options.mpi || options.resources.gang;
  const int64_t pods = together ? std::max(options.completions, 1) : 1;
  const MachineRoom room{usable_cpu_count(), static_cast<int64_t>(physical_memory_bytes())};
  Status fits = fits_here(options.resources, pods, room);
  ResourceWishes others = options.resources;
  others.cpus.clear();
  if (!fits && options.mpi && fits_here(others, pods, room))
    return invalid(fits.error().message + ", or let ranks share CPUs with --oversubscribe");
  return fits;
}

int run(const RunOptions& given) {
  RunOptions options = given;
  if (!options.target.named && !std::exchange(options.partitions, {}).empty())
    options.warnings.push_back(options.script->name +
                               ": ignored: --partition, since queues need a coordinator");
  auto inputs = take_inputs(options);
  const std::string verb = given.mpi ? "mpirun" : "run";
  if (!inputs) return fail(inputs.error(), verb);
  if (options.mpi && options.mpi->detach && !options.target.named)
    return fail(kUsage,
                "mpirun: --detach needs a coordinator; select one with --api or MUSTER_API");
  if (Status kept = take_stdin(options); !kept) return fail(kept.error(), verb);
  if (options.target.named) {
    if (!options.data_dir.empty() || options.slots > 0 || options.keep) {
      return fail(kUsage, verb + (options.mpi ? ": --data-dir" : ": --data-dir, --slots") +
                              " and --keep are for running on this machine; --api or MUSTER_API "
                              "selects a coordinator");
    }
    return options.interactive ? execute(ShellOptions{options}) : run_there(options, *inputs);
  }
  if (options.interactive)
    return fail(kUsage,
                "run: --pty needs a coordinator; select one with --api or MUSTER_API (on this "
                "machine, run the command itself)");
  if (!options.resources.after.empty())
    return fail(kUsage,
                verb + ": --after needs a coordinator; select one with --api or MUSTER_API");
  if (options.retry && options.completions == 0 && options.file.empty()) return retry_here(options);
  if (options.retry)
    if (auto kept = kept_run(options.data_dir); !kept) return fail(kept.error());
  if (Status fits = fits_this_machine(options); !fits)
    return fail(kUsage, verb + ": " + fits.error().message);
  // Here the slots limit how many pods run at once, so the job's parallelism may be higher: the
  // other pods wait on the node, and a freed slot is refilled without a sync and a round trip.
  RunOptions here = options;
  if (here.slots == 0) here.slots = std::exchange(here.parallelism, 0);
  if (here.slots == 0) here.slots = static_cast<int>(usable_cpu_count());
  here.exported.elsewhere = false;
  const int64_t at_once = here.parallelism > 0 ? here.parallelism : here.slots;
  here.environment.try_emplace("MUSTER_PARALLELISM",
                               std::to_string(std::min<int64_t>(at_once, here.completions)));
  Result<std::string> inputs_dir = std::string();
  if (here.dry_run && *inputs) inputs_dir = dry_inputs_dir(here.data_dir);
  if (!inputs_dir) return fail(inputs_dir.error());
  auto job = wanted_job(here, at_once + core::prefetch_limit(static_cast<uint32_t>(at_once)),
                        *inputs, *inputs_dir);
  if (!job) return fail(job.error());
  if (here.dry_run) return print_manifest(*job, here.output);
  job->job.slots = here.slots;
  return run_here(here, std::move(*job));
}

// What --help says about files.
constexpr const char* kOutputFiles =
    "--output FILE writes stdout and stderr of each pod to a file: %j job, %a task of an array or "
    "index, %i index, %r attempt, %N node, %p pod, %% a percent sign, %5i at least 5 digits. "
    "Directories are made. Without %r, a file has the output of the newest attempt.\n";

std::optional<Usage> read_run(JobWords& w, bool retry, const Given& given) {
  RunOptions& o = w.o;
  if (auto wrong = read_limit("--timeout", w.timeout, o.timeout_ms)) return wrong;
  if (auto wrong = read_short_output(w.printed, {"yaml", "json"}, w.shown)) return wrong;
  if (auto wrong = read_shown(w.shown, o)) return wrong;
  if (auto wrong = read_err_file(w.err_shown, o)) return wrong;
  if (o.keep_order && o.shown == Shown::none)
    return Usage{"--keep-order needs --output tag or plain"};
  const bool no_job = given.tail.empty() && w.rest.empty() && o.file.empty();
  if (retry) {
    if (o.data_dir.empty()) return Usage{"--retry-failed needs --data-dir D"};
    if (o.dry_run) return Usage{"--retry-failed and --dry-run are mutually exclusive"};
    o.retry = RetryWishes{.failed = true, .index = "", .name = "", .job = "", .if_any = true};
  }
  if (!retry || !no_job || given.flags.contains("--completions") || o.each.any())
    if (auto wrong = read_job("run", w, given)) return wrong;
  if (o.interactive &&
      (o.completions != 1 || o.each.any() || o.script || o.dry_run || o.files || o.err_files))
    return Usage{"--pty is for one interactive command: muster run --pty -n 1 -- bash"};
  if (!w.printed.empty() && !o.dry_run) return Usage{"-o needs --dry-run"};
  o.output = read_output(w.printed);
  return std::nullopt;
}

}  // namespace

int execute(const RunOptions& options) {
  const int code = run(options);
  // The input came too late to be refused.
  if (code != kRejected && !options.mpi && options.file != "-" && !options.each.reads_stdin() &&
      stdin_waits())
    std::cerr << "muster: warning: the piped input was not read" << std::endl;
  return code;
}

Verb run_verb() {
  struct Words : JobWords {
    bool retry = false;
  };
  auto w = std::make_shared<Words>();
  FlagRows rows;
  add_job_rows(rows, *w);
  rows.insert(
      rows.end(),
      {{"--output", "HOW",
        "Output of pods: tag (each line with its index or task), plain, none, or a file for each "
        "pod, such as logs/%j-%i.out (default: tag, plain for one index)",
        &w->shown},
       {"-e,--error", "FILE", "File for stderr of each pod (default: where its stdout goes)",
        &w->err_shown},
       {"-q,--quiet", "", "Say nothing of the job unless it fails; pods' output is still shown",
        &w->o.quiet},
       {"-k,--keep-order", "",
        "Show output in the order of the indexes, each as soon as all before it are done",
        &w->o.keep_order},
       {"--pty", "",
        "Run CMD interactively, on this terminal: muster run --pty -n 1 -- bash on a coordinator, "
        "like muster shell",
        &w->o.interactive},
       {"--slots", "N", "Slots on this machine (default: the value of -j, else the number of CPUs)",
        &w->o.slots, whole(1, kNumberMax)}});
  add_run_rows(rows, *w);
  rows.push_back({"--retry-failed", "",
                  "Run the indexes again that failed in --data-dir D; omit the job", &w->retry});
  add_dry_run_rows(
      rows, *w, "Short for --output; with --dry-run, yaml (the default) or json for the manifest");
  return {
      .title = {"Jobs", "run", "Run a job to completion, here or on a coordinator"},
      .rows = std::move(rows),
      .asks = {&w->o.target, "--namespace"},
      .footer =
          "Examples:\n  muster run job.yaml\n"
          "  muster run -n 20 -j 4 --retries 2 -- sh -c 'echo $JOB_COMPLETION_INDEX'\n"
          "  muster run gzip ::: data/*\n"
          "  muster run --each files.txt -- convert {} {.}.png\n"
          "  find . -name '*.log' -print0 | muster run -0 --each - -- gzip {}\n"
          "  muster run --each-csv grid.csv -- ./train --lr {lr} --seed {seed}\n"
          "  muster run --commands jobs.txt\n"
          "  muster run --data-dir ./sweep job.yaml      # continue after a crash\n"
          "  muster run --data-dir ./sweep --retry-failed\n"
          "CMD runs as typed, with this shell's environment and directory. A command that cannot "
          "be started fails the job.\n" +
          std::string(kScripts) + kPlaceholders + kOutputFiles +
          "Exit codes: 0 Complete, 1 Failed, 4 out of descriptors, threads or memory, 124 "
          "--timeout expired, 130 interrupted, 141 (SIGPIPE) the reader of the "
          "output has left, which acts like Ctrl-C; with -n 1, that of the command.",
      .takes_command = true,
      .takes_values = true,
      .script = script_reader({w, &w->o}, false),
      .finish = [w](const Given& given) -> Judged {
        return judged(read_run(*w, w->retry, given), w->o);
      }};
}

}  // namespace muster::cli
