#include "core/cluster/nodes/reach.hpp"

#include "core/spec/fields/mpi.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace muster::core {
namespace {

// Variables with which a job chooses networks or ports itself.
constexpr std::array<std::string_view, 12> kOwnNetwork = {
    "OMPI_MCA_btl_tcp_if_include",
    "OMPI_MCA_btl_tcp_if_exclude",
    "OMPI_MCA_btl_tcp_port_min_v4",
    "OMPI_MCA_btl_tcp_port_min_v6",
    "OMPI_MCA_oob_tcp_if_include",
    "OMPI_MCA_oob_tcp_if_exclude",
    "HYDRA_IFACE",
    "UCX_NET_DEVICES",
    "MPICH_PORT_RANGE",
    "MPIEXEC_PORT_RANGE",
    "MPIR_CVAR_CH3_PORT_RANGE",
    "I_MPI_PORT_RANGE",
};

std::string end_text(const Unreached::End& end) {
  return end.node + (end.ip.empty() ? "" : " (" + end.ip + ")");
}

}  // namespace

std::vector<size_t> tried_by(size_t i, size_t nodes) {
  std::set<size_t> tried;
  if (nodes <= kReachAllMax || i == 0) {
    for (size_t other = 0; other < nodes; ++other) tried.insert(other);
  } else {
    tried = {0, (i + 1) % nodes, i - 1};
  }
  tried.erase(i);
  return {tried.begin(), tried.end()};
}

bool uses_node_addresses(const JobObject& job) {
  const auto options = mpi_of(job.meta.annotations);
  if (!options || !options->iface.empty()) return false;
  return std::ranges::none_of(job.spec.pod.containers, [](const Container& container) {
    return std::ranges::any_of(container.env, [](const EnvVar& variable) {
      return std::ranges::find(kOwnNetwork, variable.name) != kOwnNetwork.end();
    });
  });
}

void Reach::keep(const std::set<NodeId>& nodes) {
  std::erase_if(failed_, [&nodes](const auto& one) {
    return !nodes.contains(one.first.first) || !nodes.contains(one.first.second);
  });
}

void Reach::heard(NodeId from, const std::vector<Tried>& tried) {
  for (const Tried& one : tried) {
    if (one.why.empty())
      failed_.erase({from, one.to});
    else
      failed_.insert_or_assign({from, one.to}, one.why);
  }
}

std::vector<std::string> reach_lines(const std::vector<Unreached>& pairs) {
  std::vector<std::string> lines;
  size_t more = 0;
  const auto both = [&pairs](const Unreached& one) {
    return std::ranges::find_if(pairs, [&one](const Unreached& other) {
      return other.from == one.to && other.to == one.from;
    });
  };
  for (auto one = pairs.begin(); one != pairs.end(); ++one) {
    const auto other = both(*one);
    if (other < one) continue;  // told with it
    if (lines.size() == kReachLinesMax) {
      ++more;
      continue;
    }
    const std::string from = end_text(one->from), to = end_text(one->to);
    lines.push_back((other == pairs.end()
                         ? "node " + from + " does not reach " + to
                         : "nodes " + from + " and " + to + " do not reach each other") +
                    ": " + one->why);
  }
  if (more > 0)
    lines.push_back("and " + std::to_string(more) + " more such " + (more == 1 ? "pair" : "pairs") +
                    " of nodes");
  if (!lines.empty())
    lines.push_back(
        "MPI ranks connect to each other directly: open all ports between these nodes, or choose "
        "another network (--node-ip of their agents, or iface=NAME in muster.dev/mpi)");
  return lines;
}

std::string reach_text(const std::vector<Unreached>& pairs) {
  std::string text;
  for (const std::string& line : reach_lines(pairs)) text += (text.empty() ? "" : "; ") + line;
  return text;
}

}  // namespace muster::core
