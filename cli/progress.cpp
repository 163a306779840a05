#include "cli/progress.hpp"

#include "cli/text.hpp"
#include "core/index_set.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sys/ioctl.h>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr Millis kWindow = 30'000;                     // of the rate
constexpr Millis kRedraw = 100;                        // of the updating line
constexpr Millis kLineMin = 1'000, kLineMax = 60'000;  // between two plain lines
constexpr size_t kBar = 20;                            // columns
constexpr size_t kIndexesMax = 24;                     // characters

size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

}  // namespace

Standing standing_of(const Json& job) {
  Standing s;
  s.completions = number_at(job, {"spec", "completions"}, -1);
  s.succeeded = number_at(job, {"status", "succeeded"});
  s.failed = number_at(job, {"status", "failed"});
  s.running = number_at(job, {"status", "ready"});
  s.active = number_at(job, {"status", "active"});
  s.terminating = number_at(job, {"status", "terminating"});
  s.failed_indexes = text_at(job, {"status", "failedIndexes"});
  if (!s.failed_indexes.empty() && s.completions > 0) {
    s.failed_index_count =
        static_cast<int64_t>(core::IndexSet::parse_lenient(s.failed_indexes, s.completions).size());
  }
  return s;
}

void Rate::add(Millis now, int64_t settled) {
  seen_.emplace_back(now, settled);
  while (seen_.size() > 2 && seen_.front().first < now - kWindow) seen_.pop_front();
}

double Rate::per_second() const {
  if (seen_.size() < 2 || seen_.back().first <= seen_.front().first) return 0;
  return 1000.0 * static_cast<double>(seen_.back().second - seen_.front().second) /
         static_cast<double>(seen_.back().first - seen_.front().first);
}

std::string progress_text(const Standing& s, double per_second, Millis elapsed_ms, size_t bar) {
  std::string out;
  if (s.completions > 0) {
    if (bar > 0) {
      const auto full = static_cast<size_t>(
          static_cast<double>(bar) * static_cast<double>(std::min(s.settled(), s.completions)) /
          static_cast<double>(s.completions));
      out += "[" + std::string(full, '#') + std::string(bar - full, '-') + "] ";
    }
    out += std::to_string(s.succeeded) + "/" + std::to_string(s.completions);
  } else {
    out += std::to_string(s.succeeded) + " succeeded";
  }
  out += "  running " + std::to_string(s.running);
  if (s.active > s.running) out += "  waiting " + std::to_string(s.active - s.running);
  if (s.terminating > 0) out += "  ending " + std::to_string(s.terminating);
  if (s.failed > 0) out += "  failed pods " + std::to_string(s.failed);
  if (s.failed_index_count > 0)
    out += "  failed indexes " + std::to_string(s.failed_index_count) + " (" +
           cut(s.failed_indexes, kIndexesMax) + ")";
  if (per_second > 0) {
    char rate[32];
    std::snprintf(rate, sizeof rate, per_second < 10 ? "  %.1f/s" : "  %.0f/s", per_second);
    out += rate;
    if (s.completions > s.settled()) {
      out += "  eta " + clock_span(static_cast<Millis>(
                            1000 * static_cast<double>(s.completions - s.settled()) / per_second));
    }
  }
  return out + "  " + clock_span(elapsed_ms);
}

Progress::Progress(Millis now)
    : begin_(now),
      terminal_(isatty(STDERR_FILENO) == 1 &&
                std::string(std::getenv("TERM") ? std::getenv("TERM") : "") != "dumb") {}

void Progress::show(const Standing& standing, Millis now) {
  rate_.add(now, standing.settled());
  const Millis elapsed = now - begin_;
  const bool first = shown_at_ == 0;
  if (terminal_) {
    if (!first && now - shown_at_ < kRedraw) return;
    std::cerr << "\r\033[K"
              << cut(progress_text(standing, rate_.per_second(), elapsed, kBar),
                     terminal_width() - 1)
              << std::flush;
    dirty_ = true;
  } else {
    const Millis pause = std::clamp(elapsed / 20, kLineMin, kLineMax);
    if (!first && (standing == shown_ || now - shown_at_ < pause)) return;
    std::cerr << progress_text(standing, rate_.per_second(), elapsed, 0) << std::endl;
  }
  shown_ = standing;
  shown_at_ = now;
}

void Progress::clear() {
  if (dirty_) std::cerr << "\r\033[K" << std::flush;
  dirty_ = false;
}

}  // namespace muster::cli
