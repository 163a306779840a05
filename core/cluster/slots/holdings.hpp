// Holdings: on which nodes a job has pods, and how many. A hash table in one piece, since a job may
// have pods on every node, and most changes are of a node that was not looked at for a while.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"

#include <bit>
#include <cstdint>
#include <vector>

namespace muster::core {

struct Holding {
  NodeId node = kNoNode;
  uint32_t pods = 0;
  Millis since = 0;  // when the last of them was placed there
};

class Holdings {
 public:
  class Iterator {
   public:
    Iterator(const Holding* at, const Holding* end) : at_(at), end_(end) { skip(); }
    const Holding& operator*() const { return *at_; }
    const Holding* operator->() const { return at_; }
    Iterator& operator++() {
      ++at_;
      skip();
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    void skip() {
      while (at_ != end_ && at_->node == kNoNode) ++at_;
    }
    const Holding* at_;
    const Holding* end_;
  };

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  Iterator begin() const { return {table_.data(), table_.data() + table_.size()}; }
  Iterator end() const {
    const Holding* last = table_.data() + table_.size();
    return {last, last};
  }

  const Holding* find(NodeId node) const {
    if (table_.empty()) return nullptr;
    const Holding& found = table_[place_of(node)];
    return found.node == node ? &found : nullptr;
  }
  Holding* find(NodeId node) {
    return const_cast<Holding*>(static_cast<const Holdings&>(*this).find(node));
  }

  // Adds the node if it is not there.
  Holding& at(NodeId node) {
    if (4 * (size_ + 1) > 3 * table_.size()) grow();
    Holding& found = table_[place_of(node)];
    if (found.node != node) {
      found = {node, 0, 0};
      ++size_;
    }
    return found;
  }

  // For at() a little later.
  void prefetch(NodeId node) const {
    if (!table_.empty()) __builtin_prefetch(&table_[first_of(node)], 1);
  }

  void erase(NodeId node) {
    if (table_.empty()) return;
    size_t hole = place_of(node);
    if (table_[hole].node != node) return;
    --size_;
    // Those behind it that would no longer be found move up.
    for (size_t i = next(hole); table_[i].node != kNoNode; i = next(i)) {
      const size_t wished = first_of(table_[i].node);
      if (((i - wished) & mask()) < ((i - hole) & mask())) continue;
      table_[hole] = table_[i];
      hole = i;
    }
    table_[hole] = {};
  }

 private:
  size_t mask() const { return table_.size() - 1; }
  size_t next(size_t i) const { return (i + 1) & mask(); }
  size_t first_of(NodeId node) const {
    const uint64_t mixed = uint64_t{node} * 0x9e3779b97f4a7c15;
    return static_cast<size_t>(mixed >> (64 - std::bit_width(mask())));
  }
  size_t place_of(NodeId node) const {
    size_t i = first_of(node);
    while (table_[i].node != kNoNode && table_[i].node != node) i = next(i);
    return i;
  }
  void grow() {
    std::vector<Holding> old(table_.empty() ? 2 : 2 * table_.size());
    old.swap(table_);
    for (const Holding& one : old)
      if (one.node != kNoNode) table_[place_of(one.node)] = one;
  }

  std::vector<Holding> table_;  // its size is a power of two, and a place is always empty
  size_t size_ = 0;
};

}  // namespace muster::core
