// Wire: agent.capnp <-> plain values. Times are sent as ages, so no clock is compared across
// machines.
#pragma once

#include "core/node/command.hpp"
#include "core/node/node.hpp"

#include <cstdint>
#include <schema/agent.capnp.h>
#include <string>
#include <vector>

namespace muster::agent {

std::string to_string(capnp::Text::Reader text);
core::node::Term term_of(uint64_t epoch, uint64_t nonce);
std::string seal_of(capnp::Text::Reader text);  // empty: it is not a seal's hex digits
PodId read_pod(wire::PodId::Reader in);
void write_pod(PodId pod, wire::PodId::Builder out);
std::vector<PodId> read_pods(capnp::List<wire::PodId>::Reader in);
void write_pods(const std::vector<PodId>& pods, capnp::List<wire::PodId>::Builder out);

core::node::PodTemplate read_template(wire::PodTemplate::Reader in,
                                      const core::node::NodeExtras& extras = {});

// Size hint for a message with this report: without it, each call in flight takes 8 kB or more.
capnp::MessageSize size_of(const core::node::Report& report);
void write_report(const core::node::Report& report, Millis now,
                  wire::Session::ReportParams::Builder out);
// `out` must have as many elements.
void write_ends(const std::vector<core::node::PodEnded>& ends, Millis now,
                capnp::List<wire::PodEnd>::Builder out);

}  // namespace muster::agent
