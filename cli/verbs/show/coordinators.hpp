// Options of muster get coordinators, and what other verbs read of the coordinators.
#pragma once

#include "cli/verbs/verb.hpp"
#include "client/connect/http.hpp"
#include "client/terminal/json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

inline constexpr char kCoordinatorsPath[] = "/apis/muster.dev/v1/coordinators";

struct CoordinatorsOptions {
  Target target;
  std::vector<std::string> names;  // empty: all
  Output output = Output::table;
  bool headers = true;
};

// Whether this word is the kind, or the kind before a slash.
bool is_coordinator_kind(std::string_view word);
// "coordinator/NAME" or "NAME".
std::string coordinator_name(const std::string& word);

// All of them, in the order of their names.
Result<std::vector<Json>> coordinators(ApiClient& client);
// The one of this name; not_found.
Result<Json> coordinator(ApiClient& client, const std::string& name);
// The name of the one that leads; empty: none does.
std::string leader_of(const std::vector<Json>& coordinators);
// The term of the lead; 0: there is none, as of a coordinator that is alone.
int64_t term_of(const std::vector<Json>& coordinators);

int describe_coordinator(ApiClient& client, const std::string& name);
int execute(const CoordinatorsOptions& options);

}  // namespace muster::cli
