// Reach: which nodes of an MPI job do not reach each other (ADR 88).
//
// Ranks connect to each other directly, so the nodes of such a job try each other as soon as its
// pods have them, and again while it runs. What they find is told, and nothing follows from it: a
// firewall may be open for the ports of this site's MPI only, and neither of the two nodes is known
// to be at fault.
#pragma once

#include "core/ids.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::core {

// A node that does not reach another one.
struct Unreached {
  struct End {
    std::string node, ip;
    bool operator==(const End&) const = default;
  };
  End from, to;
  std::string why;  // "no route to host"
  bool operator==(const Unreached&) const = default;
};

// Each of up to so many nodes tries all others.
constexpr size_t kReachAllMax = 16;
// The positions that the node at position `i` tries, of `nodes` nodes with the leader's first, in
// ascending order. With more than kReachAllMax nodes, these are all others for the leader's, and
// for any other one the leader's and its two neighbours in a ring, so the cost grows with the nodes
// and not with the pairs.
std::vector<size_t> tried_by(size_t i, size_t nodes);

// Whether the ranks of the job use the addresses of nodes, and any port, as far as its object says:
// not if it names an interface (core/spec/fields/mpi.hpp) or sets an MPI's networks or ports.
bool uses_node_addresses(const JobObject& job);

// The pairs of a job's nodes of which the first does not reach the second.
class Reach {
 public:
  struct Tried {
    NodeId to = kNoNode;
    std::string why;  // not reached; empty: reached
  };
  using Pair = std::pair<NodeId, NodeId>;

  // The job has these nodes now; forgets others.
  void keep(const std::set<NodeId>& nodes);
  // What `from` found. Pairs that were not tried stay as they were.
  void heard(NodeId from, const std::vector<Tried>& tried);
  const std::map<Pair, std::string>& failed() const { return failed_; }

 private:
  std::map<Pair, std::string> failed_;  // and why
};

// A line for people for each pair of nodes, at most kReachLinesMax, and then one with what to do
// about it. Empty if `pairs` is.
constexpr size_t kReachLinesMax = 5;
std::vector<std::string> reach_lines(const std::vector<Unreached>& pairs);
// The same in one line.
std::string reach_text(const std::vector<Unreached>& pairs);

}  // namespace muster::core
