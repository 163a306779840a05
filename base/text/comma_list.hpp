// Comma lists: words that are typed as one, such as "a,b".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// The parts that are not empty.
std::vector<std::string> split_at_commas(std::string_view text);

}  // namespace muster
