// Command: a program that a drill has started, with a pipe to its stdin and one from its stdout and
// stderr.
//
// Its input ends when the Command is destroyed or our process dies, however that happens. A process
// that it started on another machine, by ssh, notices through the end of its own input.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"

#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace muster::cli::drill {

class Command {
 public:
  // Asked while it waits; false: give up. Empty: never.
  using GoOn = std::function<bool()>;

  // In its own session, so that Ctrl-C at the terminal does not reach it. unavailable: it cannot be
  // started.
  static Result<Command> start(std::vector<std::string> words);
  Command(Command&& other) noexcept;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  // Ends its input and reaps it; kills it if it has not ended within 20 s.
  ~Command();

  // Writes to its input; false: it no longer reads.
  bool write(const std::string& text);
  void end_input() { in_ = Fd(); }
  // The next line of its output, without the line break. Nothing: its output has ended, the time
  // limit has passed, or go_on() returned false. Lines are cut at 16 MiB.
  std::optional<std::string> line(Millis patience_ms, const GoOn& go_on = {});
  // Ends its input and returns the rest of its output. unavailable: it failed (with the end of its
  // output) or the time limit has passed.
  Result<std::string> finish(Millis patience_ms, const GoOn& go_on = {});

 private:
  explicit Command(pid_t pid) : pid_(pid) {}
  bool more(Millis patience_ms);
  std::optional<int> ended();

  pid_t pid_;
  Fd in_, out_;
  std::string read_;  // not taken yet
};

// Runs it to completion with this input, like Command::finish.
Result<std::string> output_of(std::vector<std::string> words, const std::string& input,
                              Millis patience_ms, const Command::GoOn& go_on = {});

}  // namespace muster::cli::drill
