// muster run: one job to its end. Here (run_here.hpp), or with --api or MUSTER_API on a coordinator
// that is there already.
#include "cli/discovery.hpp"
#include "cli/exit_codes.hpp"
#include "cli/files.hpp"
#include "cli/follow.hpp"
#include "cli/manifests.hpp"
#include "cli/run_here.hpp"
#include "cli/verbs.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <unistd.h>

namespace muster::cli {
namespace {

struct Wanted {
  RunIdentity job;
  std::string text;  // as it goes to the API
  std::string ns;
};

// `slots`: how many may run at once.
Result<Wanted> wanted(const RunOptions& options, int64_t slots) {
  Wanted out{{}, "", options.target.ns};
  if (options.completions > 0) {
    const int32_t parallelism =
        options.parallelism > 0
            ? options.parallelism
            : static_cast<int32_t>(std::clamp<int64_t>(slots, 1, options.completions));
    std::random_device random;
    out.job.manifest = command_manifest(
        {options.completions, parallelism, options.name, options.retries, options.command},
        [&random](uint32_t below) { return random() % below; });
    out.job.name_given = !options.name.empty();
    out.text = dumped(out.job.manifest);
    return out;
  }
  auto documents = read_manifests(options.file);
  if (!documents) return documents.error();
  if (documents->size() != 1) {
    return Error{Errc::invalid,
                 shown_path(options.file) + ": holds " + std::to_string(documents->size()) +
                     " documents, run takes one job",
                 {}};
  }
  Document& document = documents->front();
  out.job.manifest = parse_json(document.json);
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
  const Follow end = follow(*client, signals, job->ns, name, options.timeout_ms,
                            options.target.color, [] { return false; });
  const std::string ns_flag = job->ns == "default" ? "" : " -n " + job->ns;
  const std::string back = "\n  come back: muster wait job/" + name + ns_flag +
                           "\n  end it:    muster delete job/" + name + ns_flag;
  switch (end.how) {
    case Followed::complete:
    case Followed::failed:
      std::cout << summary_text(
                       *client, job->ns, end.job, Paint(options.target.color, STDOUT_FILENO),
                       [&](const Failures& failures) { return more_text(failures, name, job->ns); })
                << std::flush;
      return end.how == Followed::complete ? kDone : kFailed;
    case Followed::interrupted:
      return fail(kInterrupted,
                  "detached: job/" + name + " goes on on " + client->address() + back);
    case Followed::timeout:
      return fail(kTimeout,
                  "--timeout passed: job/" + name + " goes on on " + client->address() + back);
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
                  "run: --data-dir, --slots and --keep are for a run on this machine; --api and "
                  "MUSTER_API name a coordinator");
    }
    return run_there(options);
  }
  auto job = wanted(options, options.slots > 0 ? options.slots : cpu_count());
  if (!job) return fail(job.error());
  return run_here(options, job->ns, std::move(job->job), options.completions > 0 ? "" : job->text);
}

}  // namespace muster::cli
