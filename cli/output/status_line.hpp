// StatusLine: one line on stderr that says how far something is.
//
// On a terminal it is written over, a few times a second at most, and taken away before anything
// else is said. Elsewhere it is a plain line each time something changed, at most one a second, and
// the rarer the longer it takes.
#pragma once

#include "base/clock.hpp"
#include "cli/output/color.hpp"

#include <cstddef>
#include <functional>
#include <string>

namespace muster::cli {

constexpr size_t kBarColumns = 20;  // of a progress bar

class StatusLine {
 public:
  StatusLine(Millis now, When color);
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool terminal() const { return terminal_; }
  const Paint& paint() const { return paint_; }
  Millis elapsed(Millis now) const { return now - begin_; }

  // `facts`: what a plain line is about; the same again is no change. `text` makes the line.
  void show(Millis now, const std::string& facts, const std::function<std::string()>& text);
  // Takes the updating line away, so that something else can be printed.
  void clear();

 private:
  const Millis begin_;
  const bool terminal_;
  const Paint paint_;
  std::string shown_;
  Millis shown_at_ = -1;  // -1: not yet
  bool dirty_ = false;    // there is an updating line
};

}  // namespace muster::cli
