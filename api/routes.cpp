#include "api/routes.hpp"

#include "api/manifest.hpp"
#include "api/server.hpp"
#include "api/yaml.hpp"

#include <charconv>

namespace muster::api {
namespace {

template <class Int>
std::optional<Int> number(std::string_view text) {
  Int n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

kj::Promise<void> bad(Exchange& exchange, std::string_view message) {
  return exchange.send_status(400, "BadRequest", message);
}

// A call of the Backend as a promise.
struct Call {
  kj::Promise<Status> promise;
  std::function<void(Status)> done;
};

Call new_call() {
  auto paf = kj::newPromiseAndFulfiller<Status>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<Status>>>(kj::mv(paf.fulfiller));
  return {kj::mv(paf.promise),
          [fulfiller](Status status) { (*fulfiller)->fulfill(kj::mv(status)); }};
}

// ?dryRun= of the query: nothing, or All.
std::optional<bool> dry_run(const Url& url) {
  const std::string value = url.get("dryRun");
  if (value.empty()) return false;
  if (value == "All") return true;
  return std::nullopt;
}

struct DeleteOptions {
  bool background = true;
  bool dry = false;
  std::string uid;
};

Result<DeleteOptions> delete_options(const Url& url, const std::string& body,
                                     const std::string& content_type) {
  DeleteOptions found;
  std::string policy = url.get("propagationPolicy");
  std::string dry = url.get("dryRun");
  if (!body.empty()) {
    std::string text = body;
    if (content_type.find("yaml") != std::string::npos) {
      auto documents = yaml_to_json(body);
      if (!documents.ok()) return documents.error();
      if (documents->size() != 1)
        return Error{Errc::invalid, "the body has to be one DeleteOptions", {}};
      text = documents->front();
    }
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return Error{Errc::invalid, "the body is no DeleteOptions object", {}};
    auto text_field = [](const Json& object, const char* name) {
      return object.contains(name) && object[name].is_string() ? object[name].get<std::string>()
                                                               : std::string();
    };
    if (auto p = text_field(json, "propagationPolicy"); !p.empty()) policy = p;
    if (json.contains("orphanDependents") && json["orphanDependents"].is_boolean() &&
        policy.empty())
      policy = json["orphanDependents"].get<bool>() ? "Orphan" : "Background";
    if (json.contains("dryRun") && json["dryRun"].is_array() && !json["dryRun"].empty())
      dry = json["dryRun"][0].is_string() ? json["dryRun"][0].get<std::string>() : "?";
    if (json.contains("preconditions") && json["preconditions"].is_object()) {
      found.uid = text_field(json["preconditions"], "uid");
      if (!text_field(json["preconditions"], "resourceVersion").empty())
        return Error{Errc::invalid,
                     "preconditions.resourceVersion: not supported yet, give preconditions.uid",
                     {}};
    }
  }
  if (!dry.empty() && dry != "All")
    return Error{
        Errc::invalid, "dryRun: Unsupported value: \"" + dry + "\": supported values: \"All\"", {}};
  found.dry = !dry.empty();
  if (policy == "Orphan")
    return Error{Errc::invalid, "propagationPolicy: Orphan is not supported yet", {}};
  if (!policy.empty() && policy != "Background" && policy != "Foreground")
    return Error{Errc::invalid,
                 "propagationPolicy: Unsupported value: \"" + policy +
                     "\": supported values: \"Background\", \"Foreground\"",
                 {}};
  found.background = policy != "Foreground";
  return found;
}

}  // namespace

std::optional<Target> Target::of(const Url& url) {
  const std::vector<std::string>& p = url.path;
  size_t at = 0;
  bool batch = false;
  if (p.size() >= 3 && p[0] == "api" && p[1] == "v1") {
    at = 2;
  } else if (p.size() >= 4 && p[0] == "apis" && p[1] == "batch" && p[2] == "v1") {
    at = 3;
    batch = true;
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
  if (batch && resource == "jobs")
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
  const bool known = target.sub == "log" ? target.kind == Kind::pod
                                         : target.sub == "status" && target.kind != Kind::event;
  if (!known) return std::nullopt;
  return target;
}

kj::Promise<void> Routes::answer(Exchange& exchange, Target target) {
  const kj::HttpMethod method = exchange.method;
  if (method == kj::HttpMethod::GET) {
    if (target.sub == "log") return log(exchange, target);
    if (!target.name.empty()) return get(exchange, target);
    return list(exchange, target);
  }
  if (target.kind == Kind::job && target.sub.empty()) {
    if (method == kj::HttpMethod::POST && target.name.empty() && !target.ns.empty())
      return create(exchange, target);
    if (method == kj::HttpMethod::DELETE && !target.name.empty()) return remove(exchange, target);
  }
  return exchange.send_status(405, "MethodNotAllowed",
                              "the server does not allow this method on the requested resource");
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
  }
  return std::nullopt;
}

kj::Promise<void> Routes::get(Exchange& exchange, const Target& target) {
  const auto shown = find(target);
  if (!shown)
    return exchange.send_error({Errc::not_found, "", {}}, resource_name(target.kind), target.name);
  std::string text;
  renderer_.whole(text, *shown, exchange.form());
  return exchange.send(200, text + "\n");
}

kj::Promise<void> Routes::list(Exchange& exchange, const Target& target) {
  Query query{.kind = target.kind, .ns = target.ns};
  auto labels = Selector::labels(exchange.url.get("labelSelector"));
  if (!labels.ok()) return bad(exchange, labels.error().message);
  auto fields = Selector::fields(exchange.url.get("fieldSelector"), target.kind);
  if (!fields.ok()) return bad(exchange, fields.error().message);
  query.labels = std::move(*labels);
  query.fields = std::move(*fields);
  if (exchange.url.flag("watch")) return watch(exchange, std::move(query));
  return stream_list(context_, exchange, query);
}

kj::Promise<void> Routes::watch(Exchange& exchange, Query query) {
  const Url& url = exchange.url;
  WatchStart start;
  start.bookmarks = url.flag("allowWatchBookmarks");
  // As Kubernetes: half an hour to an hour when the client names no time.
  int64_t seconds = 1800 + static_cast<int64_t>(options_.random() % 1800);
  if (const std::string text = url.get("timeoutSeconds"); !text.empty()) {
    auto n = number<int64_t>(text);
    if (!n || *n < 0)
      return bad(exchange, "timeoutSeconds: not a number of seconds: \"" + text + "\"");
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
  const auto n = number<uint64_t>(version);
  if (!n)
    return bad(exchange,
               "resourceVersion: Invalid value: \"" + version + "\": not a version of this server");
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
  const Url& url = exchange.url;
  LogQuery query;
  query.pod = key_of(*shown);
  query.ns = target.ns;
  query.pod_name = target.name;
  query.container = url.get("container");
  const auto& containers = shown->job->spec().pod.containers;
  if (query.container.empty() && !containers.empty()) query.container = containers.front().name;
  bool known = false;
  for (const auto& c : containers) known = known || c.name == query.container;
  for (const auto& c : shown->job->spec().pod.init_containers)
    known = known || c.name == query.container;
  if (!known)
    return bad(exchange, "container " + query.container + " is not valid for pod " + target.name);
  if (url.flag("previous"))
    return bad(exchange, "previous terminated container \"" + query.container + "\" in pod \"" +
                             target.name + "\" not found");
  query.follow = url.flag("follow");
  const std::string stream = url.get("stream");
  if (!stream.empty() && stream != "All" && stream != "Stdout" && stream != "Stderr")
    return bad(exchange, "stream: Unsupported value: \"" + stream +
                             "\": supported values: \"All\", \"Stdout\", \"Stderr\"");
  query.out = stream != "Stderr";
  query.err = stream != "Stdout";
  for (auto [name, field] :
       {std::pair{"tailLines", &query.tail_lines}, {"limitBytes", &query.limit_bytes}}) {
    const std::string text = url.get(name);
    if (text.empty()) continue;
    const auto n = number<int64_t>(text);
    if (!n || *n < 0) return bad(exchange, std::string(name) + ": not a number: \"" + text + "\"");
    *field = *n;
  }
  return stream_log(context_, exchange, backend_, std::move(query));
}

std::string Routes::random_uid() {
  const uint64_t a = options_.random(), b = options_.random();
  char text[37];
  snprintf(text, sizeof text, "%08x-%04x-4%03x-%04x-%012llx", static_cast<unsigned>(a >> 32),
           static_cast<unsigned>(a >> 16 & 0xffff), static_cast<unsigned>(a & 0xfff),
           static_cast<unsigned>(0x8000 | (b >> 48 & 0x3fff)),
           static_cast<unsigned long long>(b & 0xffffffffffffu));
  return text;
}

std::string Routes::random_suffix() {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  uint64_t n = options_.random();
  std::string text;
  for (int i = 0; i < 5; ++i, n /= kAlphabet.size()) text += kAlphabet[n % kAlphabet.size()];
  return text;
}

kj::Promise<void> Routes::create(Exchange& exchange, const Target& target) {
  return exchange.read_body().then(
      [this, &exchange, target](kj::Maybe<std::string> body) -> kj::Promise<void> {
        KJ_IF_MAYBE (text, body) return create_from(exchange, target, *text);
        return kj::READY_NOW;  // answered already
      });
}

kj::Promise<void> Routes::create_from(Exchange& exchange, const Target& target,
                                      const std::string& body) {
  const Url& url = exchange.url;
  const std::string strictness = url.get("fieldValidation");
  FieldValidation unknown = FieldValidation::strict;
  if (strictness == "Warn")
    unknown = FieldValidation::warn;
  else if (strictness == "Ignore")
    unknown = FieldValidation::ignore;
  else if (!strictness.empty() && strictness != "Strict")
    return bad(exchange, "fieldValidation: Unsupported value: \"" + strictness +
                             "\": supported values: \"Ignore\", \"Strict\", \"Warn\"");
  const auto dry = dry_run(url);
  if (!dry)
    return bad(exchange, "dryRun: Unsupported value: \"" + url.get("dryRun") +
                             "\": supported values: \"All\"");
  std::string text = body;
  if (exchange.content_type.find("yaml") != std::string::npos) {
    auto documents = yaml_to_json(body);
    if (!documents.ok()) return bad(exchange, documents.error().message);
    if (documents->size() != 1)
      return bad(exchange, "the body has to be one Job, not " + std::to_string(documents->size()) +
                               " documents");
    text = std::move(documents->front());
  }
  auto parsed = parse_job(text, unknown);
  if (!parsed.ok()) return exchange.send_error(parsed.error(), "jobs", "");
  exchange.warnings = parsed->warnings;
  std::string name = parsed->meta.name.empty() ? parsed->meta.generate_name : parsed->meta.name;
  auto admitted =
      admit_job(std::move(*parsed), {target.ns, random_uid(), options_.now(), random_suffix()});
  if (!admitted.ok()) return exchange.send_error(admitted.error(), "jobs", name);
  core::JobObjectPtr job = std::move(*admitted);
  name = job->meta.name;
  auto send = [this, &exchange, job](const Shown& shown) {
    std::string answer;
    renderer_.whole(answer, shown, exchange.form());
    return exchange.send(201, answer + "\n");
  };
  if (view_.job(target.ns, name)) return exchange.send_error({Errc::exists, "", {}}, "jobs", name);
  if (*dry) {
    const core::Job pretended(0, job);
    return send(Shown{.kind = Kind::job, .job = &pretended, .version = view_.version()});
  }
  Call call = new_call();
  backend_.create_job(job, std::move(call.done));
  return call.promise.then(
      [this, &exchange, job, name, ns = target.ns, send](Status status) -> kj::Promise<void> {
        if (!status.ok()) return exchange.send_error(status.error(), "jobs", name);
        if (const auto shown = view_.job(ns, name);
            shown && shown->job->object().meta.uid == job->meta.uid)
          return send(*shown);
        const core::Job was(0, job);  // somebody has deleted it already
        return send(Shown{.kind = Kind::job, .job = &was, .version = view_.version()});
      });
}

kj::Promise<void> Routes::remove(Exchange& exchange, const Target& target) {
  return exchange.read_body().then(
      [this, &exchange, target](kj::Maybe<std::string> body) -> kj::Promise<void> {
        KJ_IF_MAYBE (text, body) return remove_by(exchange, target, *text);
        return kj::READY_NOW;  // answered already
      });
}

kj::Promise<void> Routes::remove_by(Exchange& exchange, const Target& target,
                                    const std::string& body) {
  auto options = delete_options(exchange.url, body, exchange.content_type);
  if (!options.ok()) return bad(exchange, options.error().message);
  const auto shown = view_.job(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "jobs", target.name);
  const std::string uid = shown->job->object().meta.uid;
  if (!options->uid.empty() && options->uid != uid)
    return exchange.send_error({Errc::conflict,
                                "Precondition failed: UID in precondition: " + options->uid +
                                    ", UID in object meta: " + uid,
                                {}},
                               "jobs", target.name);
  if (options->dry) return removed(exchange, target, uid);
  Call call = new_call();
  backend_.delete_job(target.ns, target.name, options->uid, options->background,
                      std::move(call.done));
  return call.promise.then([this, &exchange, target, uid](Status status) -> kj::Promise<void> {
    if (!status.ok()) return exchange.send_error(status.error(), "jobs", target.name);
    return removed(exchange, target, uid);
  });
}

// The object while it is still there (in the foreground), else that it is gone.
kj::Promise<void> Routes::removed(Exchange& exchange, const Target& target,
                                  const std::string& uid) {
  const auto shown = view_.job(target.ns, target.name);
  if (shown && shown->job->object().meta.uid == uid && shown->job->state().deleted_ms != 0) {
    std::string text;
    renderer_.object(text, *shown);
    return exchange.send(200, text + "\n");
  }
  OrderedJson json = {{"kind", "Status"},
                      {"apiVersion", "v1"},
                      {"metadata", OrderedJson::object()},
                      {"status", "Success"}};
  json["details"] = {{"name", target.name}, {"group", "batch"}, {"kind", "jobs"}, {"uid", uid}};
  return exchange.send(200, dumped(json) + "\n");
}

}  // namespace muster::api
