// The grammar of muster dev, which starts a local cluster.
#include "cli/grammar/parser.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace muster::cli {
namespace {

constexpr int64_t kDevNodesMax = 100, kDevSlotsMax = 10'000;

}  // namespace

std::vector<Verb> dev_verbs(CLI::App& root, const std::vector<std::string>& tail) {
  auto o = std::make_shared<DevOptions>();
  Verb verb = new_verb(root, "Daemons", "dev", "Run a local cluster for experiments and tests");
  verb.takes_command = true;
  verb.configured = false;
  CLI::App* app = verb.app;
  app->add_option("--nodes", o->nodes, "Number of nodes, an agent each (default 3)")
      ->type_name("N")
      ->check(whole(1, kDevNodesMax));
  app->add_option("--slots", o->slots, "Maximum pods running at once on each node (default 4)")
      ->type_name("N")
      ->check(whole(1, kDevSlotsMax));
  app->add_option("--data-dir", o->data_dir,
                  "Directory for state and logs, kept (default: a temporary one, removed)")
      ->type_name("D");
  app->add_option("--api", o->api, "Address to serve the HTTP API on (default: a free port)")
      ->type_name("ADDR:PORT");
  app->footer(
      "Examples:\n  muster dev --nodes 5\n  muster dev -- ./test.sh\n"
      "Prints MUSTER_API=unix:PATH to paste into another shell, and the address of the web page. "
      "Daemons that end are restarted. "
      "Ctrl-C terminates the pods and stops the cluster; press it again to stop without waiting "
      "for them. With CMD after --, the cluster runs until CMD exits; MUSTER_API is set for CMD.\n"
      "Exit codes: that of CMD (128+S if signal S ended it); without CMD 0.");
  verb.finish = [o, tail](const Settings&, const Target&) -> Judged {
    auto api =
        normal_address(o->api.ends_with(":0") ? o->api.substr(0, o->api.size() - 1) + "1" : o->api);
    if (!api || api->starts_with("unix:") || api->starts_with("https:"))
      return Usage{"--api: `" + o->api + "` is not an address: write HOST:PORT, such as " +
                   kDefaultApi};
    if (!o->api.ends_with(":0")) o->api = *api;
    if (!o->data_dir.empty()) {
      std::error_code error;
      o->data_dir = std::filesystem::absolute(o->data_dir, error).lexically_normal().string();
      if (o->data_dir.size() > 1 && o->data_dir.ends_with('/')) o->data_dir.pop_back();
    }
    o->command = tail;
    return *o;
  };
  return {verb};
}

}  // namespace muster::cli
