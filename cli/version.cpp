// muster version: of this executable, and of the coordinator if there is one.
#include "base/version.hpp"

#include "cli/discovery.hpp"
#include "cli/exit_codes.hpp"
#include "cli/objects.hpp"
#include "cli/verbs.hpp"

#include <iostream>

namespace muster::cli {

int execute(const VersionOptions& options) {
  std::cout << "muster " << kVersion << std::endl;
  if (options.client_only) return kDone;
  auto client = connect(options.target.api);
  if (!client) return fail(client.error());
  (*client)->set_timeout(3'000);
  auto version = object(**client, "/version");
  if (!version) {
    // Nobody asked for a coordinator: that there is none is worth a word, not a failure.
    std::cout << "coordinator: " << version.error().message << "\n";
    return options.target.api.empty() ? kDone : exit_code(version.error().code);
  }
  std::cout << "coordinator at " << (*client)->address() << ": "
            << text_at(*version, {"gitVersion"}) << "\n";
  return kDone;
}

}  // namespace muster::cli
