// Server-side apply, and who manages which field after any write.
#pragma once

#include "api/kube/managed_fields.hpp"
#include "api/routes/write_options.hpp"
#include "api/view/shown.hpp"
#include "core/cluster/node_info.hpp"
#include "core/spec/job_spec.hpp"

#include <string>

namespace muster::api {

// As write_options(); the field manager is required.
Result<WriteOptions> apply_options(const Url& url);
// The object that is applied, as JSON.
Result<std::string> applied_object(const std::string& body);

// A node without its status, as its managed fields are told by.
Json node_document(const Shown& shown);
std::string managers_text(const Json& object);

// The same job, with the managers that it has once this writer made it of what was there (empty:
// nothing, it is new).
core::JobObjectPtr tracked(core::JobObjectPtr job, const std::string& before, const Writer& writer);
// The same of a new job, made of what was `sent`.
core::JobObjectPtr tracked_new(core::JobObjectPtr job, const Json& sent, const Writer& writer);
// The same for what people set of a node. `sent`: the node as it was written.
core::NodeSpec tracked(core::NodeSpec spec, const Shown& seen, const Json& sent,
                       const Writer& writer);

}  // namespace muster::api
