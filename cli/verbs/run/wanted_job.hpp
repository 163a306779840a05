// WantedJob: the job that `muster run` or `muster submit` was asked for. Its manifest is made from
// a command or read from a file.
#pragma once

#include "base/result.hpp"
#include "cli/verbs/run/run_options.hpp"
#include "client/connect/http.hpp"
#include "client/documents/manifests.hpp"
#include "client/inputs/inputs.hpp"
#include "client/inputs/run_identity.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

struct WantedJob {
  RunIdentity job;
  std::string text;  // as sent to the API
  std::string ns;
  std::optional<Document> document{};     // absent: it was made from a command
  std::vector<Document> configs{};        // config maps in the same file, to be stored first
  std::vector<std::string> partitions{};  // the first that is a queue is the job's
};

// Stores the config maps that came with a job, replacing any with the same names.
Status put_configs(ApiClient& client, const std::vector<Document>& configs, const std::string& ns);
// Stores the config maps, then creates the job and returns it. `exists`: what to do if another job
// has its name. Warns if none of its partitions is a queue. `quiet`: without the warnings of the
// API about a command.
Result<Json> create_wanted(ApiClient& client, const WantedJob& wanted, IfExists exists,
                           bool quiet = false);

// Prints the warnings of the options, reads the inputs of the command, if it has any, and sets the
// number of its indexes. Also invalid: something is piped to stdin that nothing would read.
Result<std::optional<Inputs>> take_inputs(RunOptions& options);

// Keeps what is piped to `muster mpirun` for rank 0, after having read all of it.
Status take_stdin(RunOptions& options);

// Default parallelism of a command on a coordinator, where nodes may join later: the most that an
// Indexed job of any size may have.
constexpr int64_t kParallelismMax = 10'000;

// `slots`: default parallelism of the command form. `inputs_dir`: where to put inputs that the
// manifest cannot carry; empty: the caller names the file.
Result<WantedJob> wanted_job(const RunOptions& options, int64_t slots,
                             const std::optional<Inputs>& inputs, const std::string& inputs_dir);

// Prints what would be sent, as YAML or, if asked for, JSON; returns kDone.
int print_manifest(const WantedJob& wanted, Output output);

// The user's directory for the inputs of jobs that coordinators run, where they stay until the user
// removes them. The nodes must see it too. invalid: HOME is not set.
Result<std::string> shared_inputs_dir();
// Writes inputs that the manifest does not carry; does nothing if there are none.
Status write_inputs(const std::string& dir, const InputsFile& inputs);
// The same, for the nodes of a coordinator; tells the user where they are.
Status share_inputs(const std::string& dir, const InputsFile& inputs);

}  // namespace muster::cli
