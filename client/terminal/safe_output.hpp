// SafeOutput: while it exists, what is written to std::cout and std::cerr is made visible
// (base/printable.hpp), so that nothing that other users chose acts on the terminal or hides in a
// table, a message or a document.
//
// All output passes here, so no verb can forget it. What is meant to reach the terminal as it is
// goes to raw_out() and raw_err(): the output of pods, and our own colors.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>

namespace muster::cli {

class SafeOutput {
 public:
  SafeOutput();
  ~SafeOutput();
  SafeOutput(const SafeOutput&) = delete;
  SafeOutput& operator=(const SafeOutput&) = delete;

 private:
  class Filter;
  std::unique_ptr<Filter> out_, err_;
};

// Writes what std::cout holds; nullopt: all that was ever written there has been. Else why not, as
// far as that is known.
std::optional<std::string> lost_output();

// Keep their order with what is written to std::cout and std::cerr.
std::ostream& raw_out();
std::ostream& raw_err();

}  // namespace muster::cli
