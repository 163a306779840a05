#include "client/inputs/user_terminal.hpp"

#include <csignal>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace muster::cli {

bool UserTerminal::is_there() {
  return isatty(STDIN_FILENO) == 1;
}

void UserTerminal::make_raw() {
  if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
  std::signal(SIGTTOU, SIG_IGN);  // so that we can restore it from the background too
  termios raw = before_;
  cfmakeraw(&raw);
  raw_ = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

void UserTerminal::restore() {
  if (raw_.exchange(false)) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

TerminalInput UserTerminal::opened() {
  TerminalInput frame = resized();
  frame.type = TerminalInput::Type::open;
  const char* const term = std::getenv("TERM");
  if (term != nullptr && TerminalInput::is_term(term)) frame.bytes = term;
  return frame;
}

TerminalInput UserTerminal::resized() {
  TerminalInput frame{.type = TerminalInput::Type::size};
  winsize size{};
  if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) {
    frame.rows = size.ws_row;
    frame.columns = size.ws_col;
  }
  return frame;
}

}  // namespace muster::cli
