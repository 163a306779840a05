#include "client/terminal/status_line.hpp"

#include "base/printable.hpp"
#include "client/terminal/safe_output.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <iostream>
#include <sys/ioctl.h>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr Millis kRedraw = 100;  // minimum time between updates on a terminal
constexpr Millis kPauseMin = 1'000, kPauseMax = 60'000;  // between plain lines

size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

// Colors the filled part of the bar green, and fields that start with "failed" red.
std::string painted(const std::string& line, const Paint& paint) {
  if (!paint.on()) return line;
  std::string out;
  for (size_t from = 0; from < line.size();) {
    size_t end = line.find("  ", from);
    end = end == std::string::npos ? line.size() : end + 2;
    std::string field = line.substr(from, end - from);
    if (field.starts_with("failed")) {
      field = paint.red(field);
    } else if (field.starts_with("[")) {
      const size_t full = std::min(field.find_first_not_of('#', 1), field.size());
      field = "[" + paint.green(field.substr(1, full - 1)) + field.substr(full);
    }
    out += field;
    from = end;
  }
  return out;
}

}  // namespace

std::string bar_text(size_t done, size_t of) {
  const size_t full = kBarColumns * done / std::max<size_t>(1, of);
  return "[" + std::string(full, '#') + std::string(kBarColumns - full, '-') + "] ";
}

StatusLine::StatusLine(Millis now, When color)
    : begin_(now), terminal_(is_terminal(STDERR_FILENO)), paint_(color, STDERR_FILENO) {}

void StatusLine::show(Millis now, const std::string& facts,
                      const std::function<std::string()>& text) {
  const bool first = !shown_at_;
  if (within_line()) return;  // which it would erase, or break
  if (terminal_) {
    if (!first && now - *shown_at_ < kRedraw) return;
    raw_err() << "\r\033[K" << painted(cut(visible(text()), terminal_width() - 1), paint_)
              << std::flush;
    dirty_ = true;
  } else {
    const Millis pause = std::clamp(elapsed(now) / 20, kPauseMin, kPauseMax);
    if (!first && (facts == shown_ || now - *shown_at_ < pause)) return;
    std::cerr << text() << std::endl;
  }
  shown_ = facts;
  shown_at_ = now;
}

void StatusLine::clear() {
  if (dirty_) raw_err() << "\r\033[K" << std::flush;
  dirty_ = false;
}

}  // namespace muster::cli
