// Body: what a request's body is, by its Content-Type.
#pragma once

#include "api/kube/patch/patch.hpp"
#include "base/result.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

// The body as JSON text. YAML is converted and must be one document.
Result<std::string> body_json(const std::string& body, const std::string& content_type);

// The body of a request of muster's own: a JSON object with no other fields than these. Empty: {}.
Result<nlohmann::json> own_fields(const std::string& body,
                                  const std::vector<std::string_view>& known);

// The text of a reason that a user gives for a hold, a cordon, a taint or a reservation: on one
// line, since lists and explanations quote it within theirs, and safe to show.
std::string reason_line(const std::string& text);

// From the Content-Type of a PATCH; nothing if it is not a patch type.
std::optional<PatchType> patch_type(const std::string& content_type);

}  // namespace muster::api
