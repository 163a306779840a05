// Refused fields: fields of a Job that would change what runs but that a process executor does not
// support. Each is refused by name, with an alternative if there is one (ApiField::hint).
//
// The types mark most of them (`refused` in api/openapi/pod.yaml and batch.yaml); the rules for
// securityContext and priorityClassName, which a mark cannot express, are here. Fields that mean
// nothing for a process (image, ports, dnsPolicy…) are kept and returned instead.
#pragma once

#include "core/spec/fields/owner.hpp"
#include "core/spec/values/violations.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

// `job` must be a conforming document (fields.hpp). `owner`: the user its pods will run as; nothing
// where users have no roles.
core::Violations refused_fields(const nlohmann::json& job,
                                const std::optional<core::Owner>& owner = std::nullopt);

// Warns of preferences that depend on where other pods run; they are accepted but ignored.
std::vector<std::string> ignored_preferences(const nlohmann::json& job);

}  // namespace muster::api
