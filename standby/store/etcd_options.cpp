#include "standby/store/etcd_options.hpp"

#include "api/http/url.hpp"
#include "base/printable.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace muster::standby {
namespace {

constexpr std::string_view kEtcd = "etcd:";
constexpr std::string_view kHttp = "http://", kHttps = "https://";
constexpr char kExample[] = "--store etcd:http://a:2379,http://b:2379,http://c:2379";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_prefix(std::string_view path) {
  if (path.size() < 2 || path.front() != '/' || path.back() == '/') return false;
  if (path.find("//") != path.npos) return false;
  return std::all_of(path.begin(), path.end(), [](char c) { return c == '/' || is_word(c); });
}

// Where the path of a URL begins; its end if it has none.
size_t path_of(std::string_view url) {
  const size_t scheme = url.find("://");
  return std::min(url.find('/', scheme == url.npos ? 0 : scheme + 3), url.size());
}

Error wrong(const std::string& why) {
  return invalid("--store: " + why);
}

}  // namespace

std::string EtcdUrl::address() const {
  const bool v6 = host.find(':') != host.npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string EtcdUrl::text() const {
  return std::string(tls ? kHttps : kHttp) + address();
}

Result<EtcdUrl> parse_etcd_url(std::string_view text) {
  EtcdUrl url;
  url.tls = text.starts_with(kHttps);
  if (!url.tls && !text.starts_with(kHttp))
    return invalid("it must begin with http:// or https://");
  std::string_view rest = text.substr(url.tls ? kHttps.size() : kHttp.size());
  if (rest.starts_with('[')) {
    const size_t end = rest.find(']');
    if (end == rest.npos) return invalid("the IPv6 address has no closing bracket");
    url.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    const bool v6 = url.host.find(':') != url.host.npos &&
                    url.host.find_first_not_of("0123456789abcdefABCDEF:.") == url.host.npos;
    if (!v6) return invalid("there is no IPv6 address in the brackets");
    if (!rest.empty() && rest.front() != ':') return invalid("a port must follow the brackets");
  } else {
    url.host = rest.substr(0, rest.find(':'));
    rest.remove_prefix(url.host.size());
    if (url.host.empty()) return invalid("it has no host");
    if (!std::all_of(url.host.begin(), url.host.end(), is_word))
      return invalid("\"" + on_one_line(url.host) + "\" is not the name of a host");
  }
  if (rest.empty()) return url;
  const auto port = api::whole_number<uint16_t>(rest.substr(1));
  if (!port || *port == 0)
    return invalid("\"" + on_one_line(std::string(rest.substr(1))) +
                   "\" is not a port; an IPv6 address needs brackets");
  url.port = *port;
  return url;
}

Result<EtcdOptions> parse_store(std::string_view text) {
  if (!text.starts_with(kEtcd))
    return wrong(
        "\"" + on_one_line(std::string(text)) +
        "\" does not begin with \"etcd:\", the only kind of store there is; for example, " +
        kExample);
  EtcdOptions options;
  std::optional<std::string> prefix;
  std::string_view rest = text.substr(kEtcd.size());
  for (bool more = true; more;) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view one = rest.substr(0, comma);
    more = comma < rest.size();
    rest.remove_prefix(more ? comma + 1 : comma);
    if (one.find('@') != one.npos)  // not shown: it may be a password
      return wrong("URL " + std::to_string(options.urls.size() + 1) +
                   " must not contain a user or a password");
    const std::string shown = "\"" + on_one_line(std::string(one)) + "\"";
    if (one.empty()) return wrong("a URL is missing; for example, " + std::string(kExample));
    const size_t path_at = path_of(one);
    const auto url = parse_etcd_url(one.substr(0, path_at));
    if (!url) return wrong(shown + ": " + url.error().message);
    if (std::find(options.urls.begin(), options.urls.end(), url->text()) != options.urls.end())
      return wrong(url->text() + " is in it twice");
    options.urls.push_back(url->text());
    std::string path(one.substr(path_at));
    if (path.empty() || path == "/") continue;
    if (path.back() == '/') path.pop_back();
    if (!is_prefix(path))
      return wrong(shown +
                   ": the prefix of the keys consists of parts like /sites/x, made of "
                   "letters, digits, \"-\", \"_\" and \".\"");
    if (prefix && *prefix != path)
      return wrong(shown + ": another URL has the prefix " + *prefix +
                   "; all keys have the same prefix, so one URL with it is enough");
    prefix = std::move(path);
  }
  if (prefix) options.prefix = *prefix + "/";
  return options;
}

}  // namespace muster::standby
