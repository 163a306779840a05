// muster verify: recounts every job, in a data-dir or backup, or through the coordinator.
#include "cli/verbs/verb.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/json.hpp"
#include "coordinator/offline.hpp"

#include <iostream>

namespace muster::cli {

struct VerifyOptions {
  Target target;
  std::string data_dir;  // empty: through the coordinator
};

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
  if (Status there = allow_long_answers(*client, options.target); !there)
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

Verb verify_verb() {
  auto o = std::make_shared<VerifyOptions>();
  return {.title = {"State", "verify", "Verify the coordinator's state by recounting all jobs"},
          .rows = {{"--data-dir", "D",
                    "Data directory that no coordinator is serving, or a backup (default: ask the "
                    "coordinator)",
                    &o->data_dir}},
          .asks = {&o->target, ""},
          .footer =
              "Examples:\n  muster verify\n  muster verify --data-dir /backup/last\n"
              "Exit codes: 0 consistent, 1 inconsistent, with a line for each problem.",
          .finish = as_given(o)};
}

}  // namespace muster::cli
