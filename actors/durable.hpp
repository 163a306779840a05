// Durable: proof that everything an effect rests on is on disk. Only a Gate (gate.hpp) makes one.
//
// Replies to clients, acknowledgements and orders to agents require one, so code that sends
// something too early does not compile.
#pragma once

#include "actors/agent_link.hpp"

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace muster::actors {

class Gate;

// The link to the agents, sealed: only a Gate can use it.
class SealedLink {
 public:
  SealedLink() = default;                                 // no link
  explicit SealedLink(AgentLink& link) : link_(&link) {}  // must outlive all actors

 private:
  friend class Gate;
  AgentLink* link_ = nullptr;
};

class Durable {
 public:
  AgentLink& link() const { return *link_; }
  // The commit of the rows that the effect waited for; 0 if there were none.
  uint64_t commit() const { return commit_; }

 private:
  friend class Gate;
  Durable(AgentLink* link, uint64_t commit) : link_(link), commit_(commit) {}
  AgentLink* link_;
  uint64_t commit_;
};

// Answers an outside request, once.
template <class T>
class Reply {
 public:
  Reply() = default;
  Reply(std::nullptr_t) {}
  template <std::invocable<T> F>
  Reply(F send)
      : send_([send = std::move(send)](const Durable&, T value) { send(std::move(value)); }) {}
  template <std::invocable<const Durable&, T> F>
  Reply(F send) : send_(std::move(send)) {}

  void operator()(const Durable& durable, T value) const { send_(durable, std::move(value)); }
  explicit operator bool() const { return static_cast<bool>(send_); }

 private:
  std::function<void(const Durable&, T)> send_;
};

// Counts down the jobs that one outside request concerns, and calls back when the last of them has
// made it durable. Actors on several threads use it, so it is shared and atomic.
class Countdown {
 public:
  Countdown(size_t parts, std::function<void(const Durable&)> done)
      : left_(parts), done_(std::move(done)) {}
  void part_done(const Durable& durable) {
    if (left_.fetch_sub(1) == 1) done_(durable);
  }

 private:
  std::atomic<size_t> left_;
  std::function<void(const Durable&)> done_;
};
using CountdownPtr = std::shared_ptr<Countdown>;

}  // namespace muster::actors
