// SafeOutput: while it exists, what is written to std::cout and std::cerr is made visible
// (base/printable.hpp), so that nothing that other users chose acts on the terminal or hides in a
// table, a message or a document.
//
// All output passes here, so no verb can forget it. What is meant to reach the terminal as it is
// goes to raw_out() and raw_err(): the output of pods, and our own colors.
//
// When the reader of standard output has left (`muster get jobs | head -1`), the next write ends
// this process by SIGPIPE, as it ends other programs, though KJ ignores that signal.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

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

// From now on, a reader that leaves does not end this process at once: the verb has something to
// stop or to finish first. main() then ends it.
void outlive_reader();

// Whether a write to standard output has found that its reader has left.
bool reader_left();

// Ends this process by SIGPIPE, for a shell with code 141.
[[noreturn]] void end_by_sigpipe();

// Keep their order with what is written to std::cout and std::cerr.
std::ostream& raw_out();
std::ostream& raw_err();

// Writes what a pod has printed, as it is. What goes to standard error of our own after that begins
// a line: if the pod has not ended its last one there, it is ended first.
void relay_out(std::string_view bytes);
void relay_err(std::string_view bytes);
// Whether what pods printed ends within a line where standard error goes. It may be continued, so
// what can wait should.
bool within_line();

}  // namespace muster::cli
