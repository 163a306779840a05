// UserTerminal: the terminal that muster runs in, while a command in a pod uses it. Everything
// typed, including Ctrl-C, then goes to the command.
#pragma once

#include "base/terminal_input.hpp"

#include <atomic>
#include <termios.h>

namespace muster::cli {

class UserTerminal {
 public:
  UserTerminal() = default;
  ~UserTerminal() { restore(); }
  UserTerminal(const UserTerminal&) = delete;
  UserTerminal& operator=(const UserTerminal&) = delete;

  static bool is_there();  // as standard input
  // Call it once. restore() undoes it: call that, from any thread, before each message to the user
  // and before every exit.
  void make_raw();
  void restore();

  static TerminalInput opened();  // its size, and TERM
  static TerminalInput resized();

 private:
  termios before_{};
  std::atomic<bool> raw_ = false;
};

}  // namespace muster::cli
