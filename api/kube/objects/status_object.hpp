// Status objects: how Kubernetes reports a failed request.
#pragma once

#include "base/result.hpp"
#include "base/text/json.hpp"

#include <string>
#include <string_view>

namespace muster::api {

// The API group of a writable resource; "": the core group.
std::string_view group_of(std::string_view resource);

// "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"
std::string violation_text(const Violation& violation);

// An entry of details.causes: field, reason (FieldValueInvalid…) and message.
Json violation_cause(const Violation& violation);

// `Job.batch "NAME" is invalid: [..]`; each text appears once; several are put in brackets.
// `resource` is jobs, pods, nodes, leases, events or the kind of a request's options, ListOptions.
std::string invalid_message(std::string_view resource, std::string_view name, const Error& error);

// The Status of a 422: an object that breaks rules (error.violations is not empty).
Json invalid_status(std::string_view resource, std::string_view name, const Error& error);

// A response of kind Status that reports a failure. `details` may be null.
OrderedJson status_json(int code, std::string_view reason, std::string_view message,
                        OrderedJson details = nullptr);

}  // namespace muster::api
