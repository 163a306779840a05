// Pulse: whether the executor is healthy.
//
// The agent asks the executor once a second, and the answer says whether it can persist what it
// does. Silence is counted in unanswered questions, not in time: an agent that was itself frozen
// for an hour comes back with one open question, not with an hour of silence.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace muster::core::node {

// Why pods cannot start, or their ends are not reported. Empty reason: no trouble.
struct Trouble {
  std::string reason;   // one word, as in a condition of Kubernetes
  std::string message;  // constant while the trouble lasts
  explicit operator bool() const { return !reason.empty(); }
  bool operator==(const Trouble&) const = default;
};

class Pulse {
 public:
  static constexpr uint32_t kSilentMax = 5;  // questions

  void asked() { ++open_; }
  // `unwritten`: why the executor cannot persist what it does; empty: it can.
  void answered(std::string unwritten) {
    open_ = 0;
    unwritten_ = std::move(unwritten);
  }
  Trouble trouble() const {
    if (open_ >= kSilentMax)
      return {"KeeperNotResponding",
              "the keeper has not responded for " + std::to_string(kSilentMax) +
                  " s: no pods start, and ends are reported once it responds"};
    if (!unwritten_.empty())
      return {"SpoolNotWritable",
              unwritten_ + ": no pods start, and ends are reported once it is writable"};
    return {};
  }

 private:
  uint32_t open_ = 0;  // unanswered questions
  std::string unwritten_;
};

}  // namespace muster::core::node
