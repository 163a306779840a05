// Options of muster run, which are also those of submit and mpirun.
#pragma once

#include "cli/verbs/verb.hpp"
#include "client/follow/pod_output.hpp"
#include "client/inputs/batch_script.hpp"
#include "client/inputs/inputs.hpp"
#include "client/inputs/wishes.hpp"
#include "client/settings/submitter.hpp"
#include "core/spec/values/output_pattern.hpp"

namespace muster::cli {

struct RunOptions {
  Target target;
  std::string file;  // the manifest; empty: the command form
  int32_t completions = 0;
  int32_t parallelism = 0;  // 0: the number of slots
  std::string name;
  IfExists exists = IfExists::refuse;      // of another job with this name, on a coordinator
  std::optional<int32_t> retries;          // backoffLimitPerIndex
  std::optional<int32_t> disruptions_max;  // muster.dev/disruptions-max
  std::vector<std::string> command;
  std::optional<BatchScript> script;  // the command form; `command` are its arguments
  std::optional<std::string> text;    // of `file`, where it can be read only once
  // The partitions that the script names: one of them is the queue, if there is one.
  std::vector<std::string> partitions{};
  std::vector<std::string> warnings;  // to be printed first
  EachWishes each;                    // of the command form, in place of `completions`
  ResourceWishes resources;           // of the command form
  Export exported;                    // likewise
  Variables environment;              // --env
  std::string dir;                    // --chdir, absolute; empty: the current directory
  bool no_limits = false;             // the umask and limits are the node's
  Shown shown = Shown::automatic;     // how to show what pods print
  // Write it to these instead, and stderr to the latter; without one of these, as the other says.
  std::optional<core::OutputPattern> files, err_files;
  std::string out_file, err_file;  // where pods write themselves (output_files.hpp)
  bool quiet = false;              // say nothing of the job unless it fails
  bool keep_order = false;         // show indexes in order
  int slots = 0;                   // 0: `parallelism`, else the CPUs
  std::string data_dir;
  std::optional<RetryWishes> retry;  // of the job in data_dir; then the job need not be given
  bool keep = false;
  bool interactive = false;  // the command runs on our terminal, on a coordinator (shell.hpp)
  std::optional<Millis> timeout_ms;
  std::string log_level = "error";
  std::optional<MpiWishes> mpi;  // the command is an MPI program, and an index is a host
  bool dry_run = false;          // print the manifest and do nothing
  Output output = Output::table;
};

int execute(const RunOptions& options);

}  // namespace muster::cli
