// muster kubeconfig: prints a kubeconfig for this coordinator. Sends no request: the address and
// namespace are those that muster itself would use.
#include "cli/output/exit_codes.hpp"
#include "cli/output/json.hpp"
#include "cli/verbs/verbs.hpp"

#include <iostream>

namespace muster::cli {

int execute(const KubeconfigOptions& options) {
  const Target& target = options.target;
  const Json cluster = {{"name", "muster"}, {"cluster", {{"server", "http://" + target.api}}}};
  const Json context = {
      {"name", "muster"},
      {"context", {{"cluster", "muster"}, {"namespace", target.ns}, {"user", "muster"}}}};
  const Json user = {{"name", "muster"}, {"user", Json::object()}};
  std::cout << to_yaml({{"apiVersion", "v1"},
                        {"kind", "Config"},
                        {"clusters", Json::array({cluster})},
                        {"contexts", Json::array({context})},
                        {"users", Json::array({user})},
                        {"current-context", "muster"}})
            << std::flush;
  return kDone;
}

}  // namespace muster::cli
