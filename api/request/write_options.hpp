// Write options: what a client sends in addition to the object that it writes, in the query and,
// for a deletion, in a DeleteOptions body.
#pragma once

#include "api/http/url.hpp"
#include "api/kube/objects/manifest.hpp"
#include "api/request/backend.hpp"
#include "base/result.hpp"

#include <optional>
#include <string>

namespace muster::api {

struct WriteOptions {
  bool dry = false;  // ?dryRun=All
  FieldValidation unknown_fields = FieldValidation::warn;
  std::string field_manager;  // empty: not given
  bool force = false;         // an apply takes fields from other managers
};
constexpr size_t kManagerNameMax = 128;  // bytes
// Values that no option has are violations (Exchange::bad_options()).
Result<WriteOptions> write_options(const Url& url);

// The field manager: as given, otherwise the name of the client's program.
std::string manager_name(const WriteOptions& options, const std::string& user_agent);

struct DeleteOptions {
  std::optional<Propagation> propagation;  // none: the kind's default
  bool dry = false;
  std::string uid, resource_version;  // preconditions; empty: any
  std::optional<Millis> grace_ms;     // absent: the object's own
};
Result<DeleteOptions> delete_options(const Url& url, const std::string& body,
                                     const std::string& content_type);

}  // namespace muster::api
