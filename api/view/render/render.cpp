#include "api/view/render/render.hpp"

#include "api/kube/objects/kept_object.hpp"
#include "api/view/query/object_json.hpp"
#include "api/view/render/job_text.hpp"
#include "api/view/render/tables.hpp"

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
    case Kind::lease:
      return "Lease";
    case Kind::config_map:
      return "ConfigMap";
    case Kind::name_space:
      return "Namespace";
    case Kind::cron_job:
      return "CronJob";
    case Kind::queue:
      return "Queue";
    case Kind::priority_class:
      return "PriorityClass";
  }
  return "";
}

const char* kind_in(Kind kind, Form form) {
  return is_table(form)           ? "Table"
         : form == Form::metadata ? "PartialObjectMetadata"
                                  : kind_name(kind);
}

const char* api_version(Kind kind, Form form) {
  if (is_table(form) || form == Form::metadata) return "meta.k8s.io/v1";
  if (kind == Kind::lease) return "coordination.k8s.io/v1";
  if (kind == Kind::event && form == Form::events_v1) return "events.k8s.io/v1";
  if (kind == Kind::queue) return "muster.dev/v1";
  if (kind == Kind::priority_class) return "scheduling.k8s.io/v1";
  return kind == Kind::job || kind == Kind::cron_job ? "batch/v1" : "v1";
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
    case Kind::lease:
      return "leases";
    case Kind::config_map:
      return "configmaps";
    case Kind::name_space:
      return "namespaces";
    case Kind::cron_job:
      return "cronjobs";
    case Kind::queue:
      return "queues";
    case Kind::priority_class:
      return "priorityclasses";
  }
  return "";
}

namespace {

OrderedJson event_of(const Shown& shown, Form form) {
  const bool core = form != Form::events_v1;
  if (shown.kept)
    return kept_json(*shown.kept->kept, shown.version,
                     core ? EventWords::core_v1 : EventWords::events_v1);
  OrderedJson event = event_json(*shown.job, *shown.event, shown.version);
  return core ? event : in_events_words(std::move(event));
}

}  // namespace

void Renderer::object(std::string& out, const Shown& shown, Form form) {
  if (form == Form::metadata) return metadata(out, shown);
  switch (shown.kind) {
    case Kind::job:
      if (shown.summary)
        append_job_summary(out, *shown.job, shown.version);
      else
        append_job(out, *shown.job, shown.version);
      return;
    case Kind::pod:
      writers_.of(*shown.job).pod(out, view_, shown, unplaced(shown));
      return;
    case Kind::node:
      out += dumped(node_json(*shown.node, shown.version));
      return;
    case Kind::event:
      out += dumped(event_of(shown, form));
      return;
    case Kind::lease:
    case Kind::config_map:
    case Kind::name_space:
    case Kind::cron_job:
    case Kind::queue:
    case Kind::priority_class:
      out += dumped(kept_json(*shown.kept->kept, shown.version));
      return;
  }
}

// Most pods are bound at once, and for those that are not, the nodes are looked at now and then.
std::string_view Renderer::unplaced(const Shown& shown) {
  constexpr Millis kPatienceMs = 1000;
  const core::Pod& pod = *shown.pod;
  if (pod.bound() || pod.ended || shown.job->gated()) return {};
  const Millis now = now_();
  return now - pod.created_ms < kPatienceMs ? std::string_view()
                                            : scheduling_.of(*shown.job, pod.steps, now);
}

void Renderer::row(std::string& out, const Shown& shown, Form form) {
  out += "{\"cells\":";
  out += dumped(table_cells(view_, shown, now_()));
  out += ",\"object\":";
  if (form == Form::cells)
    out += "null";
  else
    metadata(out, shown);
  out += "}";
}

void Renderer::metadata(std::string& out, const Shown& shown) {
  out += R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",)";
  if (shown.kind == Kind::pod) {
    writers_.of(*shown.job).metadata(out, shown);
  } else if (shown.kind == Kind::job) {
    out += "\"metadata\":";
    if (shown.summary)
      append_summary_metadata(out, *shown.job, shown.version);
    else
      append_job_metadata(out, *shown.job, shown.version);
  } else {
    const OrderedJson whole = shown.kind == Kind::node ? node_json(*shown.node, shown.version)
                              : shown.kind == Kind::event
                                  ? event_of(shown, Form::plain)
                                  : kept_json(*shown.kept->kept, shown.version);
    out += "\"metadata\":" + dumped(whole.at("metadata"));
  }
  out += "}";
}

void Renderer::whole(std::string& out, const Shown& shown, Form form, bool columns) {
  if (!is_table(form)) return object(out, shown, form);
  out += R"({"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":")" +
         std::to_string(shown.version) + "\"},\"columnDefinitions\":";
  out += columns ? dumped(table_columns(shown.kind)) : "null";
  out += ",\"rows\":[";
  row(out, shown, form);
  out += "]}";
}

std::string Renderer::list_head(Kind kind, Form form) const {
  if (is_table(form))
    return R"({"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":)" +
           dumped(table_columns(kind)) + ",\"rows\":[";
  return std::string("{\"kind\":\"") + kind_in(kind, form) + "List\",\"apiVersion\":\"" +
         api_version(kind, form) + "\",\"items\":[";
}

std::string Renderer::list_meta(const ListMeta& list) const {
  std::string meta = "{\"resourceVersion\":\"" + std::to_string(list.version) + "\"";
  if (!list.token.empty()) meta += ",\"continue\":\"" + list.token + "\"";
  if (list.remaining != 0) meta += ",\"remainingItemCount\":" + std::to_string(list.remaining);
  return meta + "}";
}

std::string Renderer::list_tail(const ListMeta& list) const {
  return "],\"metadata\":" + list_meta(list) + "}\n";
}

std::string Renderer::bookmark(Kind kind, Form form, uint64_t version) const {
  const std::string meta = "\"metadata\":{\"resourceVersion\":\"" + std::to_string(version) +
                           "\",\"creationTimestamp\":null}";
  if (is_table(form))
    return R"({"kind":"Table","apiVersion":"meta.k8s.io/v1",)" + meta +
           ",\"columnDefinitions\":null,\"rows\":[]}";
  return std::string("{\"kind\":\"") + kind_in(kind, form) + "\",\"apiVersion\":\"" +
         api_version(kind, form) + "\"," + meta + "}";
}

}  // namespace muster::api
