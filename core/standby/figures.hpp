// Figures: what a leading coordinator knows of itself and of the others, for those who look on, and
// what they may have changed.
#pragma once

#include "base/clock.hpp"
#include "core/standby/configuration.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::core::standby {

struct MemberFigures {
  std::string name;
  Place place;
  bool leads = false, in_sync = false, connected = false;
  uint64_t commit = 0;                  // the last one it has, at least; 0: not known
  std::optional<Millis> round_trip_us;  // of the last beat
};

struct LeadFigures {
  uint64_t term = 0;
  bool store_answers = false;
  // The store has lost the configuration: nobody can take over, and no replica can be added.
  bool store_wiped = false;
  uint64_t commit = 0;  // the last one that is durable on all in-sync replicas
  std::vector<MemberFigures> members;

  // The one that leads; null: none.
  const MemberFigures* leader() const {
    for (const MemberFigures& one : members)
      if (one.leads) return &one;
    return nullptr;
  }
  // How many commits this member lacks, at most; nullopt: not known.
  std::optional<uint64_t> lag(const MemberFigures& member) const {
    const MemberFigures* first = leader();
    if (first == nullptr || member.commit == 0) return std::nullopt;
    return first->commit > member.commit ? first->commit - member.commit : 0;
  }
};

enum class LeadChange { promote, demote, remove };

}  // namespace muster::core::standby
