#include "coordinator/desks/mpi_desk.hpp"

#include "coordinator/links/wire_convert.hpp"
#include "coordinator/links/wire_text.hpp"

#include <kj/debug.h>

#include <utility>

namespace muster::coordinator {

namespace {

constexpr size_t kPutsMax = 256, kPutMax = 1'024,
                 kPutBytesMax = 16'384;  // of an MPI rank; bytes of each
constexpr Millis kHostsMs = 100;         // to gather state changes of MPI jobs' pods

}  // namespace

// Nodes must know the set of pods before these are launched; changes of state are batched.
void MpiDesk::set(JobId job, const core::HostListPtr& hosts) {
  const std::set<NodeId> before = desk_.nodes_of(job);
  const HostDesk::Change change = desk_.set(job, hosts);
  fences_.set(job, hosts);
  if (change == HostDesk::Change::states) {
    if (hosts_due_.insert(job).second && hosts_due_.size() == 1)
      context_.tasks.add(context_.timer.afterDelay(kHostsMs * kj::MILLISECONDS).then([this] {
        for (const JobId due : std::exchange(hosts_due_, {}))
          for (const NodeId node : desk_.nodes_of(due)) send_hosts(node, due);
      }));
  } else if (change == HostDesk::Change::members) {
    std::set<NodeId> nodes = desk_.nodes_of(job);
    nodes.insert(before.begin(), before.end());
    for (const NodeId node : nodes) send_hosts(node, job);
    reach_.set(job, *hosts);
  }
}

void MpiDesk::connected(NodeId node) {
  for (const JobId job : desk_.jobs_on(node)) send_hosts(node, job);
  desk_.connected();
  reach_.connected(node);
}

void MpiDesk::send_hosts(NodeId node, JobId job) {
  AgentLinks::Link* link = links_.find(node);
  if (link == nullptr) return;
  auto request = link->agent.hostsRequest();
  request.setEpoch(context_.options.epoch);
  request.setNonce(context_.options.nonce);
  auto one = request.initJobs(1)[0];
  one.setJob(job);
  if (const core::HostListPtr list = desk_.of(job)) {
    one.setCompletions(list->count);
    auto out = one.initHosts(static_cast<unsigned>(list->hosts.size()));
    for (unsigned i = 0; i < list->hosts.size(); ++i) {
      const core::HostList::Host& host = list->hosts[i];
      out[i].setIndex(host.pod.index);
      out[i].setAttempt(host.pod.attempt);
      out[i].setRunning(host.running);
      if (const AgentLinks::Link* at = links_.find(host.node)) {
        out[i].setNode(at->node);
        out[i].setIp(at->figures.ip);
      }
    }
  }
  context_.tasks.add(request.send().ignoreResult().catch_(
      [this, node](kj::Exception&& e) { links_.warn_of(e, node, "rejected a request"); }));
}

kj::Promise<void> MpiDesk::fence(FenceCall context, NodeId node) {
  const auto params = context.getParams();
  const PodId pod = read_pod(params.getPod());
  const uint32_t number = params.getNumber();
  KJ_REQUIRE(desk_.is_on(pod, node), "the pod is not one of an MPI job on this node");
  KJ_REQUIRE(params.getPuts().size() <= kPutsMax, "a rank can put at most 256 keys");
  FenceDesk::KeyValues puts;
  size_t bytes = 0;
  for (auto put : params.getPuts()) {
    bytes += put.getKey().size() + put.getValue().size();
    KJ_REQUIRE(bytes <= kPutBytesMax, "a rank can put at most 16 KiB");
    puts.emplace(text_of(put.getKey(), kPutMax), text_of(put.getValue(), kPutMax));
  }
  context.releaseParams();
  context.allowCancellation();
  return fences_.come(pod, number, std::move(puts)).then([context](uint64_t group) mutable {
    context.getResults().setGroup(group);
  });
}

kj::Promise<void> MpiDesk::gather(GatherCall context, NodeId node) {
  const auto params = context.getParams();
  const auto all = fences_.gather(params.getJob(), params.getGroup());
  KJ_REQUIRE(all != nullptr && desk_.nodes_of(params.getJob()).contains(node),
             "the ranks of this job have changed");
  auto out = context.getResults().initAll(static_cast<unsigned>(all->size()));
  unsigned i = 0;
  for (const auto& [key, value] : *all) {
    out[i].setKey(key);
    out[i++].setValue(value);
  }
  return kj::READY_NOW;
}

}  // namespace muster::coordinator
