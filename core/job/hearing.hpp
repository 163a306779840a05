// Hearing: asks the nodes of a job what has ended there, before the job ends pods, judges them by
// their deletion, or charges an MPI job's leader with a failure (ADR 32).
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
#include "core/job/record.hpp"

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
  // have not been asked. `ending`: ends that are known, though the job does not have them yet.
  bool knows(const Job& job, const std::set<NodeId>& nodes, const std::set<PodKey>& ending);

  void answered(const NodeHeard& answer);
  // Its agent registered again: an earlier question may never be answered.
  void reconnected(NodeId node) { asked_.erase(node); }

  // Ends a sync and returns the questions to send. `waits`: a decision waits for answers; otherwise
  // none are needed any more.
  std::vector<AskNodes::One> settle(bool waits);

  // Whether rules that consider what is new must consider everything in this sync: a decision had
  // to wait before it, or the job was just recovered (and gates may have changed).
  bool look_again() const { return look_again_; }

  // A leader's end that waits until its workers' nodes have answered. Its report is acknowledged
  // with its judgement, so the agent reports it again after a crash.
  struct HeldEnd {
    NodeId node = kNoNode;
    uint64_t token = 0;  // of the report
    Millis since = 0;
    PodsEnded::One one;
  };
  std::vector<HeldEnd> held;

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
