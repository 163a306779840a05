// StatusLine: one progress line on stderr.
//
// On a terminal it is rewritten at most ten times a second, and erased before anything else is
// printed. Elsewhere a plain line is printed when something has changed, at most one a second, and
// less often the longer the work takes. While what pods have printed ends within a line, it waits.
#pragma once

#include "base/clock.hpp"
#include "client/terminal/color.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace muster::cli {

constexpr size_t kBarColumns = 20;  // of a progress bar
// "[#####---------------] ". `done` is at most `of`; if that is 0, the bar is empty.
std::string bar_text(size_t done, size_t of);

class StatusLine {
 public:
  StatusLine(Millis now, When color);
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool terminal() const { return terminal_; }
  const Paint& paint() const { return paint_; }
  Millis elapsed(Millis now) const { return now - begin_; }

  // `facts`: a plain line is printed only when they change. `text` builds the line.
  void show(Millis now, const std::string& facts, const std::function<std::string()>& text);
  // Erases the updating line, so that something else can be printed.
  void clear();

 private:
  const Millis begin_;
  const bool terminal_;
  const Paint paint_;
  std::string shown_;
  std::optional<Millis> shown_at_;
  bool dirty_ = false;  // an updating line is on the screen
};

}  // namespace muster::cli
