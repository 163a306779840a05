// Findings of `muster doctor`: what was looked at, what was found, and what to do about it.
//
// Looking and judging are apart. cli/doctor/look*.cpp fill structs of facts; the judges of
// place.hpp, limits.hpp, client.hpp, node.hpp and head.hpp make findings of them and are pure, so
// tables test what is said of a machine that no test can have.
//
// Invariants: a finding that is not ok says what to do; what could not be looked at is `unknown`,
// never ok.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace muster::cli::doctor {

enum class Level {
  ok,
  unknown,  // it could not be looked at
  warning,  // works, but slower, or not for everybody, or not for long
  problem,  // does not work
};
const char* name_of(Level level);

struct Finding {
  Level level = Level::ok;
  std::string check;  // what was looked at: "work-dir", "clock"
  std::string found;  // a clause: "ext4, 40 of 100 GiB free"
  std::string advice{};
  // Of a node: pods there may fail for no fault of theirs, and nothing else in the agent's log says
  // so.
  bool breaks_pods = false;
};

class Findings {
 public:
  void ok(std::string check, std::string found) {
    all_.push_back({Level::ok, std::move(check), std::move(found)});
  }
  Finding& unknown(std::string check, std::string found, std::string advice) {
    return add(Level::unknown, std::move(check), std::move(found), std::move(advice));
  }
  Finding& warn(std::string check, std::string found, std::string advice) {
    return add(Level::warning, std::move(check), std::move(found), std::move(advice));
  }
  Finding& problem(std::string check, std::string found, std::string advice) {
    return add(Level::problem, std::move(check), std::move(found), std::move(advice));
  }
  Finding& add(Level level, std::string check, std::string found, std::string advice) {
    all_.push_back({level, std::move(check), std::move(found), std::move(advice)});
    return all_.back();
  }
  const std::vector<Finding>& all() const { return all_; }

 private:
  std::vector<Finding> all_;
};

// "3.2 GiB", "512 MiB", "0 bytes"
std::string size_text(uint64_t bytes);
// "2.4 ms", "1.31 s"
std::string micros_text(uint64_t micros);

}  // namespace muster::cli::doctor
