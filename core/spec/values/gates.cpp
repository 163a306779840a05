#include "core/spec/values/gates.hpp"

namespace muster::core {

namespace {

struct Row {
  const char* name;
  bool Gates::*gate;
};

constexpr Row kRows[] = {
    {"JobBackoffLimitPerIndex", &Gates::backoff_limit_per_index},
    {"JobSuccessPolicy", &Gates::success_policy},
    {"ElasticIndexedJob", &Gates::elastic_indexed},
    {"JobPodFailurePolicy", &Gates::pod_failure_policy},
    {"JobPodReplacementPolicy", &Gates::pod_replacement_policy},
    {"JobManagedBy", &Gates::managed_by},
};

}  // namespace

Result<Gates> parse_gates(std::string_view text, Gates gates) {
  while (!text.empty()) {
    std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    size_t equals = one.find('=');
    std::string_view name = one.substr(0, equals);
    std::string_view value = equals == one.npos ? "" : one.substr(equals + 1);
    bool Gates::*gate = nullptr;
    std::string known;
    for (const Row& row : kRows) {
      if (name == row.name) gate = row.gate;
      known += (known.empty() ? "" : ", ") + std::string(row.name);
    }
    if (!gate)
      return Error{Errc::invalid,
                   "unknown feature gate \"" + std::string(name) + "\"; known gates: " + known,
                   {}};
    if (value != "true" && value != "false")
      return Error{Errc::invalid,
                   "feature gate \"" + std::string(one) + "\": write " + std::string(name) +
                       "=true or " + std::string(name) + "=false",
                   {}};
    gates.*gate = value == "true";
  }
  return gates;
}

}  // namespace muster::core
