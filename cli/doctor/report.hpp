// Report: findings as text for people, and as JSON. Pure.
#pragma once

#include "base/text/json.hpp"
#include "cli/doctor/finding.hpp"

#include <string>
#include <vector>

namespace muster::cli::doctor {

struct Part {
  std::string role;  // "client", "node", "head"
  std::vector<Finding> findings;
};

// The worst first; what is ok only with `all`. Ends with a line that counts.
std::string report_text(const std::vector<Part>& parts, bool all);

// {"roles": [...], "checks": N, "problems": N, "warnings": N, "unknown": N, "findings":
//  [{"level", "role", "check", "found", "advice"}...]}, those that are ok included.
Json report_json(const std::vector<Part>& parts);

bool has_problem(const std::vector<Part>& parts);

}  // namespace muster::cli::doctor
