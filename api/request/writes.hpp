// What all writes share: reading the body, versions and preconditions, bounds, responses.
#pragma once

#include "api/request/backend.hpp"
#include "api/request/call.hpp"
#include "api/request/exchange.hpp"
#include "api/request/write_options.hpp"

#include <kj/async.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace muster::api {

// Limit in bytes for all bodies except those of jobs, which only read_body() limits.
constexpr size_t kSmallBodyMax = 512u << 10;

// How many times a write to an object that keeps changing is tried.
constexpr int kWriteTries = 20;

// What a client sent, without its connection, because jobs may be checked on another thread.
struct SentBody {
  bool put = false;  // otherwise a patch
  std::string content_type;
  std::shared_ptr<const std::string> text;  // shared, since it may be megabytes

  static SentBody of(const Exchange& exchange, const std::string& text) {
    return {exchange.method == kj::HttpMethod::PUT, exchange.content_type,
            std::make_shared<const std::string>(text)};
  }
};
// Makes the new object: the body of a PUT, or `base` with a PATCH applied.
Result<Json> written(const SentBody& sent, const Json& base);

// The error of a create whose name this object has.
Error taken(const Shown& by);

// An object's metadata.resourceVersion; empty: none.
std::string version_text(const Json& object);
// Whether the client's resourceVersion is empty, or is a version at which the owner's part of the
// object was already in its current state.
bool version_holds(const std::string& wanted, uint64_t owner_version);

// "Precondition failed: UID in precondition: …"
std::string precondition_text(const std::string& what, const std::string& wanted,
                              const std::string& is);
// The violated precondition of a deletion, if any. `since`: the lowest version that denotes the
// object's current state; `version`: its own.
std::optional<Error> broken_precondition(const DeleteOptions& options, const std::string& uid,
                                         uint64_t version, uint64_t since);

// Limit in bytes for an object with its managed fields, or for its status; etcd's limit for a
// request.
constexpr size_t kObjectMax = 3u << 19;
// Why an object is too large to store; nothing if it is not. An object that was too large `before`
// must not grow.
std::optional<std::string> beyond_bounds(const std::string& json, size_t before = 0);
kj::Promise<void> too_large(Exchange& exchange, const std::string& why);
// The same as an error, which send_refused() recognizes.
Error beyond(std::string why);
kj::Promise<void> send_refused(Exchange& exchange, const Error& error, const std::string& name);

// The `{"kind": "Status", "status": "Success"}` of a write that leaves no object to return.
OrderedJson success_json();
// The same with the deleted object's details.
OrderedJson success_json(const std::string& resource, const std::string& name,
                         const std::string& uid);

}  // namespace muster::api
