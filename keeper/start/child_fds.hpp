// ChildFds: the descriptors that a child has between its clone and its exec.
//
// A keeper with 64 slots has hundreds of descriptors open. A child that copies them all and closes
// them at its exec spends more on that than on the rest of our code. So the few that it needs have
// the lowest numbers, and a child shares the table and copies only those below end(), with
// close_range(end(), ~0, CLOSE_RANGE_UNSHARE).
//
// A starting child needs a set of two places, for its stdout and stderr. While all sets are taken,
// further children copy the whole table as usual.
//
// Invariants: all numbers from 3 to end() are reserved as long as the keeper lives; a free set
// refers to /dev/null, so it keeps no output open; a child holds the keeper's lock until its exec,
// so no other keeper starts before the child can be recognized by its environment.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace muster::keeper {

class ChildFds {
 public:
  // Call it while no descriptor above 2 is open. If it fails, no sets are ever free.
  ChildFds();
  ChildFds(const ChildFds&) = delete;
  ChildFds& operator=(const ChildFds&) = delete;

  // Takes the keeper's lock; before that, no sets are free.
  void hold(int lock);
  int null() const { return kNull; }  // /dev/null, for reading; valid if a set is
  int end() const { return kEnd; }

  // A set with these two files; any thread. It is false if none is free.
  class Set {
   public:
    Set() = default;
    Set(ChildFds& fds, unsigned number) : fds_(&fds), number_(number) {}
    Set(Set&& other) noexcept : fds_(std::exchange(other.fds_, nullptr)), number_(other.number_) {}
    Set& operator=(Set&&) = delete;
    ~Set();
    explicit operator bool() const { return fds_ != nullptr; }
    int out() const { return place(number_); }
    int err() const { return place(number_) + 1; }

   private:
    ChildFds* fds_ = nullptr;
    unsigned number_ = 0;
  };
  Set take(int out, int err);

 private:
  static constexpr unsigned kSets = 8;
  static constexpr int kNull = 3, kLock = 4, kFirst = 5, kEnd = kFirst + 2 * int{kSets};
  static constexpr int place(unsigned number) { return kFirst + 2 * static_cast<int>(number); }
  void release(unsigned number);

  bool usable_ = false;
  std::atomic<uint32_t> taken_ = ~uint32_t{0};  // a bit for each set
};

}  // namespace muster::keeper
