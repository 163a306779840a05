// Turns: a queue in which users take turns, and the jobs of each user; within a job, first come,
// first served. So nobody waits for all that somebody else has enqueued, in however many jobs.
//
// Invariant: no line and no queue is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <sys/types.h>
#include <utility>

namespace muster::keeper {

template <class T>
class Turns {
 public:
  bool empty() const { return lines_.empty(); }

  void push_back(uid_t user, uint64_t job, T what) {
    lines_[user].queues[job].push_back(std::move(what));
  }
  // Before all others of its job.
  void push_front(uid_t user, uint64_t job, T what) {
    lines_[user].queues[job].push_front(std::move(what));
  }
  // The next one: of the user after the one who was served last, and of the job after the one of
  // that user that was served last. Not if it is empty.
  T pop() {
    auto line = after(lines_, last_user_);
    last_user_ = line->first;
    auto& queues = line->second.queues;
    auto queue = after(queues, line->second.last_job);
    line->second.last_job = queue->first;
    T what = std::move(queue->second.front());
    queue->second.pop_front();
    if (queue->second.empty()) queues.erase(queue);
    if (queues.empty()) lines_.erase(line);
    return what;
  }
  // Removes those that match; returns how many.
  template <class Match>
  size_t remove(Match match) {
    size_t removed = 0;
    for (auto line = lines_.begin(); line != lines_.end();) {
      auto& queues = line->second.queues;
      for (auto queue = queues.begin(); queue != queues.end();) {
        removed += std::erase_if(queue->second, match);
        queue = queue->second.empty() ? queues.erase(queue) : std::next(queue);
      }
      line = queues.empty() ? lines_.erase(line) : std::next(line);
    }
    return removed;
  }

 private:
  struct Line {
    std::map<uint64_t, std::deque<T>> queues;  // by job
    uint64_t last_job = 0;
  };
  template <class Map, class Key>
  static typename Map::iterator after(Map& map, Key last) {
    auto next = map.upper_bound(last);
    return next == map.end() ? map.begin() : next;
  }

  std::map<uid_t, Line> lines_;
  uid_t last_user_ = 0;
};

}  // namespace muster::keeper
