// Pulse: is the executor well?
//
// They are asked once a second, and an answer says whether what they note reaches the disk. Silence
// is counted in questions, not in time: an agent that was frozen itself comes back with one
// question open, and suspects nobody of an hour of silence.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace muster::core::node {

// Why nothing can be started, or ends stay untold. No reason: all is well.
struct Trouble {
  std::string reason;   // one word, as in a condition of Kubernetes
  std::string message;  // the same for as long as it lasts
  explicit operator bool() const { return !reason.empty(); }
  bool operator==(const Trouble&) const = default;
};

class Pulse {
 public:
  static constexpr uint32_t kSilentMax = 5;  // questions

  void asked() { ++open_; }
  // `unwritten`: why what they note does not reach the disk; empty: it does.
  void answered(std::string unwritten) {
    open_ = 0;
    unwritten_ = std::move(unwritten);
  }
  Trouble trouble() const {
    if (open_ >= kSilentMax)
      return {"KeeperNotResponding", "the keeper has not answered for " +
                                         std::to_string(kSilentMax) +
                                         " s: nothing starts, and ends are told when it answers"};
    if (!unwritten_.empty())
      return {"SpoolNotWritable",
              unwritten_ + ": nothing starts, and ends are told when it is writable"};
    return {};
  }

 private:
  uint32_t open_ = 0;  // questions without an answer
  std::string unwritten_;
};

}  // namespace muster::core::node
