// Mark: a file in the witness directory that says which drill is at work on a running cluster, and
// what must be undone if it is killed. Locked while the drill lives, so one that can be taken and
// is not empty was left by a drill that died.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "text/json.hpp"

#include <string>

namespace muster::cli::drill {

struct Undone {
  std::string drill;   // its id; empty: nothing is left
  std::string binary;  // that its --switch must go back to; empty: none
};

class Mark {
 public:
  // conflict: another drill works with this directory.
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
