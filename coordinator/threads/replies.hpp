// Replies: lets other threads answer what a KJ thread waits for.
//
// A promise and its fulfiller may be used, and destroyed, only on the thread of their event loop;
// but a function that is passed to other threads is destroyed by its last holder. So what crosses
// to another thread is a ticket with a number, and the callback stays here.
//
// Invariants: a callback runs at most once, and is run and destroyed on the thread that waits; if
// all copies of its ticket are dropped unused, it is destroyed without running.
#pragma once

#include "base/result.hpp"
#include "coordinator/threads/inbox.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

namespace muster::coordinator {

class Replies {
 public:
  explicit Replies(std::shared_ptr<Door> door) : door_(std::move(door)) {}

  // Call on the thread that waits. Any thread may call or drop the returned function; once the
  // waiting thread has ended, it has no effect.
  template <class T>
  std::function<void(T)> across(std::function<void(T)> done) {
    uint64_t number = ++last_;
    waiting_.emplace(number, std::make_shared<std::function<void(T)>>(std::move(done)));
    return [ticket = std::make_shared<Ticket>(*this, number)](T value) {
      if (ticket->used.exchange(true)) return;
      ticket->door->post([&replies = ticket->replies, number = ticket->number,
                          value = std::move(value)]() mutable {
        auto found = replies.waiting_.extract(number);
        if (found.empty()) return;
        auto& waits = *static_cast<std::function<void(T)>*>(found.mapped().get());
        waits(std::move(value));
      });
    };
  }
  // Call before the event loop ends.
  void clear() { waiting_.clear(); }
  size_t waiting() const { return waiting_.size(); }

 private:
  struct Ticket {
    Ticket(Replies& r, uint64_t n) : replies(r), door(r.door_), number(n) {}
    ~Ticket() {
      if (used) return;
      door->post([&replies = replies, number = number] { replies.waiting_.erase(number); });
    }
    Ticket(const Ticket&) = delete;
    Replies& replies;  // valid while the door is open
    std::shared_ptr<Door> door;
    uint64_t number;
    std::atomic<bool> used{false};
  };

  std::shared_ptr<Door> door_;
  // Used only by the thread that waits:
  uint64_t last_ = 0;
  std::unordered_map<uint64_t, std::shared_ptr<void>> waiting_;
};

}  // namespace muster::coordinator
