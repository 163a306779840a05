// The runs of a pod's containers before their last: processes that ended and were restarted in
// place. In the history of attempts, in an annotation of the pod, and in what `why` says.
#pragma once

#include "base/text/json.hpp"
#include "core/job/facts/pod.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <string>
#include <string_view>

namespace muster::api {

// Of a pod that has such runs: runs_json() as text.
constexpr std::string_view kRunsKey = "muster.dev/runs";

void put_usage(OrderedJson& out, const core::Usage& used);

// Oldest first; at most core::kRunsMax.
OrderedJson runs_json(const core::PodTemplate& spec, const core::Pod& pod);

// "exit 3, exit 3, SIGKILL (exit 137)", with the names of their containers if there are several;
// empty: there are none.
std::string runs_text(const core::PodTemplate& spec, const core::Pod& pod);

}  // namespace muster::api
