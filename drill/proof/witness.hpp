// Witness: what the pods of a canary record themselves, independently of coordinator, agent and
// keeper.
//
// Each attempt appends a line to its node's file when it begins and another before it exits, each
// with one O_APPEND write(), followed by fsync(). Grammar, one line each, words separated by
// spaces:
//
//   1 start INDEX ATTEMPT UID NODE BOOT BOOT_MS WALL_MS PID TICKS
//   1 end   INDEX ATTEMPT UID NODE BOOT BOOT_MS WALL_MS PID CODE
//
// 1 is the version; UID the pod's; BOOT the boot id of the machine; BOOT_MS its boot clock; TICKS
// the start time of the process as in /proc/PID/stat; CODE the exit code that follows.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "core/ids.hpp"
#include "drill/proof/canary.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli::drill {

struct WitnessLine {
  bool end = false;
  PodKey pod;
  std::string uid, node, boot;
  Millis boot_ms = 0, wall_ms = 0;
  int32_t pid = 0;
  uint64_t ticks = 0;  // for a start
  int32_t code = 0;    // for an end
  bool operator==(const WitnessLine&) const = default;
};

std::string to_text(const WitnessLine& line);  // with its line break
std::optional<WitnessLine> parse_witness(std::string_view text);

struct Testimony {
  std::vector<WitnessLine> lines;  // of all nodes, by boot clock
  uint32_t unreadable = 0;         // lines that cannot be read, except an unterminated last one
};
Testimony parse_testimony(const std::vector<std::string>& files);
// Reads all files of the directory; unavailable: it cannot be read.
Result<Testimony> read_testimony(const std::string& dir);

// Converts the instants of other machines' lines to the boot clock of this machine, whose boot id
// is `boot`, through their wall clocks, which agree to a few milliseconds on a cluster.
// `wall_ahead_ms`: this machine's wall clock minus its boot clock.
Testimony on_one_clock(Testimony testimony, const std::string& boot, Millis wall_ahead_ms);
// This machine's boot id.
std::string boot_id();

// The command of the canary's pods; it ends in the arguments of run_witness.
std::vector<std::string> witness_command(const std::string& executable, const std::string& dir,
                                         const Canary& canary);
// `muster drill witness DIR INDEXES SEED SHORT_MS LONG_MS`: does the work of the attempt that the
// environment identifies, and returns its exit code.
int run_witness(const std::vector<std::string>& words);

}  // namespace muster::cli::drill
