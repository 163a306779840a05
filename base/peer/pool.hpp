// Pool: how much of something limited is in use, in total and by each user, so that no user can use
// it up. What a Share has taken is returned when it is destroyed. For one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace muster {

class Pool {
 public:
  Pool(uint64_t all_max, uint64_t each_max) : all_max_(all_max), each_max_(each_max) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  uint64_t all_max() const { return all_max_; }
  uint64_t each_max() const { return each_max_; }
  uint64_t used() const { return used_; }
  uint64_t used_by(const std::string& who) const {
    const auto found = users_.find(who);
    return found == users_.end() ? 0 : found->second;
  }

  // What one request or connection of a user holds. The pool must outlive it.
  class Share {
   public:
    Share(Pool& pool, std::string who) : pool_(pool), who_(std::move(who)) {}
    ~Share() { give_back(); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Takes more; false: a limit would be exceeded, and nothing was taken.
    bool take(uint64_t more) {
      if (more == 0) return true;
      const uint64_t mine = pool_.used_by(who_);
      if (more > pool_.all_max_ - pool_.used_ || mine + more > pool_.each_max_) return false;
      pool_.users_[who_] = mine + more;
      pool_.used_ += more;
      held_ += more;
      return true;
    }
    void give_back() {
      if (held_ == 0) return;
      const auto found = pool_.users_.find(who_);
      if ((found->second -= held_) == 0) pool_.users_.erase(found);
      pool_.used_ -= held_;
      held_ = 0;
    }

   private:
    Pool& pool_;
    const std::string who_;
    uint64_t held_ = 0;
  };

 private:
  const uint64_t all_max_, each_max_;
  uint64_t used_ = 0;
  std::map<std::string, uint64_t> users_;  // those that hold something
};

}  // namespace muster
