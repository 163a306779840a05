// SbatchOptions: options of Slurm's sbatch, as flags of `muster submit` and `muster run`.
//
// What cannot be done and would change what a script computes is an error. What only says where, by
// whose account or how visibly a job runs in Slurm has no meaning here and is listed, so that the
// user can be told once.
#pragma once

#include "base/result.hpp"
#include "client/inputs/batch_script.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

struct SbatchOptions {
  std::vector<std::string> flags;            // "--mem=4000Mi"
  std::vector<std::string> without_meaning;  // "--qos", each once, in order
  std::optional<std::string> output, error;  // files, for those who can write them
  std::vector<std::string> notices{};        // "--mail=ada", for those who can send it
  std::vector<std::string> partitions{};     // one of them is the queue, if there is one
};

// `file`: as shown in messages. Of several lines with the same option, the last one counts.
// invalid: says what is wrong, with its place. `cpus`: of --cpus on the command line, which
// --mem-per-cpu is multiplied by; empty: those of the script.
Result<SbatchOptions> read_sbatch(const std::string& file, const std::vector<OptionLine>& lines,
                                  const std::string& cpus);

}  // namespace muster::cli
