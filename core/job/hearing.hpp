// Hearing: asks the nodes of a job what has ended there, before pods of it are ended or judged by
// their deletion.
//
// A pod may have ended without our knowing: while the coordinator was down or frozen, while its
// node was cut off, or just now. A decision that would count it as killed asks its node first and
// waits. The agent names the ends that it has not been acknowledged; once these have been reported,
// or the node is lost, all that ended before the question is known and the rules are applied anew.
//
// Memory only: after a restart everything is asked anew. An answer counts for the sync that it
// completes; a later decision asks again.
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
  // Of a job that nobody has to be asked for: nothing ends unseen.
  static Hearing all_known();

  // Whether all is known that had ended on these nodes when they were asked. Asks those that were
  // not asked.
  bool knows(const Job& job, const std::set<NodeId>& nodes);

  void answered(const NodeHeard& answer);
  // Its agent registered anew: what was asked before may never be answered.
  void reconnected(NodeId node) { asked_.erase(node); }

  // At the end of a sync. `waits`: a decision waits for answers; else none are needed any more.
  std::vector<AskNodes::One> settle(bool waits);

  // Rules that look at what is new look at everything in this sync: an earlier one had to wait, or
  // the job was just recovered (and gates may be other ones than they were).
  bool look_again() const { return look_again_; }

 private:
  struct Question {
    uint64_t number = 0;
    std::optional<std::set<PodKey>> unreported;  // what had ended there; none: not answered
  };
  bool all_known_ = false;
  bool look_again_ = true;
  uint64_t last_number_ = 0;
  std::map<NodeId, Question> asked_;
  std::vector<AskNodes::One> to_ask_;
};

}  // namespace muster::core
