// muster submit: creates on a coordinator the job that `muster run` would run, and exits.
#include "cli/verbs/run/wanted_job.hpp"
#include "cli/verbs/verbs.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"

#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace muster::cli {
namespace {

struct Submitted {
  std::string name, ns;
  KnownObject known;
};

// Creates the job and prints it; or the exit code.
std::variant<Submitted, int> create(const SubmitOptions& given) {
  RunOptions options = given.run;
  auto inputs = take_inputs(options);
  if (!inputs) return fail(inputs.error(), "submit");
  const auto inputs_dir = shared_inputs_dir();
  if (*inputs && !inputs_dir) return fail(inputs_dir.error());
  auto wanted =
      wanted_job(options, kParallelismMax, *inputs, inputs_dir ? *inputs_dir : std::string());
  if (!wanted) return fail(wanted.error(), options.completions > 0 ? "submit" : "");
  if (options.dry_run) return print_manifest(*wanted, options.output);
  const auto client = connect(options.target);
  if (*inputs)
    if (Status shared = share_inputs(*inputs_dir, wanted->job.inputs); !shared)
      return fail(shared.error());
  auto job = create_wanted(*client, *wanted);
  if (!job) return fail(job.error());
  std::string name = text_at(*job, {"metadata", "name"});
  if (options.output == Output::json)
    std::cout << dumped(*job, 4) << std::endl;
  else if (options.output == Output::yaml)
    std::cout << to_yaml(*job) << std::flush;
  else
    std::cout << "job.batch/" << name << (options.output == Output::name ? "" : " created")
              << std::endl;
  return Submitted{std::move(name), std::move(wanted->ns), known_of(*job)};
}

}  // namespace

int execute(const SubmitOptions& options) {
  const auto created = create(options);  // its client is already destroyed: only one per thread
  if (const int* code = std::get_if<int>(&created)) return *code;
  if (!options.wait) return kDone;
  WaitOptions wait;
  wait.target = options.run.target;
  const auto& [name, ns, known] = std::get<0>(created);
  wait.target.ns = ns;
  wait.jobs = {name};
  wait.known = known;
  wait.timeout_ms = options.run.timeout_ms;
  return execute(wait);
}

}  // namespace muster::cli
