// The head: whether a coordinator can run on its data-dir, and whether the one that does is safe.
#pragma once

#include "cli/doctor/client.hpp"
#include "cli/doctor/limits.hpp"
#include "cli/doctor/place.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli::doctor {

struct PortFacts {
  std::string what;     // "--api"
  std::string address;  // "0.0.0.0:7117"
  bool held = false;    // by the coordinator of this data-dir
  std::string error{};  // why nothing can listen there; empty: something can
  bool taken = false;   // that error is that a program does
};

struct StoreFacts {
  bool answers = false;
  size_t coordinators = 0, in_sync = 0;  // that are on record, and that could take over
};

// What the coordinator itself says.
struct ServiceFacts {
  Reply reply{};
  bool has_metrics = false;
  std::optional<Millis> backup_age_ms{};      // nullopt: there was none
  std::optional<Millis> authority_left_ms{};  // nullopt: it has none
  std::optional<StoreFacts> store{};          // nullopt: it is alone
};

struct HeadFacts {
  std::string config_error{};
  PlaceFacts data_dir{};
  std::string not_seen{};  // why it is not known whether a coordinator runs there; empty: it is
  bool outdated = false;   // its executable was replaced since it started
  std::vector<PortFacts> ports{};
  std::optional<ServiceFacts> service{};        // unset: none runs
  std::optional<CertificateFacts> authority{};  // --ca-cert
  std::optional<MungeFacts> munge{};
  LimitFacts limits{};
};

void judge_head(const HeadFacts& facts, Findings& out);

}  // namespace muster::cli::doctor
