// Status objects: how Kubernetes says that a request was refused.
#pragma once

#include "base/result.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace muster::api {

// The group of a resource that is written to; "": the core group.
std::string_view group_of(std::string_view resource);

// "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"
std::string violation_text(const Violation& violation);

// An entry of details.causes: field, reason (FieldValueInvalid…) and message.
nlohmann::json violation_cause(const Violation& violation);

// `Job.batch "NAME" is invalid: [..]`; each text once, brackets only around several. `resource` is
// jobs, pods or nodes.
std::string invalid_message(std::string_view resource, std::string_view name, const Error& error);

// The Status of a 422: an object that breaks rules (error.violations is not empty).
nlohmann::json invalid_status(std::string_view resource, std::string_view name, const Error& error);

}  // namespace muster::api
