// Options: the parsed command line, one plain struct per verb (drill: drill/drill_options.hpp).
//
// Verbs do not see the parser (cli/grammar/parser.hpp). A struct is checked as far as the command
// line and the configuration allow: durations parse, kinds exist.
#pragma once

#include "agent/agent.hpp"
#include "base/clock.hpp"
#include "client/follow/pod_output.hpp"
#include "client/inputs/wishes.hpp"
#include "client/settings/config.hpp"
#include "client/settings/output_pattern.hpp"
#include "client/settings/submitter.hpp"
#include "client/settings/target.hpp"
#include "coordinator/coordinator.hpp"
#include "drill/drill_options.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::cli {

struct RunOptions {
  Target target;
  std::string file;  // the manifest; empty: the command form
  int32_t completions = 0;
  int32_t parallelism = 0;  // 0: the number of slots
  std::string name;
  std::optional<int32_t> retries;  // backoffLimitPerIndex
  std::vector<std::string> command;
  EachWishes each;                     // of the command form, in place of `completions`
  ResourceWishes resources;            // of the command form
  Export exported;                     // likewise
  Variables environment;               // --env
  std::string dir;                     // --chdir, absolute; empty: the current directory
  Shown shown = Shown::automatic;      // how to show what pods print
  std::optional<OutputPattern> files;  // write it to these instead
  bool keep_order = false;             // show indexes in order
  int slots = 0;                       // 0: `parallelism`, else the CPUs
  std::string data_dir;
  std::optional<RetryWishes> retry;  // of the job in data_dir; then the job need not be given
  bool keep = false;
  std::optional<Millis> timeout_ms;
  std::string log_level = "error";
  std::optional<MpiWishes> mpi;  // the command is an MPI program, and an index is a host
  bool dry_run = false;          // print the manifest and do nothing
  Output output = Output::table;
};

struct SubmitOptions {
  RunOptions run;
  bool wait = false;
};

struct ExecOptions {
  Target target;
  std::string pod;  // either this or `job`
  std::string job;
  std::optional<int64_t> index;  // unset: the only running pod of the job
  std::vector<std::string> command;
  bool input = false;     // pass our standard input on
  bool terminal = false;  // and a terminal; only with `input`
};

struct CoordinatorOptions {
  coordinator::Options options;
  // Also serve on the default Unix sockets.
  bool default_api_socket = false, default_listen_socket = false;
  std::string log_level = "info";
};

struct AgentOptions {
  agent::AgentOptions options;
  std::string log_level = "info";
};

struct CreateOptions {
  Target target;
  bool ns_given = false;  // false: use each manifest's own
  std::vector<std::string> files;
  bool dry_run = false;
  Output output = Output::table;  // table: "job.batch/J created"
};

struct GetOptions {
  Target target;
  bool all_namespaces = false;
  Kind kind = Kind::job;
  std::vector<Kind> more;          // kinds to show after it
  std::vector<std::string> names;  // empty: all
  std::string selector;
  Output output = Output::table;
  bool watch = false;
  bool headers = true;
};

struct DescribeOptions {
  Target target;
  std::optional<Kind> kind;  // unset: a job, pod or node of this name
  std::string name;
};

struct LogsOptions {
  Target target;
  std::string pod;  // one of these three
  std::string job;
  std::string selector;            // all pods with these labels
  std::string indexes;             // "3,7-9"; empty: all
  bool failed = false;             // of a job: only indexes that failed
  std::optional<int64_t> attempt;  // unset: the newest
  bool follow = false;
  std::optional<int64_t> tail;  // lines of each stream; absent: all
  std::optional<bool> prefix;   // unset: with several pods
  int64_t live_max = 16;        // pods to follow at a time; others are printed when they end
};

struct WaitOptions {
  Target target;
  std::vector<std::string> jobs;
  KnownObject known{};    // of the only job, if this process has created it
  bool deleted = false;   // wait until it is gone
  std::string condition;  // empty: Complete or Failed
  bool condition_value = true;
  std::optional<Millis> timeout_ms;
};

struct DeleteOptions {
  Target target;
  bool ns_given = false;  // false: use each manifest's own
  Kind kind = Kind::job;  // job, pod or node
  std::vector<std::string> names;
  std::vector<std::string> files;  // manifests of what to delete, in place of names
  std::string selector;            // in place of names
  bool all = false;                // likewise
  bool ignore_missing = false;     // missing objects are no error
};

// suspend, resume, scale (jobs), cordon, uncordon (nodes).
struct ChangeOptions {
  enum class What { suspend, resume, scale, cordon, uncordon };
  What what = What::suspend;
  Target target;
  std::vector<std::string> names;
  std::optional<int32_t> completions;  // scale; also sets parallelism
  std::optional<int32_t> parallelism;
};

struct DrainOptions {
  Target target;
  std::string node;
  bool now = false;                   // evict at once
  std::optional<Millis> deadline_ms;  // evict after this time
};

struct ApplyOptions {
  Target target;
  std::vector<std::string> files;
  bool dry_run = false;
};

// get attempts
struct AttemptsOptions {
  Target target;
  std::string job;
  std::string index;  // "3,7-9"; empty: all
  bool failed = false;
  Output output = Output::table;
  bool headers = true;
};

struct WhyOptions {
  Target target;
  std::string job;
  std::optional<int64_t> index;
  Output output = Output::table;
};

struct RetryOptions {
  Target target;
  std::string job;
  RetryWishes wishes;
  bool wait = false;
  std::string data_dir;  // of an embedded run; empty: on the coordinator
  int slots = 0;         // with data_dir; 0: as in that run
};

struct VersionOptions {
  Target target;
  bool client_only = false;
  Output output = Output::table;
};

struct ConfigOptions {
  enum class What { view, path };
  What what = What::view;
  std::vector<Setting> settings;  // of all sections
  std::string user_path, system_path;
  Output output = Output::table;
};

struct BackupOptions {
  Target target;
  std::string dir;
  std::string data_dir;  // empty: through the coordinator
  Millis timeout_ms = 3'600'000;
};

struct RestoreOptions {
  std::string dir;
  std::string data_dir;
};

struct VerifyOptions {
  Target target;
  std::string data_dir;  // empty: through the coordinator
  Millis timeout_ms = 3'600'000;
};

// journal inspect, journal export
struct JournalOptions {
  bool exports = false;
  std::string dir;
  Output output = Output::table;
};

// A local cluster, for as long as the command runs.
struct DevOptions {
  uint32_t nodes = 3;
  uint32_t slots = 4;    // of each node
  std::string data_dir;  // absolute; empty: a temporary one
  std::string api = "127.0.0.1:0";
  std::vector<std::string> command;  // run it there, then end; empty: run until Ctrl-C
};

struct ExplainOptions {
  Target target;
  Kind kind = Kind::job;
  std::vector<std::string> path;  // fields, from the object down
  bool recursive = false;
};

struct TopOptions {
  Target target;
  Kind kind = Kind::node;  // node or job
  bool all_namespaces = false;
  bool headers = true;
};

struct CompletionOptions {
  std::string shell;  // bash, zsh, fish
};

struct KubeconfigOptions {
  Target target;
};

// token create, list, revoke, credential; node revoke
struct AccessOptions {
  enum class What { create, list, revoke, credential, revoke_node, show_claims, allow };
  What what = What::list;
  Target target;
  std::string subject;  // create: a user's or node's name, empty: oneself; else what it is about
  bool of_node = false;
  core::NodeClaims claims{};  // create, of a node; allow, unless `freeze`
  bool freeze = false;
  std::optional<Millis> life_ms;
  std::string out;  // create: file to write; empty: stdout
};

using Options = std::variant<
    RunOptions, SubmitOptions, ExecOptions, CoordinatorOptions, AgentOptions, CreateOptions,
    GetOptions, DescribeOptions, LogsOptions, WaitOptions, DeleteOptions, AttemptsOptions,
    WhyOptions, RetryOptions, ChangeOptions, DrainOptions, ApplyOptions, BackupOptions,
    RestoreOptions, VerifyOptions, JournalOptions, VersionOptions, ConfigOptions, CompletionOptions,
    KubeconfigOptions, AccessOptions, DrillOptions, DevOptions, ExplainOptions, TopOptions>;

}  // namespace muster::cli
