// Hearing: asks a job's nodes which pods have ended there, before the job ends pods, judges them by
// their deletion, or charges a failure to an MPI job's leader (ADR 32).
//
// A pod may have ended unseen: while the coordinator was down or frozen, while its node was cut
// off, or just now. A decision that would count it as killed asks its node first and waits. The
// agent lists its unacknowledged ends; once these have been reported, or the node is lost,
// everything that ended before the question is known, and the rules are evaluated again.
//
// Memory only: after a restart every question is asked again. An answer is valid only for the sync
// that it completes; a later decision asks again.
#pragma once

#include "core/job/facts/effect.hpp"
#include "core/job/facts/event.hpp"
#include "core/job/facts/record.hpp"
#include "core/job/fold/job.hpp"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace muster::core {

class Hearing {
 public:
  Hearing() = default;
  // For a job whose pods never end unseen: asks no questions.
  static Hearing all_known();

  // Whether every end on these nodes up to the question is known. Asks nodes that have not been
  // asked yet. `ending`: pods whose ends have arrived but are not part of the job yet.
  bool knows(const Job& job, const std::set<NodeId>& nodes, const std::set<PodKey>& ending);

  void answered(const NodeHeard& answer);
  // The node's agent registered again: an earlier question may never be answered.
  void reconnected(NodeId node) { asked_.erase(node); }

  // Ends a sync and returns the questions to send. `waits`: a decision waits for answers; if false,
  // open questions are dropped.
  std::vector<AskNodes::One> settle(bool waits);

  // Whether rules that normally consider only what is new must consider everything in this sync: in
  // the previous one a decision had to wait, or the job was just recovered (and gates may have
  // changed).
  bool look_again() const { return look_again_; }

  // A leader's end that waits until its workers' nodes have answered. The report is acknowledged
  // only when the end is judged, so the agent repeats it after a crash.
  struct HeldEnd {
    NodeId node = kNoNode;
    uint64_t token = 0;  // of the report
    Millis since = 0;
    PodsEnded::One one;
  };
  std::vector<HeldEnd> held;

  // When NowhereElse was first heard; until a pod has started.
  std::optional<Millis> nowhere_else;

  // Of nodes that could not start pods, as far as they have said so since the start.
  std::map<NodeId, std::string> names;

 private:
  struct Question {
    uint64_t number = 0;
    std::optional<std::set<PodKey>> unreported;  // ended there; nullopt: no answer yet
  };
  bool all_known_ = false;
  bool look_again_ = true;
  uint64_t last_number_ = 0;
  std::map<NodeId, Question> asked_;
  std::vector<AskNodes::One> to_ask_;
};

}  // namespace muster::core
