#include "api/routes/kept/read_routes.hpp"

#include "api/kube/objects/status_object.hpp"
#include "api/request/list_stream.hpp"
#include "base/text/json_text.hpp"
#include "core/spec/values/violations.hpp"

#include <algorithm>

namespace muster::api {
namespace {

std::string not_a_version(const std::string& text) {
  return "resourceVersion: Invalid value: \"" + text + "\": unknown to this server";
}

// The version of the list is unknown by now, but its rest can be listed as of now.
kj::Promise<void> send_expired(Exchange& exchange, ListPage page) {
  OrderedJson status = status_json(
      410, "Expired",
      "The provided continue parameter is too old to display a consistent list result. You can "
      "start a new list without the continue parameter, or use the continue token in this response "
      "to retrieve the remainder of the results. Continuing with the provided token results in an "
      "inconsistent list - objects that were created, modified, or deleted between the time the "
      "first chunk was returned and now may show up in the list.");
  page.version = 0;
  status["metadata"]["continue"] = continue_token(page, page.after);
  return exchange.send(410, dumped(status) + "\n");
}

}  // namespace

Status check_list_options(const Url& url) {
  core::Violations found;
  const bool watch = url.flag("watch"), initial = !url.get("sendInitialEvents").empty();
  const std::string match = url.get("resourceVersionMatch"), version = url.get("resourceVersion");
  const char *const kMatch = "resourceVersionMatch", *const kNotOlder = "NotOlderThan";
  if (watch && initial && match != kNotOlder)
    found.forbidden(kMatch,
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  if (watch && !match.empty() && !initial)
    found.forbidden(
        kMatch, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
  if (watch && !match.empty() && match != kNotOlder)
    found.not_supported(kMatch, match, {kNotOlder});
  if (!watch && !match.empty() && version.empty())
    found.forbidden(kMatch, "resourceVersionMatch is forbidden unless resourceVersion is provided");
  if (!match.empty() && !url.get("continue").empty())
    found.forbidden(kMatch, "resourceVersionMatch is forbidden when continue is provided");
  if (!watch && !match.empty() && match != "Exact" && match != kNotOlder)
    found.not_supported(kMatch, match, {"Exact", kNotOlder, ""});
  if (!watch && match == "Exact" && version == "0")
    found.forbidden(kMatch,
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
  if (!watch && initial)
    found.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
  if (found.empty()) return Nothing{};
  return Error{Errc::invalid, "the options are invalid", found.take()};
}

Result<Query> query_of(const Exchange& exchange, const Target& target, const AccessGate& gate) {
  const Url& url = exchange.url;
  auto labels = Selector::labels(url.get("labelSelector"));
  if (!labels.ok()) return labels.error();
  auto fields = Selector::fields(url.get("fieldSelector"), target.kind);
  if (!fields.ok()) return fields.error();
  Query query{.kind = target.kind, .ns = target.ns};
  query.labels = std::move(*labels);
  query.fields = std::move(*fields);
  query.viewer = gate.viewer(exchange.caller);
  if (target.kind == Kind::config_map)
    query.namespaces = gate.namespaces(exchange.caller, target.ns);
  if (exchange.method == kj::HttpMethod::DELETE) query.viewer.summaries = false;
  return query;
}

kj::Promise<void> ReadRoutes::get(Exchange& exchange, const Target& target) {
  auto shown = find(target);
  if (!shown)
    return exchange.send_error({Errc::not_found, "", {}}, resource_name(target.kind), target.name);
  shown->summary = gate_.judge(exchange).access == Access::summary;
  std::string text;
  renderer_.whole(text, *shown, exchange.form());
  return exchange.send(200, text + "\n");
}

kj::Promise<void> ReadRoutes::list(Exchange& exchange, const Target& target) {
  auto query = query_of(exchange, target, gate_);
  if (!query.ok()) return exchange.bad(query.error().message);
  if (Status fits = check_list_options(exchange.url); !fits.ok())
    return exchange.bad_options(fits.error());
  if (exchange.url.flag("watch")) return watch(exchange, std::move(*query));
  auto page = page_of(exchange.url);
  if (!page.ok()) return exchange.bad(page.error().message);
  if (page->version != 0 && !view_.continues(query->kind, page->version))
    return send_expired(exchange, std::move(*page));
  if (auto refused = refuse_version(exchange)) return kj::mv(*refused);
  return stream_list(streams_, exchange, *query, std::move(*page));
}

// Lists always show the current state, so requests for an older or a future one are refused.
std::optional<kj::Promise<void>> ReadRoutes::refuse_version(Exchange& exchange) {
  const std::string text = exchange.url.get("resourceVersion"),
                    match = exchange.url.get("resourceVersionMatch");
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

std::optional<kj::Promise<void>> watch_start(Exchange& exchange, const View& view, Kind kind,
                                             const ServerOptions& options, WatchStart& start) {
  const Url& url = exchange.url;
  start.bookmarks = url.flag("allowWatchBookmarks");
  // As in Kubernetes: 30 to 60 minutes if the client gives no time.
  int64_t seconds = 1800 + static_cast<int64_t>(options.random() % 1800);
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
    start.from = view.changes(kind).end();
    return std::nullopt;
  }
  const auto n = whole_number<uint64_t>(version);
  if (!n) return exchange.bad(not_a_version(version));
  if (*n > view.version()) {  // as in Kubernetes, it waits
    start.after = *n;
    start.from = view.changes(kind).end();
    return std::nullopt;
  }
  const auto from = view.after(kind, *n);
  if (!from)
    return exchange.send_status(
        410, "Expired",
        "too old resource version: " + version + " (" + std::to_string(view.version()) + ")");
  start.from = *from;
  return std::nullopt;
}

kj::Promise<void> ReadRoutes::watch(Exchange& exchange, Query query) {
  WatchStart start;
  if (auto refused = watch_start(exchange, view_, query.kind, options_, start))
    return kj::mv(*refused);
  return stream_watch(streams_, exchange, std::move(query), start);
}

}  // namespace muster::api
