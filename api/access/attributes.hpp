// Attributes: what a request asks for, in the words of Kubernetes' authorization: verb, group,
// resource, subresource, namespace, name; or, for a path that is no resource, the path. Pure.
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
  std::string path;  // "/healthz"; only if it is not a resource

  // `method` is an HTTP method in capitals. As Kubernetes reads a request: a GET of a collection is
  // a list, or a watch if the query says so, and its DELETE is a deletecollection.
  static Attributes of(std::string_view method, const Url& url);
};

}  // namespace muster::api
