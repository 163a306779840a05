// Part dir: a directory under construction. It is built as DIR.part, which only we may enter, and
// appears as DIR once it is complete and durable.
//
// A backup holds the cluster's keys, so whoever could put something else in its way while it is
// made could read them: it is made only where nobody but root and our own user can. What a killed
// process has left is removed by the next one that backs up, or serves, the same data-dir.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <optional>
#include <string>

namespace muster::storage {

// The absolute path without symbolic links; nullopt: there is nothing.
std::optional<std::string> resolved(const std::string& path);

// The absolute path of a backup of `data_dir` (empty: of none) to be made at `dir`, without
// symbolic links. `invalid`: it is in the data-dir, or another user could replace a directory on
// the way to it. `unavailable`: its parent cannot be used.
Result<std::string> backup_place(const std::string& dir, const std::string& data_dir);

class PartDir {
 public:
  // `conflict`: `dir` exists, or another process is making it. `data_dir` remembers it until it is
  // finished or removed; empty: nothing does.
  static Result<PartDir> make(const std::string& dir, const std::string& data_dir = "");
  PartDir(PartDir&& other) noexcept;
  PartDir(const PartDir&) = delete;
  PartDir& operator=(const PartDir&) = delete;
  PartDir& operator=(PartDir&&) = delete;
  ~PartDir();  // removes it, unless it is finished

  const std::string& path() const { return path_; }
  // Makes everything durable and renames the directory to its final name.
  Status finish();

 private:
  PartDir(const std::string& dir, const std::string& data_dir, Fd lock);

  std::string dir_, path_, data_dir_;
  Fd lock_;  // says that its maker lives
};

// Removes what interrupted backups of this data-dir have left. Only for who has locked the
// data-dir; backups that are being made stay.
void remove_interrupted_backups(const std::string& data_dir);

}  // namespace muster::storage
