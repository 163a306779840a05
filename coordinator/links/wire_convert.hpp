// Converts the wire's structs (schema/agent.capnp) to ours and back.
#pragma once

#include "actors/messages.hpp"
#include "base/result.hpp"
#include "core/spec/fields/downward.hpp"
#include "core/spec/fields/image_runtime.hpp"
#include "schema/agent.capnp.h"
#include "trust/permit/permit.hpp"

#include <kj/exception.h>

#include <map>
#include <optional>
#include <string>

namespace muster::coordinator {

inline constexpr unsigned kHelloPodsMax = 1'000'000;  // pods in each list of a registration
inline constexpr unsigned kContainersMax = 256;       // of one pod; more are dropped
inline constexpr size_t kVersionMax = 64;             // bytes, likewise
inline constexpr size_t kMessageMax = 4 << 10;        // bytes; longer text is truncated

// `invalid`: it exceeds the limits for agents (core/cluster/nodes/node_rules.hpp).
Result<actors::AgentHello> read_hello(wire::Hello::Reader hello, uint64_t link);
// A call that an agent has not answered, as an error for the client.
Error no_answer(const kj::Exception& e);
// Splits a report by job. The caller has checked that its lists have at most core::node::kListMax
// entries.
std::map<JobId, core::PodsReported> read_report(NodeId node,
                                                capnp::List<wire::PodStart>::Reader starts,
                                                capnp::List<wire::PodEnd>::Reader ends);
// What the node with these figures knows about the job's pods. `configs`: contents of the config
// maps that the job uses, for processes that are about to start.
core::node::PodTemplate template_of(JobId job, const core::JobObject& object,
                                    const core::NodeFigures& figures,
                                    const core::ImageRuntime& runtime = {},
                                    const core::ConfigMaps& configs = {});
// `as_bytes`: the agent takes it so (Hello.takesTemplates).
void write_template(wire::PodTemplate::Builder out, const core::node::PodTemplate& job,
                    bool as_bytes);
// The permit to run this job on a node for 30 days from now; nothing if the job has no owner.
std::optional<Permit> permit_for(const std::string& cluster_id, const std::string& node,
                                 const core::JobObject& object, core::node::PodTemplate job,
                                 Millis now_ms);
// Signs the permit and puts it into the template, which has been written.
void write_signed(wire::PodTemplate::Builder out, const Permit& permit, const PermitKey& key);

inline PodId read_pod(wire::PodId::Reader pod) {
  return {pod.getJob(), pod.getIndex(), pod.getAttempt()};
}
inline void write_pod(wire::PodId::Builder out, PodId pod) {
  out.setJob(pod.job);
  out.setIndex(pod.index);
  out.setAttempt(pod.attempt);
}

}  // namespace muster::coordinator
