// muster verify: recounts every job, in a data-dir or backup, or through the coordinator.
#include "cli/verbs/verbs.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/json.hpp"
#include "coordinator/offline.hpp"

#include <iostream>

namespace muster::cli {
namespace {

int tell(const std::vector<std::string>& mismatches, uint64_t commit, uint64_t jobs,
         uint64_t attempts, uint64_t counted) {
  for (const std::string& mismatch : mismatches) std::cout << mismatch << "\n";
  std::cout << (mismatches.empty() ? "sound: " : "NOT SOUND: ") << jobs << " jobs and " << attempts
            << " attempts at commit " << commit << "; every attempt of " << counted
            << " jobs was recounted\n";
  return mismatches.empty() ? kDone : kFailed;
}

}  // namespace

int execute(const VerifyOptions& options) {
  if (!options.data_dir.empty()) {
    auto verified = coordinator::verify_data_dir(options.data_dir);
    if (!verified.ok()) return fail(verified.error());
    return tell(verified->mismatches, verified->commit, verified->jobs, verified->attempts,
                verified->counted);
  }
  const auto client = connect(options.target);
  if (Status there = allow_long_answers(*client, options.target, options.timeout_ms); !there)
    return fail(there.error());
  auto answer = object(*client, "/apis/muster.dev/v1/verification");
  if (!answer) return fail(answer.error());
  std::vector<std::string> mismatches;
  for (const Json& line : at(*answer, {"mismatches"})) mismatches.push_back(line);
  auto number = [&answer](const char* name) {
    return static_cast<uint64_t>(number_at(*answer, {name}));
  };
  return tell(mismatches, number("commit"), number("jobs"), number("attempts"), number("counted"));
}

}  // namespace muster::cli
