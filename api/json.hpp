// JSON: what a Job, a Node, an Event and a Status look like to a client.
//
// Made when somebody asks, from what the View holds. Fields are left out exactly as Kubernetes
// leaves them out (job-semantics 2.1). Pods, of which there are many, have a file of their own
// (pod_json.hpp).
#pragma once

#include "api/time_text.hpp"
#include "api/view.hpp"
#include "base/result.hpp"

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// The value below these members; nullptr: there is none, or something on the way is no object.
const Json* find_path(const Json& json, std::initializer_list<const char*> names);
// Appends a JSON string, quotes included; bytes that are no UTF-8 become U+FFFD.
void append_quoted(std::string& out, std::string_view text);
// A text that is ours: no member is there twice, so none is looked for. The library's own parser
// does, which for objects of many members takes the square of their number. Discarded if broken.
OrderedJson parse_ordered(std::string_view text);
// The members in the map's order, as fast.
inline OrderedJson ordered(const std::map<std::string, std::string>& map) {
  return map.empty() ? OrderedJson::object() : OrderedJson(map);
}
// As JSON text that never fails.
std::string dumped(const OrderedJson& json);

OrderedJson job_status(const core::Job& job);
OrderedJson job_json(const core::Job& job, uint64_t version);
OrderedJson node_json(const core::NodeInfo& node, uint64_t version);
OrderedJson event_json(const core::Job& job, const core::JobEvent& event, uint64_t version);

// The facts of an event (job-semantics 13).
std::string event_reason(const core::Job& job, const core::JobEvent& event);
std::string event_message(const core::Job& job, const core::JobEvent& event);
// JOB.ID-NR in hexadecimal digits, and back.
std::string event_name(const core::Job& job, const core::JobEvent& event);
std::optional<Key> parse_event_name(std::string_view name);

// A node's label, those included that every node has.
std::optional<std::string_view> node_label(const core::NodeInfo& node, std::string_view key);

// An answer of kind Status that says why not. `details` may be null.
OrderedJson status_json(int code, std::string_view reason, std::string_view message,
                        OrderedJson details = nullptr);

}  // namespace muster::api
