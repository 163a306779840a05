// Journal: durable rows, written in batches.
//
// One writer. commit() is atomic and synced: when it succeeds, the rows survive power loss; when it
// fails, the state on disk is unknown and the caller ends the process (the restart recovers). Each
// batch has a commit number, one above the last; the highest synced one is also kept in a small
// file beside the database, so that open() notices a log that silently lost acknowledged data.
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

// Any thread may read, also during a commit. Every read can fail: `invalid` if the data is damaged,
// `unavailable` if the disk can't be read.
class Rows {
 public:
  virtual ~Rows() = default;
  virtual Result<std::optional<std::string>> get(std::string_view key) = 0;
  // Calls visit(key, value) for all keys with this prefix, ascending, until it returns false. Rows
  // visited before an error are valid.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  Status scan(std::string_view prefix, const Visit& visit) {
    return scan_from(prefix, prefix, visit);
  }
  // Likewise, from this key on.
  Status scan_from(std::string_view prefix, std::string_view from, const Visit& visit);
  // Likewise, but the visitor chooses where to continue: the walk resumes at the next key at or
  // above the one it returns ("": simply the next key); nullopt ends the walk.
  using Walk =
      std::function<std::optional<std::string>(std::string_view key, std::string_view value)>;
  virtual Status walk(std::string_view prefix, std::string_view from, const Walk& visit) = 0;
};

class Journal : public Rows {
 public:
  // Writes and syncs. `unavailable` if the disk is full or fails: then nothing may be acknowledged.
  virtual Status commit(const std::vector<Row>& rows) = 0;
  // Prepares for writing, which the first commit would do otherwise. Until then, an existing
  // database opened for reading is unchanged on disk.
  virtual Status begin_writing() { return Nothing{}; }
  // From any thread: copies the current database to `dir`, which must not exist.
  virtual Status checkpoint(const std::string& dir) {
    return Error{Errc::unavailable, "can't copy it to " + dir + ": it is not on disk", {}};
  }
  // From any thread: reads every block and verifies its checksum. `invalid`: something is damaged.
  virtual Status check() { return Nothing{}; }
  // The next commit gets this number.
  virtual Status go_on_at(uint64_t commit) = 0;
  // The number of the last commit; 0 for an empty journal.
  virtual uint64_t last_commit() const = 0;
  // All rows as they are now, unaffected by later commits. The journal must outlive it.
  virtual std::unique_ptr<Rows> frozen() = 0;
};

inline Status Rows::scan_from(std::string_view prefix, std::string_view from, const Visit& visit) {
  return walk(prefix, from, [&visit](std::string_view key, std::string_view value) {
    return visit(key, value) ? std::optional<std::string>("") : std::nullopt;
  });
}

}  // namespace muster::storage
