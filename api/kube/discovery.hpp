// Discovery: how a client learns what is served here: versions, groups, resources, and the OpenAPI
// documents.
#pragma once

#include "api/http/url.hpp"

#include <map>
#include <string>
#include <utility>

namespace muster::api {

struct Document {
  std::string text;
  const char* content_type = "application/json";
  std::string etag{};  // of those that a client keeps; else empty
};

class Discovery {
 public:
  // `version`: of muster.
  explicit Discovery(std::string version) : version_(std::move(version)) {}
  // What stands at a discovery path; null if it is no such path.
  const Document* find(const Url& url);

 private:
  std::string version_;
  std::map<std::string, Document> all_;  // by path; made when the first is asked for
};

}  // namespace muster::api
