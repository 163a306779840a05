#include "coordinator/threads/address.hpp"

#include "base/network/address_list.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <netinet/in.h>
#include <unistd.h>
#include <utility>

namespace muster::coordinator {

uint16_t port_of(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint16_t port = 0;
  if (colon != std::string::npos)
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  return port;
}

bool is_wildcard(const std::string& host) {
  return host == "0.0.0.0" || host == "::" || host == "*";
}

std::string own_host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::vector<std::string> server_names(const std::vector<std::string>& hosts,
                                      const std::string& address) {
  std::vector<std::string> names = {"localhost", "127.0.0.1", "::1"};
  names.insert(names.end(), hosts.begin(), hosts.end());
  if (const std::string host = address_host(address); !host.empty() && !is_wildcard(host))
    names.push_back(host);
  if (std::string name = own_host_name(); !name.empty()) names.push_back(std::move(name));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<sockaddr_storage> socket_address(const std::string& host, uint16_t port) {
  sockaddr_storage address = {};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    return address;
  }
  if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) return std::nullopt;
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  return address;
}

namespace {

bool loopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace

Status check_address(const std::string& flag, const std::string& address, bool insecure) {
  if (address.starts_with("unix:")) return Nothing{};
  if (address.rfind(':') == std::string::npos)
    return Error{
        Errc::invalid, flag + " " + address + ": must be ADDRESS:PORT, such as 127.0.0.1:0", {}};
  if (insecure || loopback(address_host(address))) return Nothing{};
  return Error{
      Errc::invalid,
      flag + " " + address +
          ": not a loopback address; anyone who can reach this port could run programs as this "
          "user. Use " +
          flag +
          "-tls to serve other machines, or --insecure on a network where that is "
          "acceptable",
      {}};
}

Status check_any_address(const std::string& flag, const std::string& address) {
  const bool good = !address.starts_with("unix:") && address.rfind(':') != std::string::npos;
  if (address.empty() || good) return Nothing{};
  return Error{
      Errc::invalid, flag + " " + address + ": must be ADDRESS:PORT, such as 0.0.0.0:7443", {}};
}

}  // namespace muster::coordinator
