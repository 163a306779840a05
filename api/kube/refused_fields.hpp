// Fields of the pod template that would change what runs and that a process executor does not do:
// refused by name.
//
// The types mark them (`refused` in api/openapi/pod.yaml and batch.yaml); here stand the rules that
// a mark can't tell: on securityContext and priorityClassName. What has no meaning for a process
// (image, ports, dnsPolicy, serviceAccountName…) is kept and returned instead.
#pragma once

#include "core/spec/violations.hpp"

#include <nlohmann/json.hpp>

namespace muster::api {

// `job` is a conforming document (fields.hpp).
core::Violations refused_fields(const nlohmann::json& job);

}  // namespace muster::api
