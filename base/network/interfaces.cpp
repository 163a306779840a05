#include "base/network/interfaces.hpp"

#include <arpa/inet.h>
#include <array>
#include <bit>
#include <filesystem>
#include <ifaddrs.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <system_error>

namespace muster {
namespace {

using Interfaces = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

Interfaces all_interfaces() {
  ifaddrs* all = nullptr;
  return {getifaddrs(&all) == 0 ? all : nullptr, &freeifaddrs};
}

}  // namespace

std::string interface_of(const std::string& ip) {
  const Interfaces all = all_interfaces();
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::array<char, NI_MAXHOST> text{};
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(one->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) ==
            0 &&
        ip == text.data())
      return one->ifa_name;
  }
  return "";
}

std::string network_of(const std::string& interface) {
  const Interfaces all = all_interfaces();
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    if (interface != one->ifa_name || one->ifa_addr == nullptr || one->ifa_netmask == nullptr ||
        one->ifa_addr->sa_family != AF_INET)
      continue;
    const in_addr mask = reinterpret_cast<const sockaddr_in*>(one->ifa_netmask)->sin_addr;
    in_addr network = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    network.s_addr &= mask.s_addr;
    std::array<char, INET_ADDRSTRLEN> text{};
    if (inet_ntop(AF_INET, &network, text.data(), text.size()) == nullptr) continue;
    return std::string(text.data()) + "/" + std::to_string(std::popcount(mask.s_addr));
  }
  return "";
}

bool has_rdma() {
  std::error_code failed;
  return std::filesystem::directory_iterator("/sys/class/infiniband", failed) !=
         std::filesystem::directory_iterator();
}

}  // namespace muster
