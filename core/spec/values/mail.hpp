// Mail: the addresses that the end of a job is mailed to.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

constexpr size_t kMailAddressesMax = 8;

// Reads "ada@example.org,bob": a local user, or user@domain. Only characters that neither a mail
// header nor a program's command line can misunderstand: letters, digits and . _ + - of RFC 5322's
// dot-atom. invalid: says which address is wrong.
Result<std::vector<std::string>> parse_mail(std::string_view text);

}  // namespace muster::core
