// TreeSize: how much disk space a directory tree takes.
//
// The tree belongs to a user, who may make it as deep and as wide as the disk allows and change it
// meanwhile. So it is measured in steps of bounded work, with one open directory at a time: from a
// directory to its parent by "..", which must still be the directory that we came from.
//
// Follows no link and crosses no file system.
#pragma once

#include "base/fd.hpp"

#include <cstddef>
#include <cstdint>
#include <dirent.h>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace muster::keeper {

class TreeSize {
 public:
  // `root`: the directory, open for reading; invalid: there is none, and the size is 0.
  explicit TreeSize(Fd root);

  // Visits up to `entries` more. True: it is finished, or can say no more because the tree changed.
  bool step(size_t entries);
  uint64_t bytes() const { return bytes_; }  // so far

 private:
  struct CloseDir {
    void operator()(DIR* dir) const { closedir(dir); }
  };
  struct Level {
    dev_t device = 0;
    ino_t inode = 0;
    std::vector<std::string> left;  // its directories that have not been visited yet
  };

  bool enter(Fd dir);
  bool leave();
  bool next_dir();

  std::unique_ptr<DIR, CloseDir> reading_;  // the current directory
  bool listed_ = false;                     // all of its entries have been visited
  std::vector<Level> path_;                 // from the root to the current directory
  uint64_t bytes_ = 0;
  size_t entries_ = 0, waiting_ = 0;  // visited; names in path_
};

}  // namespace muster::keeper
