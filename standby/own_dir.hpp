// OwnDir: what a data-dir says about its part in a cluster with several coordinators.
//
//   DIR/standby    JSON: the cluster, the name of this member and its seats, the latest first
//                  (core/standby/configuration.hpp), and the other members, as far as they are
//                  known. With it, a coordinator does not start alone.
#pragma once

#include "base/result.hpp"
#include "core/standby/configuration.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::standby {

inline constexpr char kNote[] = "standby";

struct OwnNote {
  std::string cluster;  // empty: none yet
  std::string member;
  // At most kSeatsMax, the latest first: the store, or a write that has not been answered, may name
  // an older one than the latest.
  std::vector<std::string> seats;
  // The addresses of the other coordinators, by their names, as the configuration had them last.
  std::map<std::string, std::string> peers;

  // Takes them from there. False: it has them already.
  bool learn(const core::standby::Configuration& configuration);
};
constexpr size_t kSeatsMax = 16;

// nullopt: there is none. `invalid`: it cannot be read.
Result<std::optional<OwnNote>> read_note(const std::string& data_dir);
// Durable on return.
Status write_note(const std::string& data_dir, const OwnNote& note);

std::string new_seat();

// The identity of this data-dir as long as the machine runs: no other directory has it, whatever
// is copied.
std::string process_of(const std::string& data_dir);

}  // namespace muster::standby
