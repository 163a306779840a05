#include "cli/verbs/run/wanted_job.hpp"

#include "cli/verbs/run/named_job.hpp"
#include "client/connect/objects.hpp"
#include "client/documents/document_writes.hpp"
#include "client/documents/manifests.hpp"
#include "client/documents/placed.hpp"
#include "client/inputs/first_line.hpp"
#include "client/inputs/mpi_job.hpp"
#include "client/inputs/resources.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/attempts.hpp"
#include "client/news/rounds.hpp"
#include "client/settings/files.hpp"
#include "client/settings/output_files.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/fields/after.hpp"
#include "core/spec/fields/annotations.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <system_error>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace muster::cli {
namespace {

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

// A node may have another file in its place, so this is no error.
void warn_of_trouble(const std::string& program, const std::string& dir) {
  if (program.find('/') == std::string::npos || has_placeholder({program})) return;
  const std::string trouble = start_trouble(std::filesystem::path(dir) / program);
  if (!trouble.empty())
    std::cerr << "muster: warning: " << program << " cannot be started: " << trouble << std::endl;
}

// A file that was given as the only argument is a manifest or a script.
Error neither(Error error, const std::string& file) {
  const auto text = read_file(file);
  if (file == "-" || !text || text->find("apiVersion") != std::string::npos ||
      text->find("kind:") != std::string::npos)
    return error;
  const std::string trouble = start_trouble(file);
  return trouble.empty()
             ? error
             : invalid(shown_path(file) + ": is neither a manifest nor a script: " + trouble);
}

// The program of each index as the manifest has it. What a script contains stays as it is; its
// arguments may refer to inputs, like the words of a command.
Result<std::vector<std::string>> program_of(const RunOptions& options,
                                            const std::optional<Inputs>& inputs) {
  if (!options.each.commands.empty())
    return std::vector<std::string>{"sh", "-c", "$(" + std::string(core::kInputVariable) + ")"};
  std::vector<std::string> words;
  if (options.script) words = command_of(*options.script);
  for (std::string& word : words) word = unexpanded(word);
  if (inputs && !options.command.empty()) {
    auto references = with_references(options.command, *inputs);
    if (!references) return references.error();
    words.insert(words.end(), references->begin(), references->end());
  } else {
    for (const std::string& word : options.command) words.push_back(unexpanded(word));
  }
  return words;
}

// What the job is called after.
std::vector<std::string> called_after(const RunOptions& options) {
  if (options.script) return {options.script->name};
  if (options.each.commands.empty()) return options.command;
  return {options.each.commands == "-" ? "commands" : options.each.commands};
}

// Lets the job's commands reach the coordinator that we were told to use, in the namespace that we
// were, and log in as we do. Others find it as we did.
void add_coordinator(Variables& environment, const Target& target) {
  if (!target.named) return;
  environment["MUSTER_API"] = target.api;
  if (target.ns != "default") environment["MUSTER_NAMESPACE"] = target.ns;
  for (const char* name :
       {"MUSTER_TOKEN_FILE", "MUSTER_CA_FILE", "MUSTER_MUNGE_SOCKET", "MUSTER_COORDINATOR_USER"})
    if (const char* value = std::getenv(name)) environment[name] = value;
}

// Libraries that follow OMP_NUM_THREADS where they have no variable of their own follow the user's.
void set_threads(Variables& environment, const Variables& given, const std::string& count) {
  if (environment.try_emplace("OMP_NUM_THREADS", count).second &&
      !given.contains("OMP_NUM_THREADS"))
    for (const char* name : {"MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OPENBLAS_NUM_THREADS"})
      environment.try_emplace(name, count);
  environment["SLURM_CPUS_PER_TASK"] = count;
}

// The files that pods write to themselves. `wanted`: with its directory.
Status add_files(WantedJob& wanted, const RunOptions& options) {
  for (const auto& [text, flag, file] :
       {std::tuple(&options.out_file, "--output", &wanted.job.process.out),
        std::tuple(&options.err_file, "--error", &wanted.job.process.err)}) {
    if (text->empty()) continue;
    auto pattern = output_file_pattern(*text, wanted.job.dir, !options.each.array.empty());
    if (!pattern) return invalid(std::string(flag) + ": " + pattern.error().message);
    if (options.completions > 1 && *pattern != "/dev/null")
      if (const auto fits = core::OutputPattern::parse(*pattern)->fits(true, true); !fits)
        return invalid(std::string(flag) + ": " + *text +
                       " is the same file for all indexes; add %a, the task or index");
    *file = std::move(*pattern);
  }
  return Nothing{};
}

Result<WantedJob> of_command(const RunOptions& options, int64_t slots,
                             const std::optional<Inputs>& inputs, const std::string& inputs_dir) {
  WantedJob out{{}, "", options.target.ns};
  if (!options.name.empty())
    if (Status valid = check_job_name(options.name, options.completions); !valid)
      return valid.error();
  const int32_t parallelism =
      options.parallelism > 0
          ? options.parallelism
          : static_cast<int32_t>(std::clamp<int64_t>(slots, 1, options.completions));
  if (Status readable = words_are_text(options.command); !readable) return readable.error();
  std::string here = options.dir;
  if (here.empty()) {
    std::error_code gone;
    here = std::filesystem::current_path(gone).string();
    // Its path would be another directory, or none.
    if (gone)
      return invalid("the current directory cannot be used (" + gone.message() +
                     "): change to another one, or choose one with --chdir DIR");
  }
  if (!options.script && !options.command.empty()) warn_of_trouble(options.command.front(), here);
  auto environment = exported(environ, options.exported, here);
  if (!environment) return environment.error();
  out.job.environment = std::move(*environment);
  if (options.exported.what == Export::What::all)
    add_coordinator(out.job.environment, options.target);
  out.job.dir = std::move(here);
  if (!options.no_limits) out.job.process = shell_settings();
  if (Status files = add_files(out, options); !files) return files.error();
  out.job.process.joined = options.files && !options.err_files;  // they hold both, in order
  const int64_t threads = options.mpi ? threads_of_rank(*options.mpi, options.resources)
                                      : threads_of(options.resources);
  if (threads > 0) {
    set_threads(out.job.environment, options.environment, std::to_string(threads));
  }
  std::random_device random;
  auto words = program_of(options, inputs);
  if (!words) return words.error();
  const CommandJob job{options.completions,
                       parallelism,
                       options.name,
                       options.retries.value_or(0),
                       called_after(options),
                       options.environment,
                       options.dir,
                       std::move(*words),
                       options.disruptions_max.value_or(kDisruptionsMax)};
  out.job.manifest = command_manifest(job, [&random](uint32_t below) { return random() % below; });
  out.job.manifest = with_resources(std::move(out.job.manifest), options.resources);
  if (inputs && !inputs->numbers.empty()) add_task_variables(out.job.manifest, inputs->numbers);
  if (options.script) {
    std::error_code ignored;
    add_script_variables(out.job.manifest, std::filesystem::current_path(ignored));
  }
  if (options.mpi) {
    const FoundLauncher launcher =
        options.mpi->batch ? FoundLauncher() : find_launcher(options.mpi->kind);
    if (Status right = check_launcher(*options.mpi, launcher); !right) return right.error();
    out.job.manifest = mpi_manifest(std::move(out.job.manifest), *options.mpi, launcher);
  }
  if (options.resources.queue.empty()) out.partitions = options.partitions;
  if (inputs) out.job.inputs = add_inputs(out.job.manifest, *inputs);
  if (!out.job.inputs.name.empty() && !inputs_dir.empty())
    name_file(out.job.manifest, inputs_dir + "/" + out.job.inputs.name);
  out.job.name_given = !options.name.empty();
  out.text = dumped(
      with_surroundings(out.job.manifest, out.job.environment, out.job.dir, out.job.process));
  return out;
}

// Jobs follow each other by index; Slurm's arrays do by task. With the same numbers, both are the
// same. Other jobs than arrays, and numbers that cannot be read here, have nothing to compare.
Status tasks_pair(ApiClient& client, const std::string& ns, const Json& manifest) {
  const auto mine = Tasks::of(manifest);
  if (!mine) return Nothing{};
  const core::IndexSet own = own_indexes(manifest);
  for (const core::After& one : awaited_jobs(manifest)) {
    if (one.needed != core::Needed::each) continue;
    const auto other = object(client, object_path(Kind::job, ns, one.job));
    if (!other) continue;  // the coordinator says what is wrong with it
    const auto theirs = Tasks::of(*other);
    if (!theirs) continue;
    const std::string here = mine->numbers(own);
    if (here != theirs->numbers(own))
      return invalid("--after: each:" + one.job +
                     " pairs tasks by their position, and here these " + "are " + here +
                     ", there " + theirs->numbers(own_indexes(*other)) +
                     ": use the same --array for both");
  }
  return Nothing{};
}

// The partition of a script is the job's queue if there is a queue of that name: partitions of
// another cluster need not have one here.
Status choose_queue(ApiClient& client, const std::vector<std::string>& partitions, Json& manifest) {
  std::string all;
  for (const std::string& one : partitions) {
    const auto queue = object(client, object_path(Kind::queue, "", one));
    if (queue) {
      manifest["metadata"]["annotations"][std::string(core::kQueueKey)] = one;
      return Nothing{};
    }
    if (queue.error().code != Errc::not_found) return queue.error();
    if (one == "default") return Nothing{};  // there also if none is stored
    all += (all.empty() ? "" : ",") + one;
  }
  if (!all.empty())
    std::cerr << "muster: warning: --partition=" << one_line(all)
              << " is ignored: there is no queue of that name\n";
  return Nothing{};
}

// A job is replaced only if the new one can be created.
Status dependencies_exist(ApiClient& client, const std::string& ns, const Json& manifest) {
  const std::string name = text_at(manifest, {"metadata", "name"});
  for (const core::After& one : awaited_jobs(manifest)) {
    if (one.job == name)
      return invalid("--replace: the new job would wait for job/" + name + ", which it replaces");
    if (auto found = object(client, object_path(Kind::job, ns, one.job)); !found)
      return found.error();
  }
  return Nothing{};
}

}  // namespace

Result<std::optional<Inputs>> take_inputs(RunOptions& options) {
  for (const std::string& warning : options.warnings)
    std::cerr << "muster: warning: " << warning << std::endl;
  const bool for_rank = options.mpi && !options.mpi->batch;  // take_stdin()
  const bool reads = for_rank || options.file == "-" || options.each.reads_stdin();
  if (!reads && stdin_waits())
    return invalid(
        "the piped input would not be read: use --each - to run CMD for each of its lines, or "
        "</dev/null to ignore it");
  if (!options.each.any()) return std::optional<Inputs>();
  int32_t at_once = 0;  // of the array; -j wins
  auto inputs = !options.each.commands.empty() ? read_commands(options.each.commands)
                : options.each.array.empty()   ? read_inputs(options.each)
                                               : array_inputs(options.each.array, at_once);
  if (!inputs) return inputs.error();
  if (options.parallelism == 0) options.parallelism = at_once;
  if (inputs->returns)
    std::cerr << "muster: warning: the lines of the inputs end in CR LF: the CR is dropped\n";
  if (inputs->blank > 0)
    std::cerr << "muster: warning: " << inputs->blank << " of " << inputs->rows.size()
              << " inputs are empty: blank lines count\n";
  options.completions = static_cast<int32_t>(inputs->rows.size());
  return std::optional<Inputs>(std::move(*inputs));
}

Status take_stdin(RunOptions& options) {
  if (!options.mpi || options.mpi->batch || options.dry_run || !stdin_is_piped()) return Nothing{};
  if (std::string path = path_of_stdin(); !path.empty()) {
    options.mpi->stdin_path = std::move(path);
    return Nothing{};
  }
  auto file = rest_of_stdin();
  if (!file) return file.error();
  if (file->name.empty()) return Nothing{};
  const auto dir = shared_inputs_dir();
  if (!dir) return dir.error();
  options.mpi->stdin_path = *dir + "/" + file->name;
  return options.target.named ? share_inputs(*dir, *file) : write_inputs(*dir, *file);
}

Result<WantedJob> wanted_job(const RunOptions& options, int64_t slots,
                             const std::optional<Inputs>& inputs, const std::string& inputs_dir) {
  if (options.completions > 0) return of_command(options, slots, inputs, inputs_dir);
  WantedJob out{{}, "", options.target.ns};
  Manifests manifests = options.text ? parse_manifests(*options.text, shown_path(options.file))
                                     : read_manifests({options.file});
  if (manifests.error) return neither(*manifests.error, options.file);
  for (Document& one : manifests.documents) {
    if (one.kind == "ConfigMap") {
      out.configs.push_back(std::move(one));
      continue;
    }
    if (one.kind == "CronJob")
      return placed(invalid("kind: is CronJob, which a coordinator runs by its schedule: "
                            "muster create -f"),
                    one);
    if (one.kind != "Job" || out.document)
      return placed(invalid("must be one job, and any ConfigMaps that it uses"), one);
    out.document = std::move(one);
  }
  if (!out.document)
    return neither(invalid(shown_path(options.file) + ": has no job"), options.file);
  out.job.manifest = read_json(out.document->json);
  out.text = out.document->json;
  if (!out.document->ns.empty()) out.ns = out.document->ns;
  return out;
}

Status put_configs(ApiClient& client, const std::vector<Document>& configs, const std::string& ns) {
  for (const Document& config : configs) {
    auto put = put_document(client, config, config.ns.empty() ? ns : config.ns);
    if (!put) return put.error();
  }
  return Nothing{};
}

Result<Json> create_wanted(ApiClient& client, const WantedJob& wanted, IfExists exists,
                           bool quiet) {
  if (Status put = put_configs(client, wanted.configs, wanted.ns); !put) return put.error();
  Json manifest = read_json(wanted.text);
  if (!wanted.document) {
    if (Status found = wait_for_repairs(client, wanted.ns, manifest); !found) return found.error();
    if (Status pair = tasks_pair(client, wanted.ns, manifest); !pair) return pair.error();
    if (Status chosen = choose_queue(client, wanted.partitions, manifest); !chosen)
      return chosen.error();
  }
  if (exists == IfExists::replace)
    if (Status there = dependencies_exist(client, wanted.ns, manifest); !there)
      return there.error();
  const std::string first = text_at(manifest, {"metadata", "name"});
  return create_named(client, wanted.ns, first, exists, [&](const std::string& name) {
    if (name != first) manifest["metadata"]["name"] = name;
    if (!wanted.document) {
      auto job = create_job(client, wanted.ns, dumped(manifest), false, quiet);
      return job ? job : in_flags(job.error());
    }
    return create_document(client, *wanted.document, wanted.ns, false,
                           name == first ? "" : dumped(manifest));
  });
}

int print_manifest(const WantedJob& wanted, Output output) {
  if (!wanted.partitions.empty())
    std::cerr << "muster: warning: --partition=" << one_line(wanted.partitions.front())
              << " becomes the job's queue if the coordinator has a queue of that name\n";
  const Json manifest = read_json(wanted.text);
  std::cout << (output == Output::json ? dumped(manifest, 4) + "\n" : to_yaml(manifest))
            << std::flush;
  return kDone;
}

Result<std::string> shared_inputs_dir() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/muster/inputs";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::string(home) + "/.local/state/muster/inputs";
  return invalid("this many inputs need a file in your home directory, but HOME is not set");
}

Status write_inputs(const std::string& dir, const InputsFile& inputs) {
  if (inputs.name.empty()) return Nothing{};
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return invalid("cannot make " + dir + ": " + error.message());
  const std::string path = dir + "/" + inputs.name;
  if (std::filesystem::exists(path, error)) return Nothing{};  // named after its bytes
  return write_file(path, inputs.bytes);
}

Status share_inputs(const std::string& dir, const InputsFile& inputs) {
  if (inputs.name.empty()) return Nothing{};
  if (Status written = write_inputs(dir, inputs); !written) return written;
  std::cerr << "the inputs are in " << dir << "/" << inputs.name
            << "; the nodes must be able to read it, and nodes that run pods as their owners "
               "cannot: for those, submit several jobs, each with up to 64 KiB of inputs"
            << std::endl;
  return Nothing{};
}

}  // namespace muster::cli
