// What all writes share: reading what a client sent, versions and preconditions, bounds, answers.
#pragma once

#include "api/routes/backend.hpp"
#include "api/routes/exchange.hpp"
#include "api/routes/write_options.hpp"

#include <kj/async.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace muster::api {

// Bytes of a body: of anything but a job. (A job's limit is Exchange::read_body's.)
constexpr size_t kSmallBodyMax = 512u << 10;

// How often a write is made anew from an object that changes meanwhile.
constexpr int kWriteTries = 20;

// A call of the Backend as a promise.
struct Call {
  kj::Promise<Status> promise;
  std::function<void(Status)> done;
};
Call new_call();

// What a client sent, without its connection: a job's is judged beside the API thread.
struct SentBody {
  bool put = false;  // else a patch
  std::string content_type;
  std::shared_ptr<const std::string> text;  // shared, since it may be megabytes

  static SentBody of(const Exchange& exchange, const std::string& text) {
    return {exchange.method == kj::HttpMethod::PUT, exchange.content_type,
            std::make_shared<const std::string>(text)};
  }
};
// What a PUT (the body itself) or a PATCH makes of `base`.
Result<Json> written(const SentBody& sent, const Json& base);

// The metadata.resourceVersion that an object names; empty: none.
std::string version_text(const Json& object);
// Whether a resourceVersion that the client wants is none, or one at which the object's own part
// was already as it is now.
bool version_holds(const std::string& wanted, uint64_t owner_version);

// "Precondition failed: UID in precondition: …"
std::string precondition_text(const std::string& what, const std::string& wanted,
                              const std::string& is);
// Which precondition of a deletion does not hold, if any. `since`: the lowest version that stands
// for the object as it is; `version`: its own.
std::optional<Error> broken_precondition(const DeleteOptions& options, const std::string& uid,
                                         uint64_t version, uint64_t since);

// Bytes of an object with its managed fields, or of the status of one, as etcd bounds a request.
constexpr size_t kObjectMax = 3u << 19;
// Why an object is too large to be kept; nothing: it is not. One that was too large `before` may
// only shrink.
std::optional<std::string> beyond_bounds(const std::string& json, size_t before = 0);
kj::Promise<void> too_large(Exchange& exchange, const std::string& why);
// The same as an error of a judged object, which send_refused() tells from the others.
Error beyond(std::string why);
kj::Promise<void> send_refused(Exchange& exchange, const Error& error, const std::string& name);

// The `{"kind": "Status", "status": "Success"}` of a deletion.
OrderedJson success_json(const std::string& resource, const std::string& name,
                         const std::string& uid);

}  // namespace muster::api
