// Wishes: what a typed command says of its job, besides what it runs.
#pragma once

#include "core/spec/fields/mpi.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

// What `muster mpirun`, or `muster submit --mpi`, sets besides the job.
struct MpiWishes {
  core::MpiKind kind = core::MpiKind::any;
  uint32_t slots = 1;               // ranks that each host may get
  uint32_t cpus_per_rank = 0;       // 0: not given
  bool cpus_by_default = false;     // nothing says how many CPUs a host requests
  int32_t ranks = 0;                // 0: one per slot
  std::vector<std::string> passed;  // names of variables for the launcher to pass on
  bool tag_output = false;
  // For the launcher, as given to it: --bind-to and --map-by. Empty: not given.
  std::string bind_to, map_by;
  std::vector<std::string> mca;  // of Open MPI: names and values in turn
  bool oversubscribe = false;    // more ranks than slots, and more slots than CPUs
  std::string stdin_path;        // what rank 0 reads; empty: nothing
  bool detach = false;           // on a coordinator, ranks outlive the client
  bool batch = false;            // the command calls the launcher itself
};

// The inputs of a command's indexes, besides their numbers.
struct EachWishes {
  std::vector<std::string> files;  // a line is an input; "-" is stdin
  bool null = false;               // inputs end with a null byte instead of a line break
  std::string csv;                 // in place of `files`: a record is an input
  std::string array;               // in place of both: "1-100"
  std::string commands{};          // in place of all: a line is the command of an index
  // In place of all: inputs that were typed, `::: A B ::: C`; all combinations.
  std::vector<std::vector<std::string>> values{};
  bool any() const {
    return !files.empty() || !csv.empty() || !array.empty() || !commands.empty() || !values.empty();
  }
  bool reads_stdin() const {
    return csv == "-" || commands == "-" ||
           std::find(files.begin(), files.end(), "-") != files.end();
  }
};

// What a command needs from its node, and how it is placed.
struct ResourceWishes {
  std::string cpus, memory;                // quantities; empty: none
  std::map<std::string, int64_t> devices;  // by resource
  int64_t time_s = 0;                      // of each pod; 0: no limit
  // The annotations muster.dev/retry-memory and muster.dev/retry-time; empty: none.
  std::string retry_memory, retry_time;
  std::optional<int32_t> max_fails;  // failed indexes before the job fails
  std::string signal;                // the annotation muster.dev/signal; empty: none
  std::optional<int64_t> grace_s;    // between SIGTERM and SIGKILL
  std::string queue;                 // empty: the default one
  std::optional<int32_t> priority;
  std::optional<int32_t> nice;
  bool gang = false;
  std::string placement;  // the annotation muster.dev/placement; empty: as the site does
  std::map<std::string, std::string> node_selector;
  std::string scratch;  // a quantity, or "true": no limit; empty: no scratch directory
  bool private_tmp = false;
  std::map<std::string, std::string> labels;  // of the job
  std::optional<int64_t> ttl_s;               // after which the finished job is deleted
  std::string after;                          // the annotation muster.dev/after; empty: none
  // Who is told of the job's end (muster.dev/mail, notify and notify-on); empty: nobody.
  std::string mail, notify, notify_on;
  std::string begin;  // the annotation muster.dev/begin; empty: none
  bool hold = false;  // the annotation muster.dev/hold
  // Whether attempts that run out of memory or time are followed by others with more.
  bool raises() const { return !retry_memory.empty() || !retry_time.empty(); }
};

// What to do if another job has the name of a job to be created.
enum class IfExists {
  refuse,
  number,   // create J-2, J-3 and so on, whichever is free
  replace,  // delete the other job if it has finished
};

// Which indexes of a job to run again.
struct RetryWishes {
  bool failed = false;  // only the indexes that failed
  std::string index;    // only these; neither: all that did not succeed
  std::string task{};   // only these, by the numbers of --array
  std::string name;     // of the new job; empty: JOB-rN
  std::string job;      // which one, if the directory of a run holds several; else empty
  bool if_any = false;  // having none is no error
};

}  // namespace muster::cli
