#include "api/http/web_guard.hpp"

#include "base/peer/tcp_end.hpp"

#include <arpa/inet.h>
#include <charconv>
#include <netinet/in.h>

namespace muster::api {
namespace {

// Parses an IP address; nothing if it is not one.
std::optional<TcpEnd> address_of(const std::string& host) {
  TcpEnd end;
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, host.c_str(), end.words.data()) != 1) continue;
    end.family = static_cast<uint8_t>(family);
    if (family == AF_INET) return end;
    sockaddr_storage address = {};
    auto& in = reinterpret_cast<sockaddr_in6&>(address);
    in.sin6_family = AF_INET6;
    inet_pton(AF_INET6, host.c_str(), &in.sin6_addr);
    return TcpEnd::of(address);
  }
  return std::nullopt;
}

bool plain(std::string_view host) {
  if (host.empty()) return false;
  for (const char c : host) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (!letter && c != '.' && c != '-' && c != '_') return false;
  }
  return true;
}

bool ours(const HostRules& rules, const std::string& local_host, const std::string& host) {
  if (host == "localhost" || host == local_host || rules.names.contains(host)) return true;
  const auto address = address_of(host);
  return address && (rules.any_address || address->loopback());
}

}  // namespace

std::optional<Authority> Authority::parse(std::string_view text) {
  Authority found;
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    found.host = text.substr(1, end - 1);
    in6_addr address;
    if (inet_pton(AF_INET6, found.host.c_str(), &address) != 1) return std::nullopt;
    text.remove_prefix(end + 1);
    if (!text.empty() && text[0] != ':') return std::nullopt;
    has_port = !text.empty();
    if (has_port) port = text.substr(1);
  } else {
    const size_t colon = text.find(':');
    has_port = colon != std::string_view::npos;
    if (has_port) port = text.substr(colon + 1);
    found.host = text.substr(0, colon);
  }
  for (char& c : found.host)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (found.host.find(':') == std::string::npos && !plain(found.host)) return std::nullopt;
  if (!has_port) return found;
  const auto read = std::from_chars(port.data(), port.data() + port.size(), found.port);
  if (read.ec != std::errc{} || read.ptr != port.data() + port.size() || found.port == 0)
    return std::nullopt;
  return found;
}

std::optional<std::string> refused_for_web(const HostRules& rules, const std::string& local_host,
                                           const WebHeaders& headers, bool shows_page) {
  if (!headers.host.empty()) {
    const auto host = Authority::parse(headers.host);
    if (!host) return "the Host header is not HOST:PORT";
    if (!ours(rules, local_host, host->host))
      return "the Host header names another host (--api-host NAME admits a name)";
  }
  if (!headers.origin.empty() && headers.origin != "http://" + headers.host)
    return "requests from other web pages are refused";
  const std::string& site = headers.fetch_site;
  if (site.empty() || site == "none" || site == "same-origin") return std::nullopt;
  // A link to the page may be followed from any site.
  if (shows_page && headers.fetch_mode == "navigate" && headers.fetch_dest == "document")
    return std::nullopt;
  return "requests from other web pages are refused";
}

}  // namespace muster::api
