// Attributes: what a request asks for, in the terms of Kubernetes authorization: verb, group,
// resource, subresource, namespace and name, or verb and path if the path is not a resource. Pure.
#pragma once

#include "api/http/url.hpp"

#include <string>
#include <string_view>

namespace muster::api {

struct Attributes {
  std::string verb;      // "get", "list", "watch", "create", "update", "patch", "delete", ...
  std::string group;     // empty: the core group
  std::string resource;  // "jobs"; empty: not a resource, see `path`
  std::string subresource;
  std::string ns;    // empty: all namespaces, or a cluster-wide resource
  std::string name;  // empty: the collection
  std::string path;  // "/healthz"; only if not a resource

  // `method` is an HTTP method in capitals. As in Kubernetes, a GET of a collection is a list, or a
  // watch if the query says so, and a DELETE of one is a deletecollection.
  static Attributes of(std::string_view method, const Url& url);
};

}  // namespace muster::api
