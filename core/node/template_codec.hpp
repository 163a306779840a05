// TemplateCodec: a pod template as bytes. The coordinator writes them, the wire carries them, a
// permit signs them, and the keeper reads them.
//
// A struct is a sequence of those of its fields that differ from their default, each as a tag (16
// bits) and a text. So a field is one row of a table here, and adding one needs no new version. A
// reader skips tags that it does not know. If one of them has kMustKnow, the pod would run as
// something other than what the job asks for, so the template says why its pods cannot start here.
//
// Invariant: a tag keeps its meaning and its type for ever.
#pragma once

#include "base/result.hpp"
#include "core/node/pod_template.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::core::node {

constexpr uint16_t kMustKnow = 0x8000;

// Without `permit`, `config_needs`, `refusal`, `plan` and `wire`, which follow from the rest or go
// with it.
std::string template_bytes(const PodTemplate& job);
// `invalid`: they are damaged.
Result<PodTemplate> read_template(std::string_view bytes);

// Likewise, its process settings alone. Of damaged bytes, what can be read counts.
std::string settings_bytes(const ProcessSettings& settings);
ProcessSettings read_settings(std::string_view bytes);

}  // namespace muster::core::node
