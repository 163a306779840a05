// Pool: decides which allocations of a batch system to ask for and which to give back. Pure: it is
// shown the allocations, the nodes and the demand, again and again, and answers with actions.
//
// An allocation is a batch job that runs one agent. The batch system knows which ones there are, so
// nothing about them is stored: a Pool that starts anew takes over what it is shown. Only what was
// spent of the budget must be kept for it (Books).
//
// Invariants: never more allocations than `max_nodes`, nor more in the queue than `backlog`; what
// was spent and what is promised to allocations stay within the budget. A node is cordoned before
// its allocation is given back, so that no pod starts there meanwhile.
#pragma once

#include "base/clock.hpp"
#include "cli/verbs/allocate/demand.hpp"
#include "client/news/pool_report.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::cli::allocate {

struct PoolSettings {
  std::string name;
  uint32_t max_nodes = 1;
  uint32_t min_nodes = 0;
  uint32_t backlog = 4;             // allocations in the batch system's queue, at most
  Millis time_ms = 3'600'000;       // of each allocation
  Millis idle_ms = 300'000;         // a node without pods is given back after this time
  Millis start_ms = 600'000;        // an allocation that runs must have its node by then
  std::optional<Millis> budget_ms;  // of all allocations together
};

enum class Phase { queued, running, ended };

// As the batch system shows it.
struct Allocation {
  std::string id;
  Phase phase = Phase::queued;
  std::string state;                 // in the system's words: "FAILED NonZeroExitCode"
  std::optional<Millis> started_ms;  // wall clock; absent: not known, or not started
  std::optional<Millis> ended_ms;
};

// "17.server" of pool "p" is node "p-17".
std::string node_of(const std::string& pool, const std::string& id);

struct PoolNode {
  bool ready = false;
  bool cordoned = false;
  uint64_t pods = 0;  // bound to it
  Shape shape;
};

// What there is now.
struct Look {
  Millis now = 0;                         // wall clock
  std::vector<Allocation> allocations;    // of this pool; also those that ended lately
  std::map<std::string, PoolNode> nodes;  // by name
  std::vector<Demand> demand;
};

struct Action {
  enum class Kind {
    submit,  // an allocation
    cancel,  // `what`: its id; gently: its agent is told to leave
    end,     // the same, by the batch system
    cordon,  // `what`: a node
    uncordon,
    forget,  // the Node object of an allocation that is over
  } kind;
  std::string what{};
  bool operator==(const Action&) const = default;
};

struct News {
  bool bad = false;
  std::string text;
};

struct Plan {
  std::vector<Action> actions;
  std::vector<News> news;
  std::string standing;  // why no more is asked for, or that it is; for people, when it changes
};

// What must survive: node time that ended allocations have taken, and when those that have not
// ended started (0: still in the queue when last seen).
struct Books {
  Millis spent_ms = 0;
  std::map<std::string, Millis> open;
  bool operator==(const Books&) const = default;
};

class Pool {
 public:
  explicit Pool(PoolSettings settings, Books books = {});

  Plan look(const Look& look);

  // What came of the actions.
  void submitted(const std::string& id, Millis now);
  News submission_failed(const std::string& why, Millis now);
  void cannot_cordon() { may_cordon_ = false; }  // it is given back without

  Books books() const;
  // All that have not ended.
  std::vector<PoolAllocation> allocations() const;
  // Those that have not ended, by phase.
  size_t count(Phase phase) const;
  bool is_running(const std::string& id) const;
  std::vector<std::string> ids() const;

 private:
  struct Known {
    Phase phase = Phase::queued;
    Millis first_ms = 0;  // when it was first seen
    Millis seen_ms = 0;   // when it was last seen
    std::optional<Millis> started_ms{};
    bool registered = false;            // its node was ready
    bool used = false;                  // had a pod
    std::optional<Millis> idle_ms{};    // without pods since
    std::optional<Millis> silent_ms{};  // registered, and not ready since
    bool cordoned = false;              // by us
    bool given_back = false;
    std::optional<Millis> cancelled_ms{};  // asked to end
    bool missing = false;                  // from the last look
  };

  void follow_allocations(const Look& look, Plan& plan);
  void follow(const Allocation& one, Millis now, Plan& plan);
  void over(const std::string& id, const Allocation& last, const Look& look, Plan& plan);
  void follow_nodes(const Look& look, Plan& plan);
  void follow_node(const std::string& id, Known& known, const PoolNode* node, Millis now,
                   Plan& plan);
  void give_back(const Look& look, const Need& need, Plan& plan);
  void give_back_node(const std::string& id, Known& known, const PoolNode& node, Millis now,
                      const Need& need, Plan& plan);
  void give_back_queued(Millis now, const Need& need, Plan& plan);
  void cancel(const std::string& id, Known& known, bool gently, Millis now, Plan& plan);
  void ask(const Look& look, const Need& need, Plan& plan);
  uint64_t supply(const Look& look) const;
  size_t staying() const;
  Millis promised_ms() const;
  void charge(const Known& known, const Allocation& last, Millis now);
  News failed(const std::string& why, Millis now, Millis asked_ms);
  const PoolNode* node(const Look& look, const std::string& id) const;

  PoolSettings settings_;
  std::map<std::string, Known> known_;  // that have not ended
  std::set<std::string> over_;          // ended, and still shown by the batch system
  Books books_;                         // `open` only until the first look
  std::optional<Shape> shape_;          // of the node that registered last
  bool first_ = true;
  bool may_cordon_ = true;
  bool waited_ = false;                 // pods waited at the last look, too
  std::optional<Millis> no_demand_ms_;  // since
  struct Failures {
    uint32_t count = 0;  // in a row
    Millis at_ms = 0;    // the last one
    Millis retry_ms = 0;
  } failures_;
};

}  // namespace muster::cli::allocate
