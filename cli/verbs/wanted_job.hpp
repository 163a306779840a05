// WantedJob: the job that `muster run` or `muster submit` was asked for: its manifest, made of a
// command or read from a file.
#pragma once

#include "base/result.hpp"
#include "cli/client/http.hpp"
#include "cli/client/inputs.hpp"
#include "cli/client/manifests.hpp"
#include "cli/client/run_identity.hpp"
#include "cli/settings/options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

struct WantedJob {
  RunIdentity job;
  std::string text;  // as sent to the API
  std::string ns;
  std::optional<Document> document{};  // nothing: it was made of a command
  std::vector<Document> configs{};     // config maps in the same file, to be stored before
};

// Stores the config maps that came with a job, or replaces those of their names.
Status put_configs(ApiClient& client, const std::vector<Document>& configs, const std::string& ns);
// Both: the config maps, then the job, of which this is returned.
Result<Json> create_wanted(ApiClient& client, const WantedJob& wanted);

// Reads the inputs of the command, if it has any, and sets the number of its indexes. invalid also
// if something is piped to stdin that nothing would read.
Result<std::optional<Inputs>> take_inputs(RunOptions& options);

// `slots`: default parallelism of the command form. `inputs_dir`: where inputs will be that the
// manifest cannot carry; empty: the caller names the file.
Result<WantedJob> wanted_job(const RunOptions& options, int64_t slots,
                             const std::optional<Inputs>& inputs, const std::string& inputs_dir);

// Prints what would be sent, as YAML or, if asked for, JSON; returns kDone.
int print_manifest(const WantedJob& wanted, Output output);

// Where the inputs of jobs are that coordinators run, until the user removes them: a directory of
// the user's, which their nodes must see, too. invalid: HOME is not set.
Result<std::string> shared_inputs_dir();
// Writes inputs that the manifest does not carry. Nothing to do without any.
Status write_inputs(const std::string& dir, const InputsFile& inputs);
// The same, for the nodes of a coordinator; tells the user where they are.
Status share_inputs(const std::string& dir, const InputsFile& inputs);

}  // namespace muster::cli
