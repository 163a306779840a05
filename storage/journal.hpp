// Journal: rows that are on disk, a batch at a time.
//
// One writer. commit() is atomic and synced: when it returns, the rows survive power loss; when it
// fails, nobody knows what is on disk, and the caller ends the process (the restart is the
// recovery). Each batch has a commit number, one above the last; the highest synced one is also
// kept in a small file beside the database, so that a log that lost acknowledged data in silence is
// noticed at open.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::storage {

struct Row {
  std::string key;
  std::optional<std::string> value;  // nullopt: the row is removed
};

// Reading is for any thread, also during a commit. Each reader returns an error when the disk can't
// give what was asked for: `invalid` when it is damaged, `unavailable` when it can't be read.
class Rows {
 public:
  virtual ~Rows() = default;
  virtual Result<std::optional<std::string>> get(std::string_view key) = 0;
  // Calls visit(key, value) for all keys with this prefix, ascending, until it returns false. What
  // was visited before an error is sound.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  Status scan(std::string_view prefix, const Visit& visit) {
    return scan_from(prefix, prefix, visit);
  }
  // Likewise, from this key on.
  Status scan_from(std::string_view prefix, std::string_view from, const Visit& visit);
  // Likewise, for visitors that know where to go on: at the next key that is at or above the one
  // that they return ("": just the next one); nullopt ends the walk.
  using Walk =
      std::function<std::optional<std::string>(std::string_view key, std::string_view value)>;
  virtual Status walk(std::string_view prefix, std::string_view from, const Walk& visit) = 0;
};

class Journal : public Rows {
 public:
  // Writes and syncs. `unavailable` when the disk is full or fails: nothing was acknowledged, and
  // nothing may be.
  virtual Status commit(const std::vector<Row>& rows) = 0;
  // What the first commit would do by itself: until then one that was opened to be read has changed
  // nothing on disk.
  virtual Status begin_writing() { return Nothing{}; }
  // From any thread: makes `dir`, which must not be there, a copy of the database as it is.
  virtual Status checkpoint(const std::string& dir) {
    return Error{Errc::unavailable, "can't copy it to " + dir + ": it is not on disk", {}};
  }
  // From any thread: reads every byte. `invalid`: something is damaged.
  virtual Status check() { return Nothing{}; }
  // The next commit gets this number.
  virtual Status go_on_at(uint64_t commit) = 0;
  // The number of the last commit; 0 for an empty journal.
  virtual uint64_t last_commit() const = 0;
  // All rows as they are now, whatever is committed later. The journal outlives it.
  virtual std::unique_ptr<Rows> frozen() = 0;
};

inline Status Rows::scan_from(std::string_view prefix, std::string_view from, const Visit& visit) {
  return walk(prefix, from, [&visit](std::string_view key, std::string_view value) {
    return visit(key, value) ? std::optional<std::string>("") : std::nullopt;
  });
}

}  // namespace muster::storage
