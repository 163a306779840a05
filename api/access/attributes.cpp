#include "api/access/attributes.hpp"

#include <vector>

namespace muster::api {
namespace {

std::string verb_of(std::string_view method, bool one, bool watch) {
  if (method == "GET" || method == "HEAD") return one ? "get" : watch ? "watch" : "list";
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return one ? "delete" : "deletecollection";
  return "";  // no rule allows it
}

std::string non_resource_verb(std::string_view method) {
  std::string verb;
  for (const char c : method) verb += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return verb == "head" ? "get" : verb;
}

}  // namespace

Attributes Attributes::of(std::string_view method, const Url& url) {
  const std::vector<std::string>& p = url.path;
  Attributes a;
  size_t at = 0;
  if (p.size() > 2 && p[0] == "api") {
    at = 2;
  } else if (p.size() > 3 && p[0] == "apis") {
    a.group = p[1];
    at = 3;
  } else {
    for (const std::string& part : p) a.path += "/" + part;
    if (a.path.empty()) a.path = "/";
    a.verb = non_resource_verb(method);
    return a;
  }
  if (p[at] == "namespaces" && p.size() > at + 1) {
    a.ns = p[at + 1];
    // Otherwise the request is for the namespace itself, or a part of it.
    if (p.size() > at + 2 && !is_namespace_part(p[at + 2])) at += 2;
  }
  a.resource = p[at++];
  if (at < p.size()) a.name = p[at++];
  // The rest is the subresource, including anything below it.
  for (; at < p.size(); ++at) a.subresource += (a.subresource.empty() ? "" : "/") + p[at];
  a.verb = verb_of(method, !a.name.empty(), url.flag("watch"));
  return a;
}

}  // namespace muster::api
