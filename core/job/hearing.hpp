// Hearing: asks the nodes of a job what has ended there, before the job ends pods or judges them by
// their deletion.
//
// A pod may have ended unseen: while the coordinator was down or frozen, while its node was cut
// off, or just now. A decision that would count it as killed asks its node first and waits. The
// agent names its unacknowledged ends; once these have been reported, or the node is lost,
// everything that ended before the question is known, and the rules are evaluated again.
//
// Memory only: after a restart every question is asked again. An answer is valid for the sync that
// it completes; a later decision asks again.
#pragma once

#include "core/job/effect.hpp"
#include "core/job/event.hpp"
#include "core/job/job.hpp"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace muster::core {

class Hearing {
 public:
  Hearing() = default;
  // For a job whose pods never end unseen: asks nothing.
  static Hearing all_known();

  // Whether everything is known that had ended on these nodes when they were asked. Asks those that
  // have not been asked.
  bool knows(const Job& job, const std::set<NodeId>& nodes);

  void answered(const NodeHeard& answer);
  // Its agent registered again: an earlier question may never be answered.
  void reconnected(NodeId node) { asked_.erase(node); }

  // Ends a sync and returns the questions to send. `waits`: a decision waits for answers; otherwise
  // none are needed any more.
  std::vector<AskNodes::One> settle(bool waits);

  // Whether rules that consider what is new must consider everything in this sync: a decision had
  // to wait before it, or the job was just recovered (and gates may have changed).
  bool look_again() const { return look_again_; }

 private:
  struct Question {
    uint64_t number = 0;
    std::optional<std::set<PodKey>> unreported;  // what had ended there; nullopt: no answer yet
  };
  bool all_known_ = false;
  bool look_again_ = true;
  uint64_t last_number_ = 0;
  std::map<NodeId, Question> asked_;
  std::vector<AskNodes::One> to_ask_;
};

}  // namespace muster::core
