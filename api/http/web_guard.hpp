// Web guard: keeps foreign web pages in a user's browser from using the API. Pure.
//
// A foreign page can reach us in two ways. It can send requests to our address, which the browser
// marks with Origin and Sec-Fetch-Site. Or its own name can be made to resolve to our address (DNS
// rebinding); then the Host header carries that name. So the Host must be one of ours, no matter
// which peers may connect.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace muster::api {

// The value of a Host header: "localhost:7117", "[::1]:7117", "node1".
struct Authority {
  std::string host;   // lower case, an IPv6 address without its brackets
  uint16_t port = 0;  // 0: none given

  // Nothing if it is not a host with an optional port from 1 to 65535.
  static std::optional<Authority> parse(std::string_view text);
};

struct HostRules {
  // Accept any IP address, since a web page's name cannot be one. For servers beyond loopback.
  bool any_address = false;
  std::set<std::string> names;  // accepted besides "localhost"; lower case
};

struct WebHeaders {
  std::string host, origin, fetch_site, fetch_mode, fetch_dest;  // as sent; empty if absent
};

// The reason to refuse this request; nothing if it is allowed. `local_host` is our own address on
// the connection; `shows_page` means that this is a GET of the web page.
std::optional<std::string> refused_for_web(const HostRules& rules, const std::string& local_host,
                                           const WebHeaders& headers, bool shows_page);

}  // namespace muster::api
