// Job flags: the rows that run, submit and mpirun share, and what their values come to.
#pragma once

#include "cli/verbs/run/run_options.hpp"

#include <map>

namespace muster::cli {

// The values of the flags, before they are checked.
struct JobWords {
  RunOptions o;
  std::vector<std::string> of_command;  // flags that cannot be combined with a manifest
  std::vector<std::string> rest, variables;
  bool unique = false, replace = false;
  std::string timeout, exported = "ALL", dir, shown, err_shown, printed;
  std::map<std::string, std::vector<std::string>> resources;  // by flag
};

// What --help says about scripts.
inline constexpr char kScripts[] =
    "SCRIPT is a file that starts with #!; it is read at once, and runs as one index if no flag "
    "says more. Before its first command, it may have lines with flags: #MUSTER with those above, "
    "and #SBATCH with Slurm's. Flags before SCRIPT win, and what follows it are its arguments.\n";

// What --help says about placeholders.
inline constexpr char kPlaceholders[] =
    "CMD ::: A B... runs CMD for each of these values, as in GNU parallel, without -- before CMD; "
    "several ::: give all combinations. Without {}, the values are its last arguments.\n"
    "With --each, {} in a word of CMD is the input: {.} without extension, {/} basename, {//} "
    "directory, {/.} basename without extension, {#} its number from 1, {1} {2.} {3/} columns. "
    "An input never splits a word and is not interpreted by a shell. It is also in MUSTER_INPUT, "
    "and its columns, if there are several, are in MUSTER_INPUT_1 and so on. Without {}, CMD gets "
    "only these variables. If something is piped in and CMD has {}, --each - is the default.\n";

// Each adds rows that point into `w`. For a job made from a command:
void add_command_rows(FlagRows& rows, JobWords& w, const char* retries);
// For the job: a manifest, or a command and its indexes.
void add_job_rows(FlagRows& rows, JobWords& w);
// Of the latter, those that say which place an index needs, and how to read them.
void add_place_rows(FlagRows& rows, JobWords& w);
// And those that apply to an MPI program, whose indexes are hosts.
void add_host_rows(FlagRows& rows, JobWords& w);
std::optional<Usage> read_resources(JobWords& w);
// For how the job is run.
void add_run_rows(FlagRows& rows, JobWords& w);
// -o is either a form of what is printed or, as in sbatch, the file of --output.
void add_dry_run_rows(FlagRows& rows, JobWords& w, const char* output);

// Moves the value of -o to `output`, the value of --output, unless it is one of the forms.
std::optional<Usage> read_short_output(std::string& text, const std::vector<std::string>& forms,
                                       std::string& output);
// Reads the file of --error of muster run, once read_shown() has read that of --output.
std::optional<Usage> read_err_file(const std::string& text, RunOptions& o);

// Reads "tag", "plain", "none" or a pattern; the first two used to be "prefix" and "raw".
std::optional<Usage> read_shown(const std::string& text, RunOptions& o);

// Reads the environment and the directory.
std::optional<Usage> read_surroundings(JobWords& w);

// Reads the whole command: everything after `--`, or all arguments if there is no `--`.
std::optional<Usage> read_command(const std::vector<std::string>& rest,
                                  const std::vector<std::string>& tail,
                                  std::vector<std::string>& command);

// Reads the rows that add_job_rows() added.
std::optional<Usage> read_job(const std::string& verb, JobWords& w, const Given& given);

}  // namespace muster::cli
