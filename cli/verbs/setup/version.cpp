// muster version: version, build and formats of this executable, and the version of the
// coordinator, if one is running.
#include "cli/verbs/setup/build_info.hpp"
#include "cli/verbs/verb.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <iostream>

namespace muster::cli {

struct VersionOptions {
  Target target;
  bool client_only = false;
  Output output = Output::table;
};

namespace {

constexpr Millis kVersionPatience = 3'000;  // not worth a longer wait

std::string versions_text(const Json& map) {
  std::string text;
  for (const auto& [name, value] : map.items()) {
    text += (text.empty() ? "" : ", ") + name + " " +
            (value.is_string() ? value.get<std::string>() : dumped(value));
  }
  return text;
}

void print(const Json& info, Output output) {
  if (is_structured(output)) {
    std::cout << structured_text(info, output);
    return;
  }
  const Json& client = info["client"];
  std::cout << "muster " << text_at(client, {"version"}) << " (" << text_at(client, {"revision"})
            << ", " << text_at(client, {"build"}) << ", " << text_at(client, {"compiler"}) << ")\n"
            << "formats: " << versions_text(client["formats"]) << "\n"
            << "protocols: " << versions_text(client["protocols"]) << "\n";
  if (output == Output::wide)
    std::cout << "libraries: " << versions_text(client["libraries"]) << "\n";
  const Json& server = at(info, {"coordinator"});
  if (server.is_null()) return;
  const std::string error = text_at(server, {"error"});
  std::cout << "coordinator" << (error.empty() ? " at " + text_at(server, {"address"}) : "") << ": "
            << (error.empty() ? text_at(server, {"version"}) : error) << "\n";
}

}  // namespace

int execute(const VersionOptions& options) {
  Json info = {{"client", build_info()}};
  int code = kDone;
  if (!options.client_only) {
    const auto client = connect(options.target);
    client->set_timeout(std::min(options.target.request_timeout_ms, kVersionPatience));
    client->set_patience(0);
    auto version = object(*client, "/version");
    info["coordinator"] = {{"address", client->address()}};
    if (version) {
      info["coordinator"]["version"] = text_at(*version, {"gitVersion"});
    } else {
      // If the user named no coordinator, a missing one is reported but is not a failure.
      info["coordinator"]["error"] = one_line(version.error().message);
      if (options.target.named) code = exit_code(version.error().code);
    }
  }
  print(info, options.output);
  std::cout.flush();
  return code;
}

Verb version_verb() {
  auto o = std::make_shared<VersionOptions>();
  return {
      .title = {"About", "version", "Show the versions of this executable and of the coordinator"},
      .rows = {{"--client", "", "Show only the version of this executable", &o->client_only},
               {"-o,--output", "FORM", "Output format:", &o->output,
                one_of({"wide", "json", "yaml"})}},
      .asks = {&o->target, ""},
      .footer = "Examples:\n  muster version --client\n  muster version -o yaml",
      .finish = as_given(o)};
}

}  // namespace muster::cli
