// Text from agents, truncated to a maximum length.
#pragma once

#include "base/printable.hpp"
#include "coordinator/links/wire_convert.hpp"

#include <capnp/common.h>
#include <kj/exception.h>

#include <string>

namespace muster::coordinator {

inline std::string text_of(capnp::Text::Reader text, size_t most) {
  return utf8_prefix({text.begin(), text.size()}, most);
}

inline std::string short_text(const kj::Exception& exception) {
  return utf8_prefix({exception.getDescription().cStr(), exception.getDescription().size()},
                     kMessageMax);
}

}  // namespace muster::coordinator
