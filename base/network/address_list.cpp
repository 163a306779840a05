#include "base/network/address_list.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace muster {

std::vector<std::string> split_addresses(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    const std::string_view part = text.substr(from, comma - from);
    const bool of_path = !parts.empty() && parts.back().starts_with("unix:") &&
                         part.find('/') != part.npos && part.find(":/") == part.npos;
    if (of_path)
      parts.back().append(",").append(part);
    else
      parts.emplace_back(part);
    from = comma + 1;
  }
  return parts;
}

bool is_host_port(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == address.npos || colon == 0 || address.find('/') != address.npos) return false;
  const std::string_view digits = address.substr(colon + 1);
  unsigned port = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return digits.size() <= 5 && read.ec == std::errc{} &&
         read.ptr == digits.data() + digits.size() && port > 0 && port <= 65535;
}

std::string address_host(const std::string& address) {
  if (address.starts_with('[')) return address.substr(1, address.find(']') - 1);
  return address.substr(0, address.rfind(':'));
}

AddressList::AddressList(std::vector<std::string> all) : all_(std::move(all)), why_(all_.size()) {
  MUSTER_CHECK(!all_.empty());
}

std::string AddressList::text() const {
  std::string out;
  for (size_t i = 0; i < all_.size(); ++i)
    out += (i == 0 ? "" : i + 1 == all_.size() ? " or " : ", ") + all_[i];
  return out;
}

bool AddressList::next(std::string why) {
  why_[at_] = std::move(why);
  at_ = (at_ + 1) % all_.size();
  if (++tried_ < all_.size()) return true;
  tried_ = 0;
  return false;
}

std::string AddressList::failures() const {
  std::string out;
  for (size_t i = 0; i < all_.size(); ++i) out += (i == 0 ? "" : "; ") + all_[i] + ": " + why_[i];
  return out;
}

}  // namespace muster
