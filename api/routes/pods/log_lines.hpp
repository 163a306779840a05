// LogLines: makes one text of a container's outputs, its lines in the order of their times.
//
// Of lines with the same time, those of the first output come first. A line that is not complete is
// kept back until it is, unless it is longer than kPiece or nothing follows. A single output
// without times is passed on as it comes.
//
// Pure; the caller reads the outputs (log_stream.hpp).
#pragma once

#include "api/request/backend.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace muster::api {

// RFC 3339 with nanoseconds, as in Kubernetes' logs: "2026-03-01T12:00:00.250000000Z".
std::string log_time_text(Millis at);

class LogLines {
 public:
  static constexpr size_t kPiece = 16 << 10;  // as Kubernetes' runtimes

  // `timestamps`: begin each line with its time.
  LogLines(size_t outputs, bool timestamps)
      : outputs_(outputs), timestamps_(timestamps), raw_(outputs == 1 && !timestamps) {}

  // What follows in an output. `offset`: of `data` in it. `otherwise`: the time of lines for which
  // there are no marks.
  void add(size_t output, int64_t offset, std::string data, const std::vector<LogMark>& marks,
           Millis otherwise);
  // Nothing follows at present, or ever, so the other outputs do not wait for it.
  void pause(size_t output) { outputs_[output].state = State::paused; }
  void end(size_t output) { outputs_[output].state = State::ended; }
  // Whether something must be added to this output before take() can go on.
  bool wants(size_t output) const;
  // What can be printed now.
  std::string take();
  // Nothing is expected of any output at present; once taken, there is nothing left.
  bool paused() const;

 private:
  enum class State : uint8_t { reading, paused, ended };
  struct Output {
    State state = State::reading;
    std::string data;
    size_t at = 0;        // of `data`, what comes next
    int64_t offset = 0;   // of `data` in the output
    size_t searched = 0;  // no line ends before
    std::deque<LogMark> marks;
    Millis otherwise = 0;
    bool within_line = false;  // its beginning has been taken
  };
  // How much of an output can be taken as one piece; 0: nothing.
  size_t piece(Output& output) const;
  static Millis time_of(Output& output, size_t size);

  std::vector<Output> outputs_;
  const bool timestamps_, raw_;
};

}  // namespace muster::api
