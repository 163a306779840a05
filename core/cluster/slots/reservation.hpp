// Reservation: where a job that needs much at once can start first. Pure.
//
// A gang, or a pod with large requests, would wait for ever if small pods took every slot that
// becomes free. A plan looks at what is free and at when the pods of others are likely to end, and
// chooses the places where all that the job needs is there first. Placement keeps them for it. The
// plan is made anew as pods end; it moves only to places that are clearly sooner, since what has
// been kept until then would be lost. Nodes where short pods follow each other always look as if
// they were free in a moment, so sooner by less than a run of theirs is not clear.
#pragma once

#include "core/cluster/slots/waiting.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace muster::core {

// Pods of one job on a node that are likely to have ended by then.
struct Ending {
  Millis at_ms = 0;
  uint32_t pods = 0;
  const Demand* demand = nullptr;
  bool known = true;   // otherwise nothing is known of the job, and the time says little
  Millis runs_ms = 0;  // how long each of them runs, about; 0: unknown
};

struct Outlook {
  FreeNode node;  // what is free now
  std::vector<Ending> endings;
};

// When places are likely to be free.
struct Due {
  Millis start_ms = 0;
  bool known = true;    // it follows from ends that are known
  Millis doubt_ms = 0;  // by how much it may be off: when the pods there began is only guessed
};

struct Plan {
  Reservation places;
  Due due;
};

// A plan in the making, from one node after the other.
class Planning {
 public:
  // For a gang, all its waiting pods; otherwise one. `kept`: where the job has a reservation.
  // `now`: on the clock of Ending::at_ms.
  Planning(const WaitingJob& job, Reservation kept, Millis now);

  void look(const Outlook& node);
  size_t looked() const { return looked_; }  // at this many nodes, and jobs there

  // Of the nodes so far; nullopt: they cannot offer enough, even if all those pods had ended.
  std::optional<Plan> best() const;
  // When the kept places are likely to be free; nullopt: the nodes cannot offer them.
  std::optional<Due> due_of_kept() const;

  Millis begun_ms() const { return now_; }
  const Reservation& kept() const { return kept_; }
  bool is_for(const WaitingJob& job, const Reservation& kept) const;

 private:
  // From then on, this many more of the job's pods fit on the node.
  struct Step {
    Millis at_ms = 0;
    NodeId node = kNoNode;
    uint32_t pods = 0;
    bool known = true;
    Millis doubt_ms = 0;
    size_t number = 0;
  };
  static uint32_t needed(const WaitingJob& job);
  static bool sooner(const Step& a, const Step& b);
  std::vector<Step> steps_of(const Outlook& outlook) const;
  void add(Step step);

  const uint32_t needed_;
  const Demand demand_;
  const Reservation kept_;
  const Millis now_;
  size_t looked_ = 0, numbers_ = 0;
  std::vector<Step> soonest_;  // as few as offer enough; a heap, the latest on top
  uint64_t offered_ = 0;       // by these
  Due kept_due_;
  size_t kept_found_ = 0;  // nodes that can offer what is kept there
};

// The best of these nodes.
std::optional<Plan> plan(const std::vector<Outlook>& nodes, const WaitingJob& job, Millis now);

}  // namespace muster::core
