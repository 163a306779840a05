// Discovery: lists what is served: versions, groups, resources, and the OpenAPI documents.
#pragma once

#include "api/http/url.hpp"

#include <map>
#include <string>
#include <utility>

namespace muster::api {

struct Document {
  std::string text;
  const char* content_type = "application/json";
  std::string etag{};  // only for documents that clients cache
};

class Discovery {
 public:
  // `version` is muster's.
  explicit Discovery(std::string version) : version_(std::move(version)) {}
  // The document at a discovery path; nullptr for other paths.
  const Document* find(const Url& url);

 private:
  std::string version_;
  std::map<std::string, Document> all_;  // by path; made on first use
};

}  // namespace muster::api
