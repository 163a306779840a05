#include "api/routes/routes.hpp"

#include "api/routes/list_stream.hpp"
#include "text/time_text.hpp"

namespace muster::api {
namespace {

std::string not_a_version(const std::string& text) {
  return "resourceVersion: Invalid value: \"" + text + "\": not a version of this server";
}

// The methods of a resource, for people whose method is none of them.
std::string allowed(const Target& target) {
  const bool job = target.kind == Kind::job, pod = target.kind == Kind::pod;
  if (target.sub == "log") return "GET";
  if (target.sub == "eviction") return "POST";
  if (target.sub == "status" && target.kind == Kind::node) return "GET";
  if (!target.sub.empty()) return "GET, PATCH, PUT";
  if (!target.name.empty()) return "DELETE, GET, PATCH, PUT";
  if (target.ns.empty()) return "GET";
  return job || target.is_kept() ? "DELETE, GET, POST" : pod ? "DELETE, GET" : "GET";
}

// The instant that sinceSeconds or sinceTime names; 0: none.
Result<Millis> log_since(const Url& url, Millis now_ms) {
  const std::string seconds = url.get("sinceSeconds"), time = url.get("sinceTime");
  if (!seconds.empty() && !time.empty())
    return Error{Errc::invalid, "at most one of sinceTime or sinceSeconds may be specified", {}};
  if (!seconds.empty()) {
    const auto n = whole_number<int64_t>(seconds);
    if (!n || *n <= 0 || *n > now_ms / 1000)
      return Error{Errc::invalid, "sinceSeconds: not a number above 0: \"" + seconds + "\"", {}};
    return now_ms - *n * 1000;
  }
  if (time.empty()) return Millis{0};
  const auto instant = parse_time(time);
  if (!instant)
    return Error{
        Errc::invalid, "sinceTime: not a time as 2026-03-01T12:00:00Z: \"" + time + "\"", {}};
  return *instant;
}

}  // namespace

std::optional<Target> Target::of(const Url& url) {
  const std::vector<std::string>& p = url.path;
  size_t at = 0;
  bool batch = false;
  std::string_view only;  // the resource of a group that has one
  if (p.size() >= 3 && p[0] == "api" && p[1] == "v1") {
    at = 2;
  } else if (p.size() >= 4 && p[0] == "apis" && p[1] == "batch" && p[2] == "v1") {
    at = 3;
    batch = true;
  } else if (p.size() >= 4 && p[0] == "apis" && p[2] == "v1" &&
             (p[1] == "coordination.k8s.io" || p[1] == "events.k8s.io")) {
    at = 3;
    only = p[1] == "events.k8s.io" ? "events" : "leases";
  } else {
    return std::nullopt;
  }
  Target target;
  if (p[at] == "namespaces") {
    if (p.size() < at + 3) return std::nullopt;
    target.ns = p[at + 1];
    at += 2;
  }
  const std::string& resource = p[at++];
  if (!only.empty() && resource != only) return std::nullopt;
  if (resource == "leases" && !only.empty())
    target.kind = Kind::lease;
  else if (batch && resource == "jobs")
    target.kind = Kind::job;
  else if (!batch && resource == "pods")
    target.kind = Kind::pod;
  else if (!batch && resource == "events")
    target.kind = Kind::event;
  else if (!batch && resource == "nodes" && target.ns.empty())
    target.kind = Kind::node;
  else
    return std::nullopt;
  if (at == p.size()) return target;
  if (target.ns.empty() && target.kind != Kind::node) return std::nullopt;
  target.name = p[at++];
  if (at == p.size()) return target;
  target.sub = p[at++];
  if (at != p.size()) return std::nullopt;
  const bool known = target.sub == "log" || target.sub == "eviction" ? target.kind == Kind::pod
                     : target.sub == "scale"                         ? target.kind == Kind::job
                                             : target.sub == "status" && !target.is_kept();
  if (!known) return std::nullopt;
  return target;
}

kj::Promise<void> Routes::answer(Exchange& exchange, Target target) {
  using Method = kj::HttpMethod;
  const Method method = exchange.method;
  const bool one = !target.name.empty(), whole = target.sub.empty();
  const bool kept = target.is_kept(), job = target.kind == Kind::job;
  if (const auto why = damage(target, method == Method::GET); one && why)
    return exchange.send_status(500, "InternalError", *why);
  if (method == Method::GET && target.sub != "eviction") {
    if (target.sub == "log") return log(exchange, target);
    if (target.sub == "scale") return get_scale(exchange, target);
    return one ? get(exchange, target) : list(exchange, target);
  }
  if (method == Method::POST && (job || kept) && !one && !target.ns.empty())
    return with_body(exchange, target, job ? &Routes::create : &Routes::create_kept);
  if (method == Method::POST && target.sub == "eviction")
    return with_body(exchange, target, &Routes::evict);
  if (method == Method::DELETE && whole) {
    if (!one && (target.kind == Kind::node || target.ns.empty()))
      return not_allowed(exchange, allowed(target));
    if (!one)
      return with_body(exchange, target, kept ? &Routes::remove_all_kept : &Routes::remove_all);
    return with_body(exchange, target,
                     job                        ? &Routes::remove_job
                     : kept                     ? &Routes::remove_kept
                     : target.kind == Kind::pod ? &Routes::remove_pod
                                                : &Routes::remove_node);
  }
  if (method == Method::PATCH && one && patch_type(exchange.content_type) == PatchType::apply) {
    if (job && whole) return with_body(exchange, target, &Routes::apply_job);
    if (target.kind == Kind::node && whole) return with_body(exchange, target, &Routes::apply_node);
    return exchange.send_status(415, "UnsupportedMediaType",
                                "only jobs and nodes are applied; of other resources change a "
                                "part with application/merge-patch+json");
  }
  if ((method == Method::PUT || method == Method::PATCH) && one) {
    if (kept) return with_body(exchange, target, &Routes::write_kept);
    if (target.sub == "scale") return with_body(exchange, target, &Routes::write_scale);
    if (job)
      return with_body(exchange, target, whole ? &Routes::write_job : &Routes::write_job_status);
    if (target.kind == Kind::pod && (whole || target.sub == "status"))
      return with_body(exchange, target, &Routes::write_pod);
    if (target.kind == Kind::node && whole) return with_body(exchange, target, &Routes::write_node);
  }
  return not_allowed(exchange, allowed(target));
}

kj::Promise<void> Routes::not_allowed(Exchange& exchange, std::string methods) {
  exchange.headers.push_back({"Allow", std::move(methods)});
  return exchange.send_status(405, "MethodNotAllowed",
                              "the server does not allow this method on the requested resource");
}

kj::Promise<void> Routes::with_body(Exchange& exchange, const Target& target, Handler handler) {
  return exchange.read_body().then(
      [this, &exchange, target, handler](kj::Maybe<std::string> body) -> kj::Promise<void> {
        KJ_IF_MAYBE (text, body) {
          if (target.kind != Kind::job && text->size() > kSmallBodyMax)
            return too_large(exchange,
                             "the body is longer than 512 KiB, which is enough for all "
                             "but jobs");
          return (this->*handler)(exchange, target, *text);
        }
        return kj::READY_NOW;  // answered already
      });
}

std::optional<Shown> Routes::find(const Target& target) const {
  switch (target.kind) {
    case Kind::job:
      return view_.job(target.ns, target.name);
    case Kind::pod:
      return view_.pod(target.ns, target.name);
    case Kind::node:
      return view_.node(target.name);
    case Kind::event:
      return view_.event(target.ns, target.name);
    case Kind::lease:
      return view_.kept(core::KeptKind::lease, target.ns, target.name);
  }
  return std::nullopt;
}

// Why an object can't be told, or is not to be changed.
std::optional<std::string> Routes::damage(const Target& target, bool reads) const {
  if (target.name.empty() || view_.damaged() == 0) return std::nullopt;
  const auto shown = find(target);
  const core::Condition* found = shown && shown->job ? shown->job->condition(kDamaged) : nullptr;
  if (found && !reads) return "the job is quarantined: " + found->message;
  if (shown) return std::nullopt;
  return view_.damage(target.kind, target.ns, target.name);
}

kj::Promise<void> Routes::get(Exchange& exchange, const Target& target) {
  const auto shown = find(target);
  if (!shown)
    return exchange.send_error({Errc::not_found, "", {}}, resource_name(target.kind), target.name);
  std::string text;
  renderer_.whole(text, *shown, exchange.form());
  return exchange.send(200, text + "\n");
}

Result<Query> query_of(const Url& url, const Target& target) {
  auto labels = Selector::labels(url.get("labelSelector"));
  if (!labels.ok()) return labels.error();
  auto fields = Selector::fields(url.get("fieldSelector"), target.kind);
  if (!fields.ok()) return fields.error();
  Query query{.kind = target.kind, .ns = target.ns};
  query.labels = std::move(*labels);
  query.fields = std::move(*fields);
  return query;
}

kj::Promise<void> Routes::list(Exchange& exchange, const Target& target) {
  auto query = query_of(exchange.url, target);
  if (!query.ok()) return exchange.bad(query.error().message);
  if (exchange.url.flag("watch")) return watch(exchange, std::move(*query));
  auto page = page_of(exchange.url);
  if (!page.ok()) return exchange.bad(page.error().message);
  if (page->resumed && !view_.after(page->version))
    return exchange.send_status(
        410, "Expired",
        "The provided continue parameter is too old to display a consistent list result. You "
        "must start a new list without the continue parameter.");
  if (auto refused = refuse_version(exchange)) return kj::mv(*refused);
  return stream_list(context_, exchange, *query, std::move(*page));
}

// A list shows what is there now. A client that wants an older state, or one that is still to come,
// can't have it.
std::optional<kj::Promise<void>> Routes::refuse_version(Exchange& exchange) {
  const std::string text = exchange.url.get("resourceVersion"),
                    match = exchange.url.get("resourceVersionMatch");
  if (!match.empty() && match != "Exact" && match != "NotOlderThan")
    return exchange.bad("resourceVersionMatch: Unsupported value: \"" + match +
                        "\": supported values: \"Exact\", \"NotOlderThan\"");
  if (!match.empty() && text.empty())
    return exchange.bad("resourceVersionMatch: Forbidden: needs a resourceVersion");
  if (text.empty() || text == "0") return std::nullopt;
  const auto version = whole_number<uint64_t>(text);
  if (!version) return exchange.bad(not_a_version(text));
  const std::string now = std::to_string(view_.version());
  if (*version > view_.version())
    return exchange.send_status(504, "Timeout",
                                "Too large resource version: " + text + ", current: " + now);
  if (match == "Exact" && *version != view_.version())
    return exchange.send_status(410, "Expired",
                                "too old resource version: " + text + " (" + now + ")");
  return std::nullopt;
}

kj::Promise<void> Routes::watch(Exchange& exchange, Query query) {
  const Url& url = exchange.url;
  WatchStart start;
  start.bookmarks = url.flag("allowWatchBookmarks");
  // As Kubernetes: half an hour to an hour when the client names no time.
  int64_t seconds = 1800 + static_cast<int64_t>(options_.random() % 1800);
  if (const std::string text = url.get("timeoutSeconds"); !text.empty()) {
    auto n = whole_number<int64_t>(text);
    if (!n || *n < 0)
      return exchange.bad("timeoutSeconds: not a number of seconds: \"" + text + "\"");
    if (*n > 0) seconds = std::min<int64_t>(*n, 7 * 86400);
  }
  start.time = seconds * kj::SECONDS;
  const std::string version = url.get("resourceVersion");
  const bool send_initial = url.flag("sendInitialEvents");
  if (version.empty() || version == "0" || send_initial) {
    start.initial = url.get("sendInitialEvents") != "false";
    start.initial_bookmark = send_initial && start.bookmarks;
    start.from = view_.ring_end();
    return stream_watch(context_, exchange, std::move(query), start);
  }
  const auto n = whole_number<uint64_t>(version);
  if (!n) return exchange.bad(not_a_version(version));
  const auto from = view_.after(*n);
  if (!from)
    return exchange.send_status(
        410, "Expired",
        "too old resource version: " + version + " (" + std::to_string(view_.version()) + ")");
  start.from = *from;
  return stream_watch(context_, exchange, std::move(query), start);
}

kj::Promise<void> Routes::log(Exchange& exchange, const Target& target) {
  const auto shown = view_.pod(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "pods", target.name);
  return pod_log(exchange, *shown, target.name);
}

kj::Promise<void> Routes::pod_log(Exchange& exchange, const Shown& shown, const std::string& name) {
  const Url& url = exchange.url;
  LogQuery query;
  query.pod = key_of(shown);
  if (shown.pod->ended) query.ended_on = shown.pod->node;
  query.job_uid = shown.job->object().meta.uid;
  query.pod_name = name;
  query.container = url.get("container");
  const auto& containers = shown.job->spec().pod.containers;
  if (query.container.empty() && !containers.empty()) query.container = containers.front().name;
  bool known = false;
  for (const auto& c : containers) known = known || c.name == query.container;
  for (const auto& c : shown.job->spec().pod.init_containers)
    known = known || c.name == query.container;
  if (!known) return exchange.bad("container " + query.container + " is not valid for pod " + name);
  if (url.flag("previous"))
    return exchange.bad("previous terminated container \"" + query.container + "\" in pod \"" +
                        name + "\" not found");
  query.follow = url.flag("follow");
  const std::string stream = url.get("stream");
  if (!stream.empty() && stream != "All" && stream != "Stdout" && stream != "Stderr")
    return exchange.bad("stream: Unsupported value: \"" + stream +
                        "\": supported values: \"All\", \"Stdout\", \"Stderr\"");
  query.out = stream != "Stderr";
  query.err = stream != "Stdout";
  for (auto [name, field] : {std::pair{"tailLines", &query.tail_lines},
                             {"limitBytes", &query.limit_bytes},
                             {"offset", &query.offset}}) {
    const std::string text = url.get(name);
    if (text.empty()) continue;
    const auto n = whole_number<int64_t>(text);
    if (!n || *n < 0) return exchange.bad(std::string(name) + ": not a number: \"" + text + "\"");
    *field = *n;
  }
  if (query.offset > 0 && (query.tail_lines >= 0 || (query.out && query.err)))
    return exchange.bad("offset: needs one stream, Stdout or Stderr, and no tailLines");
  if (url.flag("timestamps"))
    return exchange.bad(
        "timestamps: muster keeps what a pod wrote as it is, without the time of each line");
  const auto since = log_since(url, options_.now());
  if (!since.ok()) return exchange.bad(since.error().message);
  const core::Pod& pod = *shown.pod;
  if (pod.ended && pod.end.ended_at < *since)
    return exchange.send(200, "", "text/plain; charset=utf-8");
  if (pod.started_ms != 0 && pod.started_ms < *since)
    exchange.warnings.push_back(
        "the time of each line is not known: this is all that the pod has written");
  return stream_log(context_, exchange, backend_, std::move(query));
}

}  // namespace muster::api
