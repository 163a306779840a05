#include "core/spec/values/mail.hpp"

#include <algorithm>
#include <cctype>

namespace muster::core {
namespace {

// RFC 5321, section 4.5.3.1.
constexpr size_t kMailUserMax = 64, kMailDomainMax = 255;

bool is_alnum(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

// Dot-separated, so that neither begins with what looks like an option.
bool is_dotted(std::string_view text, std::string_view others, size_t max) {
  if (text.empty() || text.size() > max || !is_alnum(text.front()) || text.back() == '.')
    return false;
  return text.find("..") == std::string_view::npos && std::ranges::all_of(text, [others](char c) {
           return is_alnum(c) || c == '.' || others.find(c) != std::string_view::npos;
         });
}

bool is_address(std::string_view text) {
  const size_t at = text.find('@');
  if (!is_dotted(text.substr(0, at), "_+-", kMailUserMax)) return false;
  return at == std::string_view::npos || is_dotted(text.substr(at + 1), "-", kMailDomainMax);
}

}  // namespace

Result<std::vector<std::string>> parse_mail(std::string_view text) {
  std::vector<std::string> addresses;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(',', from), text.size());
    addresses.emplace_back(text.substr(from, end - from));
    if (!is_address(addresses.back()))
      return invalid("`" + addresses.back() +
                     "` is not a mail address such as ada@example.org or, on the coordinator's "
                     "machine, ada");
    from = end + 1;
  }
  if (addresses.size() > kMailAddressesMax)
    return invalid("must be at most " + std::to_string(kMailAddressesMax) + " addresses");
  return addresses;
}

}  // namespace muster::core
