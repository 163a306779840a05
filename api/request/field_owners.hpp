// Field owners: server-side apply, and the managed fields after any write.
#pragma once

#include "api/kube/objects/manifest.hpp"
#include "api/kube/patch/managed_fields.hpp"
#include "api/request/exchange.hpp"
#include "api/request/write_options.hpp"
#include "api/view/model/shown.hpp"
#include "base/text/json.hpp"
#include "core/cluster/nodes/node_info.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <string>

namespace muster::api {

// Like write_options(), but the field manager is required.
Result<WriteOptions> apply_options(const Url& url);
// The applied object, as JSON.
Result<std::string> applied_object(const std::string& body);

// The applied object without values that cannot be decoded, its metadata as it is stored; sets the
// warnings of the exchange. `type`: its ApiType.
Result<Json> applied_config(Exchange& exchange, const std::string& body, const char* type,
                            FieldValidation unknown_fields);

// The document on which a node's managed fields are tracked: the node without its status.
Json node_document(const Shown& shown);
std::string managers_text(const Json& object);

// The job with its managers updated after this writer made it from `before` (empty: it is new).
core::JobObjectPtr tracked(core::JobObjectPtr job, const std::string& before, const Writer& writer);
// Sets the managers of a new, complete job, made from `sent`.
void track_new(ParsedJob& job, const Json& sent, const Writer& writer);
// The same for a node's spec. `sent`: the node as the client wrote it.
core::NodeSpec tracked(core::NodeSpec spec, const Shown& seen, const Json& sent,
                       const Writer& writer);

}  // namespace muster::api
