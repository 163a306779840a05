// LogTimes: writes the marks (log_marks.hpp) of the outputs that processes here are writing.
//
// Marks stay in memory for the first kFirstMs of a process, so that the many that are shorter cost
// no file: the time of the last write is enough for them. From then on, a mark is written when an
// output has grown since the last look. A reader that finds more than the last look leaves a mark,
// too, so that a line keeps the time with which it was shown.
//
// The marks survive the agent. What was written while none ran gets the time of the last write
// before the next agent's first look. Marks are not synced: after a crash of the machine some may
// be missing, and the next one stands in for them.
#pragma once

#include "agent/files/log_marks.hpp"

#include <map>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace muster::agent {

// When the file was last written to.
Millis modified_ms(const struct stat& info);

class LogTimes {
 public:
  static constexpr Millis kEachMs = 100;   // between two looks
  static constexpr Millis kFirstMs = 500;  // before the first mark is written
  static constexpr size_t kLooks = 256;    // containers in one turn; the others have theirs next

  static std::string path_of(const std::string& output) { return output + "-times"; }

  // A container's process is about to start that writes to `output`.stdout and .stderr. `run`: it
  // is the container's first (0), second (1), … process.
  void begin(const std::string& output, uint16_t run, Millis wall_now);
  // It was started before this agent was.
  void adopt(const std::string& output);
  // It is gone, and what it wrote is in its files.
  void end(const std::string& output);
  void look(Millis wall_now);
  // A reader has found the file with this size and time of modification.
  void seen(const std::string& output, bool err, uint64_t size, Millis modified_ms,
            Millis wall_now);
  // Writes the marks of an output that are still in memory.
  void flush(const std::string& output);
  size_t watched() const { return watched_.size(); }

 private:
  struct Stream {
    LogMark last{};
    std::vector<LogMark> unwritten{};
  };
  struct Watched {
    Millis since = 0;      // when it began, for kFirstMs
    bool unknown = false;  // what was written before has not been read
    Stream out{}, err{};
  };

  static void load(const std::string& output, Watched& watched);
  static void look_at(const std::string& output, Watched& watched, Millis wall_now);
  static void add(Watched& watched, bool err, uint64_t size, Millis at, Millis wall_now);
  static void write(const std::string& output, Watched& watched);

  std::map<std::string, Watched> watched_;
  std::string next_;  // the first of the next turn
};

}  // namespace muster::agent
