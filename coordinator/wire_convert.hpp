// The wire's structs and ours, both ways (schema/agent.capnp).
#pragma once

#include "actors/messages.hpp"
#include "schema/agent.capnp.h"

namespace muster::coordinator {

actors::AgentHello read_hello(wire::Hello::Reader hello, uint64_t link);
// A report, split by job.
std::map<JobId, core::PodsReported> read_report(NodeId node,
                                                capnp::List<wire::PodStart>::Reader starts,
                                                capnp::List<wire::PodEnd>::Reader ends);
void write_template(wire::PodTemplate::Builder out, JobId job, const core::JobObject& object);

inline PodId read_pod(wire::PodId::Reader pod) {
  return {pod.getJob(), pod.getIndex(), pod.getAttempt()};
}
inline void write_pod(wire::PodId::Builder out, PodId pod) {
  out.setJob(pod.job);
  out.setIndex(pod.index);
  out.setAttempt(pod.attempt);
}

}  // namespace muster::coordinator
