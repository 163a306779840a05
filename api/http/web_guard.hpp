// Web guard: keeps web pages in the user's browser from using the API. Pure.
//
// A page of elsewhere reaches us in two ways: it sends requests to our address, which its browser
// marks by Origin and Sec-Fetch-Site; or its own name is made to lead to our address (DNS
// rebinding), and then the Host header has that name. So the Host has to be one of ours, whoever
// may connect.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace muster::api {

// "localhost:7117", "[::1]:7117", "node1".
struct Authority {
  std::string host;   // lower case, an IPv6 address without its brackets
  uint16_t port = 0;  // 0: none was given

  // Nothing: it is not a host with an optional port from 1 to 65535.
  static std::optional<Authority> parse(std::string_view text);
};

struct HostRules {
  // Any IP address is ours: no page's name can be one. For servers beyond loopback.
  bool any_address = false;
  std::set<std::string> names;  // beside "localhost", lower case
};

struct WebHeaders {
  std::string host, origin, fetch_site, fetch_mode, fetch_dest;  // as sent; empty: not sent
};

// Why this request is refused; nothing: it is not. `local_host` is our own address on the
// connection, `shows_page` says that this is a GET of the web page.
std::optional<std::string> refused_for_web(const HostRules& rules, const std::string& local_host,
                                           const WebHeaders& headers, bool shows_page);

}  // namespace muster::api
