// Mark: a file in the witness directory that says which drill is running on a cluster, and what
// must be undone if it is killed. The drill holds a lock on it, so a mark that can be locked and is
// not empty was left by a drill that died.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "base/text/json.hpp"

#include <string>

namespace muster::cli::drill {

struct Undone {
  std::string drill;   // its id; empty: nothing is left
  std::string binary;  // to go back to with --switch; empty: none
};

class Mark {
 public:
  // conflict: another drill is using this directory.
  static Result<Mark> take(const std::string& dir);
  Mark(Mark&&) = default;

  const Undone& left() const { return left_; }  // by an earlier drill
  // Durable when it returns.
  Status write(const Undone& what);
  void remove();  // everything is undone

 private:
  Mark(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Fd file_;
  std::string path_;
  Undone left_;
};

}  // namespace muster::cli::drill
