#include "api/render.hpp"

#include "api/job_text.hpp"
#include "api/json.hpp"
#include "api/tables.hpp"

namespace muster::api {

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::job:
      return "Job";
    case Kind::pod:
      return "Pod";
    case Kind::node:
      return "Node";
    case Kind::event:
      return "Event";
  }
  return "";
}

const char* api_version(Kind kind) {
  return kind == Kind::job ? "batch/v1" : "v1";
}

const char* resource_name(Kind kind) {
  switch (kind) {
    case Kind::job:
      return "jobs";
    case Kind::pod:
      return "pods";
    case Kind::node:
      return "nodes";
    case Kind::event:
      return "events";
  }
  return "";
}

void Renderer::object(std::string& out, const Shown& shown) {
  switch (shown.kind) {
    case Kind::job:
      append_job(out, *shown.job, shown.version);
      return;
    case Kind::pod:
      writers_.of(*shown.job).pod(out, view_, shown);
      return;
    case Kind::node:
      out += dumped(node_json(*shown.node, shown.version));
      return;
    case Kind::event:
      out += dumped(event_json(*shown.job, *shown.event, shown.version));
      return;
  }
}

void Renderer::row(std::string& out, const Shown& shown) {
  out += "{\"cells\":";
  out += dumped(table_cells(view_, shown, now_()));
  out += R"(,"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",)";
  if (shown.kind == Kind::pod) {
    writers_.of(*shown.job).metadata(out, shown);
  } else if (shown.kind == Kind::job) {
    out += "\"metadata\":";
    append_job_metadata(out, *shown.job, shown.version);
  } else {
    const OrderedJson whole = shown.kind == Kind::node
                                  ? node_json(*shown.node, shown.version)
                                  : event_json(*shown.job, *shown.event, shown.version);
    out += "\"metadata\":" + dumped(whole.at("metadata"));
  }
  out += "}}";
}

void Renderer::whole(std::string& out, const Shown& shown, Form form, bool columns) {
  if (form == Form::plain) return object(out, shown);
  out += R"({"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":")" +
         std::to_string(shown.version) + "\"},\"columnDefinitions\":";
  out += columns ? dumped(table_columns(shown.kind)) : "null";
  out += ",\"rows\":[";
  row(out, shown);
  out += "]}";
}

std::string Renderer::list_head(Kind kind, Form form) const {
  if (form == Form::table)
    return R"({"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":)" +
           dumped(table_columns(kind)) + ",\"rows\":[";
  return std::string("{\"kind\":\"") + kind_name(kind) + "List\",\"apiVersion\":\"" +
         api_version(kind) + "\",\"items\":[";
}

std::string Renderer::list_tail(const ListMeta& list) const {
  std::string meta = "],\"metadata\":{\"resourceVersion\":\"" + std::to_string(list.version) + "\"";
  if (!list.token.empty()) meta += ",\"continue\":\"" + list.token + "\"";
  if (list.remaining != 0) meta += ",\"remainingItemCount\":" + std::to_string(list.remaining);
  return meta + "}}\n";
}

std::string Renderer::bookmark(Kind kind, Form form, uint64_t version) const {
  const std::string meta = "\"metadata\":{\"resourceVersion\":\"" + std::to_string(version) +
                           "\",\"creationTimestamp\":null}";
  if (form == Form::table)
    return R"({"kind":"Table","apiVersion":"meta.k8s.io/v1",)" + meta +
           ",\"columnDefinitions\":null,\"rows\":[]}";
  return std::string("{\"kind\":\"") + kind_name(kind) + "\",\"apiVersion\":\"" +
         api_version(kind) + "\"," + meta + "}";
}

}  // namespace muster::api
