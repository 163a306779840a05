#include "core/node/mpi.hpp"

#include "core/spec/fields/mpi.hpp"

#include <algorithm>

namespace muster::core::node {
namespace {

constexpr size_t kAddressMax = 45;  // the longest IPv6 address
constexpr int kTreeFrom = 65;       // hosts; from here on, Open MPI launches in a tree
constexpr uint32_t kPortFirst = 20'000, kPorts = 10'000;

bool is_address(const std::string& text) {
  return text.size() <= kAddressMax && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '.' || c == ':';
         });
}

}  // namespace

MpiFacts MpiFacts::checked() const {
  MpiFacts facts{run_dir, "", ""};
  if (is_address(leader_address)) facts.leader_address = leader_address;
  if (is_interface_name(iface)) facts.iface = iface;
  return facts;
}

uint16_t leader_port(const std::string& job_uid) {
  uint32_t hash = 2'166'136'261u;  // FNV-1a
  for (const char c : job_uid) hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619u;
  return static_cast<uint16_t>(kPortFirst + hash % kPorts);
}

bool is_direct(const PodTemplate& job) {
  const auto options = parse_mpi(job.mpi);
  return options.ok() && options->direct;
}

void set_mpi_variables(
    const PodTemplate& job, const std::string& index, const MpiFacts& facts,
    const std::function<void(const std::string& name, const std::string& value)>& set) {
  const auto parsed = parse_mpi(job.mpi);
  const MpiOptions options = parsed.ok() ? *parsed : MpiOptions{};
  const std::string rsh = facts.run_dir + "/" + kRsh;
  const std::string iface = options.iface.empty() ? facts.iface : options.iface;
  const int count = job.completions.value_or(0);

  set("MUSTER_RUN_DIR", facts.run_dir);
  set("MUSTER_RSH_TOKEN_FILE", facts.run_dir + "/" + kRshToken);
  if (!facts.leader_address.empty()) {
    set("MUSTER_LEADER_ADDR", facts.leader_address);
    set("MASTER_ADDR", facts.leader_address);
  }
  const std::string port = std::to_string(leader_port(job.job_uid));
  set("MUSTER_LEADER_PORT", port);
  set("MASTER_PORT", port);
  set("NNODES", std::to_string(count));
  set("NODE_RANK", index);
  // UCX connects over any interface whose address the other side has, too, container bridges
  // included.
  if (options.kind != MpiKind::openmpi && !iface.empty() && !facts.rdma)
    set("UCX_NET_DEVICES", iface);
  if (options.direct) return;
  if (options.kind != MpiKind::mpich) {
    const std::string hosts = facts.run_dir + "/" + kOpenMpiHosts;
    set("OMPI_MCA_plm_rsh_agent", rsh);
    set("OMPI_MCA_orte_default_hostfile", hosts);
    // By default, it binds the first rank of each pod to the first core of the node.
    set("OMPI_MCA_hwloc_base_binding_policy", "none");
    // Otherwise daemons on workers would start the daemons of other hosts.
    if (count >= kTreeFrom) set("OMPI_MCA_routed_radix", std::to_string(count));
    set("PRTE_MCA_plm_ssh_agent", rsh);
    set("PRTE_MCA_prte_default_hostfile", hosts);
    set("PRTE_MCA_prte_keep_fqdn_hostnames", "false");
    // Open MPI gives the leader's setting to all nodes; interfaces may have other names there.
    const std::string& network = options.iface.empty() ? facts.network : options.iface;
    if (!network.empty()) {
      set("OMPI_MCA_oob_tcp_if_include", network);
      set("OMPI_MCA_btl_tcp_if_include", network);
    }
  }
  if (options.kind != MpiKind::openmpi) {
    const std::string hosts = facts.run_dir + "/" + kHydraHosts;
    set("HYDRA_LAUNCHER", "ssh");
    set("HYDRA_LAUNCHER_EXEC", rsh);
    set("HYDRA_HOST_FILE", hosts);
    // Ranks inherit their own pod's variables; muster-rsh adds what a script has set.
    set("HYDRA_ENV", "none");
    if (!iface.empty()) set("HYDRA_IFACE", iface);
    set("I_MPI_HYDRA_BOOTSTRAP", "ssh");
    set("I_MPI_HYDRA_BOOTSTRAP_EXEC", rsh);
    set("I_MPI_HYDRA_HOST_FILE", hosts);
  }
}

}  // namespace muster::core::node
