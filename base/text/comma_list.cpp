#include "base/text/comma_list.hpp"

#include <algorithm>

namespace muster {

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    if (comma > from) parts.emplace_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return parts;
}

}  // namespace muster
