// Documents: the JSON texts by which coordinators know each other in the store.
#pragma once

#include "base/result.hpp"
#include "core/standby/configuration.hpp"

#include <string>
#include <string_view>

namespace muster::standby {

std::string configuration_text(const core::standby::Configuration& configuration);
// `invalid`: it is not one, or a newer muster wrote it.
Result<core::standby::Configuration> read_configuration(std::string_view text);

// The value of the leader's key. `process` names the data-dir on its machine since that was booted:
// a process that has locked the same one knows that the former holder is dead.
struct Holder {
  std::string member, process;
  bool operator==(const Holder&) const = default;
};
std::string holder_text(const Holder& holder);
Result<Holder> read_holder(std::string_view text);

}  // namespace muster::standby
