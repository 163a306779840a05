#include "keeper/start/child_fds.hpp"

#include "keeper/kernel/tell.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace muster::keeper {

ChildFds::ChildFds() {
  usable_ = open("/dev/null", O_RDONLY | O_CLOEXEC) == kNull;
  for (int number = kLock; number < kEnd && usable_; ++number)
    usable_ = fcntl(kNull, F_DUPFD_CLOEXEC, number) == number;
}

void ChildFds::hold(int lock) {
  if (usable_ && dup3(lock, kLock, O_CLOEXEC) == kLock)
    taken_ = ~((uint32_t{1} << kSets) - 1);
  else
    tell_errno("descriptors of children");
}

ChildFds::Set ChildFds::take(int out, int err) {
  uint32_t taken = taken_;
  unsigned number = 0;
  do {
    if (taken == ~uint32_t{0}) return {};
    number = static_cast<unsigned>(__builtin_ctz(~taken));
  } while (!taken_.compare_exchange_weak(taken, taken | uint32_t{1} << number));
  if (dup3(out, place(number), O_CLOEXEC) >= 0 && dup3(err, place(number) + 1, O_CLOEXEC) >= 0)
    return {*this, number};
  release(number);
  return {};
}

void ChildFds::release(unsigned number) {
  for (const int place : {place(number), place(number) + 1}) dup3(kNull, place, O_CLOEXEC);
  taken_ &= ~(uint32_t{1} << number);
}

ChildFds::Set::~Set() {
  if (fds_ != nullptr) fds_->release(number_);
}

}  // namespace muster::keeper
