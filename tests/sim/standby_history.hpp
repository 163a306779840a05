// History: the witness of a simulated cluster with standbys (standby_world.hpp). It is told of
// every write and read of the clients, and of every commit that a leader counts as durable, and
// says which rules are broken.
//
// Linearizability. Each key is a register that keeps the largest value written to it. Its only
// writer writes rising values, and begins the next one after the former is answered or given up;
// one that was given up may still take effect, but never over a larger one. For such a register
// these checks suffice: a read returns (1) at least every value that was acknowledged, and (2) at
// least every value that a read had returned, before this read began, and (3) nothing that had not
// been sent before it ended.
//   Proof. For each value v let T(v) be the first instant at which a write of a value >= v was
//   acknowledged or a read that returned one ended. T rises with v. By (3) and because writes begin
//   in order, the write of v had begun by T(v); if v was acknowledged, that was not before T(v). So
//   let the write of v take effect at T(v), smaller values first. A read that returned x ended at
//   T(x) or later, and with y the next value it began at T(y) or earlier, since otherwise (1) or
//   (2) would have demanded y. So there is an instant within the read between the writes of x and
//   y, and the read takes effect there.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace muster::sim::standby {

constexpr size_t kKeys = 4;

class History {
 public:
  // ---- clients
  uint64_t write_begins(size_t key) { return ++sent_[key]; }
  void write_acknowledged(size_t key, uint64_t value) {
    floor_[key] = std::max(floor_[key], value);
    ++acknowledged;
  }
  // What the read must return at least.
  uint64_t read_begins(size_t key) const { return floor_[key]; }
  void read_answered(size_t key, uint64_t at_least, uint64_t value) {
    if (value < at_least)
      breaks("a read of key " + std::to_string(key) + " returned " + std::to_string(value) +
             " after " + std::to_string(at_least) + " had been acknowledged or shown");
    if (value > sent_[key])
      breaks("a read of key " + std::to_string(key) + " returned " + std::to_string(value) +
             ", which was never written");
    floor_[key] = std::max(floor_[key], value);
    ++read;
  }

  // ---- leaders
  void leads(uint64_t term) {
    if (!terms_.insert(term).second) breaks("term " + std::to_string(term) + " is led twice");
    ++leads_count;
  }
  // A leader of this term answers a client.
  void answers(uint64_t term) {
    if (term < answered_) {
      breaks("the leader of term " + std::to_string(term) + " answers after that of term " +
             std::to_string(answered_));
    }
    answered_ = std::max(answered_, term);
  }

  // ---- commits, by number from 1 on; `id` is unique
  void durable(uint64_t commit, uint64_t id) {
    if (durable_.size() < commit) durable_.resize(commit);
    uint64_t& known = durable_[commit - 1];
    if (known != 0 && known != id)
      breaks("commit " + std::to_string(commit) + " is acknowledged twice, as two things");
    known = id;
  }
  const std::vector<uint64_t>& durable() const { return durable_; }

  void breaks(const std::string& rule) {
    if (broken.size() < 5) broken.push_back(rule);
  }

  std::vector<std::string> broken;
  uint64_t acknowledged = 0, read = 0, leads_count = 0;

 private:
  std::array<uint64_t, kKeys> sent_{}, floor_{};
  std::set<uint64_t> terms_;
  uint64_t answered_ = 0;  // the highest term whose leader has answered
  std::vector<uint64_t> durable_;
};

}  // namespace muster::sim::standby
