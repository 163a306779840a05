#include "api/routes/server.hpp"

#include "api/access/audit.hpp"
#include "api/http/admission.hpp"
#include "api/http/ends.hpp"
#include "api/http/framing.hpp"
#include "api/kube/objects/status_object.hpp"
#include "api/kube/schema/discovery.hpp"
#include "api/request/access_gate.hpp"
#include "api/routes/access/access_review.hpp"
#include "api/routes/access/authentication.hpp"
#include "api/routes/access/login_routes.hpp"
#include "api/routes/access/munge_routes.hpp"
#include "api/routes/empty_lists.hpp"
#include "api/routes/jobs/cron_controller.hpp"
#include "api/routes/jobs/notifier.hpp"
#include "api/routes/kept/namespace_sweep.hpp"
#include "api/routes/kept/namespaces.hpp"
#include "api/routes/kept/node_events.hpp"
#include "api/routes/kept/owner_sweep.hpp"
#include "api/routes/kept/reach_events.hpp"
#include "api/routes/kept/scheduling_events.hpp"
#include "api/routes/not_served.hpp"
#include "api/routes/page.hpp"
#include "api/routes/routes.hpp"
#include "base/check.hpp"
#include "base/log.hpp"
#include "base/peer/peer_uid.hpp"
#include "base/seldom.hpp"

#include <regex>
#include <unistd.h>

namespace muster::api {
namespace {

std::string text_of(kj::Maybe<kj::StringPtr> header) {
  KJ_IF_MAYBE (value, header) return std::string(value->begin(), value->size());
  return {};
}

// Whether Go's ParseDuration takes it ("1m30s", "0"), or it is empty.
bool is_duration(const std::string& text) {
  static const std::regex kDuration("|[+-]?(0|(([0-9]+\\.?[0-9]*|\\.[0-9]+)(ns|us|µs|ms|s|m|h))+)");
  return text.size() < 100 && std::regex_match(text, kDuration);
}

// The status lines for connections that are not served.
constexpr const char* kRefusedHead = "403 Forbidden";
constexpr const char* kBusyHead = "503 Service Unavailable\r\nRetry-After: 1";
constexpr kj::Duration kAgain = 10 * kj::MILLISECONDS;

kj::HttpServerSettings settings(const ServerOptions& options, kj::HttpServerErrorHandler& errors,
                                kj::HttpServerCallbacks& callbacks) {
  kj::HttpServerSettings settings;
  settings.headerTimeout = options.head_patience;
  settings.pipelineTimeout = 10 * kj::MINUTES;  // idle connections that a client may reuse
  // Drain a body that is refused unread, so that the client can read the response.
  settings.canceledUploadGracePeriod = 5 * kj::SECONDS;
  settings.canceledUploadGraceBytes = 16u << 20;
  settings.errorHandler = errors;
  settings.callbacks = callbacks;
  return settings;
}

}  // namespace

class Server::Impl final : private kj::TaskSet::ErrorHandler, private kj::HttpServerErrorHandler {
 public:
  Impl(kj::Timer& timer, View& view, Backend& backend, ServerOptions options)
      : view_(view),
        backend_(backend),
        options_(std::move(options)),
        gate_(view, backend, options_.access),
        quotas_(options_.quotas),
        bodies_(options_.bodies_max, share_of_one(options_.bodies_max)),
        directory_(options_.roles, options_.read_account),
        queues_(timer, view, backend, directory_),
        discovery_(options_.version),
        renderer_(view, options_.now),
        context_(timer, view, renderer_,
                 {options_.watches_max, share_of_one(options_.watches_max),
                  options_.watch_memory_max, share_of_one(options_.watch_memory_max)}),
        routes_(route_context()),
        sweep_(timer, view, backend),
        owner_sweep_(timer, view, backend, options_.now),
        scheduling_events_(timer, view, renderer_, backend, options_.now),
        node_events_(timer, view, backend, options_.now),
        reach_events_(timer, view, backend, options_.now),
        crons_(route_context(), timer),
        notifier_(route_context(), timer),
        login_(route_context()),
        munge_(route_context()),
        authentication_(route_context(), {[this](uint64_t id) { remote_crowd_.busy(id); },
                                          [this](uint64_t id) { close(id); }}),
        http_(
            timer, make_table(), [this](kj::AsyncIoStream& stream) { return service(stream); },
            settings(options_, *this, answer_closing_)),
        crowd_(options_.connections_max),
        remote_crowd_(options_.remote_connections_max),
        acceptor_(timer, "the API",
                  [this](kj::Own<kj::AsyncIoStream> stream) { tasks_.add(take(kj::mv(stream))); }),
        metrics_acceptor_(timer, "the metrics port",
                          [this](kj::Own<kj::AsyncIoStream> stream) {
                            tasks_.add(take_collector(kj::mv(stream)));
                          }),
        tls_acceptor_(
            timer, "the API's TLS port",
            [this](kj::Own<kj::AsyncIoStream> stream) { tasks_.add(take_remote(kj::mv(stream))); }),
        tasks_(*this) {
    MUSTER_CHECK(options_.random != nullptr);
    view_.on_change([this] {
      context_.wake();
      sweep_.look();
      owner_sweep_.look();
      crons_.look();
      notifier_.look();
      if (ready_) queues_.look();
    });
  }
  ~Impl() noexcept(false) { view_.on_change({}); }

  kj::Promise<void> accept(kj::ConnectionReceiver& port) { return acceptor_.run(port); }

  kj::Promise<void> accept_metrics(kj::ConnectionReceiver& port) {
    return metrics_acceptor_.run(port);
  }

  kj::Promise<void> accept_tls(kj::ConnectionReceiver& port, Server::Encrypt encrypt) {
    encrypt_ = std::move(encrypt);
    return tls_acceptor_.run(port);
  }

  kj::Promise<void> connection(kj::Own<kj::AsyncIoStream> stream, const std::string& who,
                               std::optional<uid_t> uid) {
    Peer peer;
    peer.fd = fd_of(*stream);
    peer.local_host = local_host(peer.fd);
    if (options_.roles.any()) peer.uid = uid;
    if (options_.audit) peer.source = source_of(peer.fd);
    return counted(crowd_, who,
                   [this, peer = std::move(peer), stream = kj::mv(stream)](uint64_t id) mutable {
                     return talk(id, peer, kj::mv(stream));
                   });
  }

  kj::Promise<void> passed(kj::Own<kj::AsyncIoStream> stream, PassedPeer from) {
    Peer peer;
    peer.fd = fd_of(*stream);
    peer.local_host = std::move(from.local_host);
    peer.source = std::move(from.source);
    peer.remote = !from.uid;
    if (options_.roles.any()) peer.uid = from.uid;
    const bool ours = from.uid && (*from.uid == 0 || *from.uid == geteuid());
    if (!options_.insecure && !options_.roles.any() && from.uid && !ours)
      return refuse(
          kj::mv(stream), kRefusedHead,
          status_json(403, "Forbidden", "only the coordinator's own user and root are served"));
    const std::string who = from.uid ? "uid " + std::to_string(*from.uid) : peer.source;
    Crowd& crowd = crowd_of(peer);
    if (!make_room(crowd, who)) return kj::READY_NOW;
    return counted(crowd, who,
                   [this, peer = std::move(peer), stream = kj::mv(stream)](uint64_t id) mutable {
                     return talk(id, std::move(peer), kj::mv(stream));
                   });
  }

  kj::Promise<void> first_requests(kj::Duration patience) {
    // The last one is the youngest.
    if (silent_.empty() || context_.timer.now() - silent_.rbegin()->second >= patience)
      return kj::READY_NOW;
    return context_.timer.afterDelay(kAgain).then(
        [this, patience] { return first_requests(patience); });
  }

  kj::Promise<void> drain() {
    context_.draining = true;
    context_.wake();
    return http_.drain();
  }

  StreamContext& streams() { return context_; }
  void reload(RoleGroups roles, QuotaLimits quotas) {
    quotas.pods_max = options_.quotas.pods_max;
    options_.quotas = quotas;
    quotas_.change(quotas);
    options_.roles = roles;
    directory_.change(std::move(roles));
  }
  void set_ready(bool ready, std::string reason) {
    ready_ = ready;
    if (ready) {
      queues_.look();
      sweep_.start();
      owner_sweep_.start();
      scheduling_events_.start();
      node_events_.start();
      reach_events_.start();
      crons_.start();
      notifier_.start();
    }
    reason_ = std::move(reason);
  }

 private:
  // Call it once all of these exist.
  RouteContext route_context() {
    return {context_, view_,   backend_,   renderer_, options_,
            gate_,    quotas_, directory_, queues_,   logins_};
  }

  // One per connection.
  class Service final : public kj::HttpService {
   public:
    Service(Impl& impl, Peer peer, uint64_t id) : impl_(impl), peer_(std::move(peer)), id_(id) {}
    kj::Promise<void> request(kj::HttpMethod method, kj::StringPtr url,
                              const kj::HttpHeaders& headers, kj::AsyncInputStream& body,
                              Response& response) override {
      // Until its token is verified, a connection from elsewhere may be closed to admit another.
      impl_.silent_.erase(id_);
      Crowd& crowd = impl_.crowd_of(peer_);
      if (!peer_.elsewhere()) crowd.busy(id_);
      auto answer = impl_.request(peer_, id_, method, url, headers, body, response);
      return answer.attach(kj::defer([&crowd, id = id_] { crowd.idle(id); }));
    }

   private:
    Impl& impl_;
    Peer peer_;
    uint64_t id_;
  };

  // What one user may have of something that all share.
  size_t share_of_one(size_t all) const { return all / (options_.roles.any() ? 4 : 1); }

  const kj::HttpHeaderTable& make_table() {
    kj::HttpHeaderTable::Builder builder;
    accept_id_ = builder.add("Accept");
    origin_id_ = builder.add("Origin");
    user_agent_id_ = builder.add("User-Agent");
    if_none_match_id_ = builder.add("If-None-Match");
    authorization_id_ = builder.add("Authorization");
    protocol_id_ = builder.add("Sec-WebSocket-Protocol");
    fetch_site_id_ = builder.add("Sec-Fetch-Site");
    fetch_mode_id_ = builder.add("Sec-Fetch-Mode");
    fetch_dest_id_ = builder.add("Sec-Fetch-Dest");
    table_ = builder.build();
    return *table_;
  }

  kj::Own<kj::HttpService> service(kj::AsyncIoStream&) {
    return kj::heap<Service>(*this, std::move(entering_peer_), entering_);
  }

  // Counts a connection until the promise that serve(id) returns is resolved.
  template <class Serve>
  kj::Promise<void> counted(Crowd& crowd, const std::string& who, Serve serve) {
    const uint64_t id = ++last_id_;
    auto closed = kj::newPromiseAndFulfiller<void>();
    closing_.emplace(id, kj::mv(closed.fulfiller));
    silent_.emplace(id, context_.timer.now());
    crowd.enter(id, who);
    return serve(id).exclusiveJoin(kj::mv(closed.promise)).attach(kj::defer([this, &crowd, id] {
      crowd.leave(id);
      silent_.erase(id);
      closing_.erase(id);
    }));
  }

  kj::Promise<void> talk(uint64_t id, Peer peer, kj::Own<kj::AsyncIoStream> stream) {
    entering_ = id;  // for service(), which listenHttp() calls
    entering_peer_ = std::move(peer);
    entering_peer_.pace->writes = options_.before_writing;
    return http_.listenHttp(kj::heap<PacedStream>(kj::mv(stream), entering_peer_.pace));
  }

  // A connection over TLS, from anybody: each request identifies its caller.
  kj::Promise<void> take_remote(kj::Own<kj::AsyncIoStream> stream) {
    Peer peer;
    peer.fd = fd_of(*stream);
    peer.local_host = local_host(peer.fd);
    peer.source = source_of(peer.fd);
    peer.remote = true;
    if (!make_room(remote_crowd_, peer.source)) return kj::READY_NOW;  // TLS has no way to say so
    auto handshake = context_.timer.timeoutAfter(options_.head_patience, encrypt_(kj::mv(stream)));
    return counted(
        remote_crowd_, peer.source,
        [this, peer, handshake = kj::mv(handshake)](uint64_t id) mutable {
          return handshake.then([this, id, peer](kj::Own<kj::AsyncIoStream> encrypted) mutable {
            return talk(id, std::move(peer), kj::mv(encrypted));
          });
        });
  }

  kj::Promise<void> take_collector(kj::Own<kj::AsyncIoStream> stream) {
    Peer peer;
    peer.fd = fd_of(*stream);
    peer.source = source_of(peer.fd);
    peer.collector = true;
    if (!make_room(remote_crowd_, peer.source)) return kj::READY_NOW;
    return counted(remote_crowd_, peer.source,
                   [this, peer, stream = kj::mv(stream)](uint64_t id) mutable {
                     return talk(id, std::move(peer), kj::mv(stream));
                   });
  }

  Crowd& crowd_of(const Peer& peer) { return peer.elsewhere() ? remote_crowd_ : crowd_; }

  void close(uint64_t connection) {
    if (const auto it = closing_.find(connection); it != closing_.end()) it->second->fulfill();
  }

  bool make_room(Crowd& crowd, const std::string& who) {
    const auto room = crowd.make_room(who);
    if (room.instead) close(*room.instead);
    if (room.ok) return true;
    if (const auto more = turned_away_.due(boot_now()))
      log::warn("the API has reached its limit of {} connections; rejecting {}{}", crowd.size(),
                who, *more);
    return false;
  }

  kj::Promise<void> take(kj::Own<kj::AsyncIoStream> stream) {
    const PeerVerdict peer = peers_.judge(fd_of(*stream));
    const bool a_user = options_.roles.any() && peer.uid;
    if (!options_.insecure && !a_user && peer.kind != PeerVerdict::Kind::trusted) {
      if (const auto more = strangers_.due(boot_now()))
        log::warn("refused a connection to the API: {}{}", peer.why, *more);
      if (peer.kind == PeerVerdict::Kind::unknown)
        return refuse(kj::mv(stream), kBusyHead,
                      status_json(503, "ServiceUnavailable", peer.why, {{"retryAfterSeconds", 1}}));
      return refuse(
          kj::mv(stream), kRefusedHead,
          status_json(403, "Forbidden", "only the coordinator's own user and root are served"));
    }
    if (!make_room(crowd_, peer.who))
      return refuse(kj::mv(stream), kBusyHead,
                    status_json(503, "ServiceUnavailable",
                                "there are " + std::to_string(crowd_.size()) +
                                    " connections already, the maximum; try again later",
                                {{"retryAfterSeconds", 1}}));
    return connection(kj::mv(stream), peer.who, peer.uid);
  }

  kj::Promise<void> refuse(kj::Own<kj::AsyncIoStream> stream, const char* head,
                           const OrderedJson& status) {
    const std::string body = dumped(status) + "\n";
    std::string text = std::string("HTTP/1.1 ") + head +
                       "\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\n"
                       "Connection: close\r\nContent-Length: " +
                       std::to_string(body.size()) + "\r\n\r\n" + body;
    auto promise = context_.write(*stream, std::move(text));
    return promise.then([&stream = *stream] { stream.shutdownWrite(); }).attach(kj::mv(stream));
  }

  kj::Promise<void> request(const Peer& peer, uint64_t connection, kj::HttpMethod method,
                            kj::StringPtr url_text, const kj::HttpHeaders& headers,
                            kj::AsyncInputStream& body, kj::HttpService::Response& response) {
    // Copied, because the URL and the headers are gone once the body is read.
    auto url = Url::parse({url_text.begin(), url_text.size()});
    const bool readable = url.has_value();
    auto exchange =
        kj::heap<Exchange>(*table_, method, url ? std::move(*url) : Url(), body, response, peer);
    exchange->impatient(context_.timer, options_.body_patience, options_.body_time);
    exchange->take_from(bodies_);
    if (std::string id = backend_.cluster(); !id.empty())
      exchange->headers.push_back({"Muster-Cluster", std::move(id)});
    exchange->content_type = text_of(headers.get(kj::HttpHeaderId::CONTENT_TYPE));
    exchange->accept = text_of(headers.get(accept_id_));
    exchange->user_agent = text_of(headers.get(user_agent_id_));
    exchange->if_none_match = text_of(headers.get(if_none_match_id_));
    exchange->upgrade = text_of(headers.get(kj::HttpHeaderId::UPGRADE));
    exchange->protocols = text_of(headers.get(protocol_id_));
    exchange->websocket = method == kj::HttpMethod::GET && headers.isWebSocket() &&
                          text_of(headers.get(kj::HttpHeaderId::SEC_WEBSOCKET_VERSION)) == "13" &&
                          headers.get(kj::HttpHeaderId::SEC_WEBSOCKET_KEY) != nullptr;
    const WebHeaders web{text_of(headers.get(kj::HttpHeaderId::HOST)),
                         text_of(headers.get(origin_id_)), text_of(headers.get(fetch_site_id_)),
                         text_of(headers.get(fetch_mode_id_)),
                         text_of(headers.get(fetch_dest_id_))};
    const auto text_if = [&headers](kj::HttpHeaderId id) -> std::optional<std::string_view> {
      KJ_IF_MAYBE (found, headers.get(id)) return std::string_view(found->begin(), found->size());
      return std::nullopt;
    };
    const auto ambiguous = refused_framing(text_if(kj::HttpHeaderId::CONTENT_LENGTH),
                                           text_if(kj::HttpHeaderId::TRANSFER_ENCODING));
    exchange->connection_of(
        answer_closing_,
        ambiguous || asks_to_close(text_if(kj::HttpHeaderId::CONNECTION).value_or("")));
    exchange->connection = connection;
    exchange->authorization = text_of(headers.get(authorization_id_));
    Exchange& e = *exchange;
    e.on_upgrade = [this, &e] { audit(e); };
    auto answer = kj::evalNow([&]() -> kj::Promise<void> {
      if (ambiguous) return e.send_status(400, "BadRequest", *ambiguous);
      const bool shows_page = method == kj::HttpMethod::GET && is_page(e.url) && wants_page(e);
      // A browser adds no token on its own, so a foreign page cannot use one; metrics are for
      // anybody who reaches their port.
      if (!peer.remote && !peer.collector)
        if (auto why = refused_for_web(options_.hosts, peer.local_host, web, shows_page))
          return e.send_status(403, "Forbidden", *why);
      if (!readable) return e.send_status(400, "BadRequest", "the URL has a broken percent escape");
      // The log-in of those who have no token yet.
      if (peer.remote && !Authentication::bears_token(e)) {
        if (shows_page) return send_page(e);  // the same for everybody; it logs in itself
        if (munge_.serves(e)) return ready_ ? munge_.answer(e) : not_ready(e);
        if (LoginRoutes::serves(e)) return ready_ ? login_.answer(e) : not_ready(e);
      }
      return authentication_.pass(e, [this](Exchange& known) { return answer_to(known); });
    });
    return answer
        .catch_([&e](kj::Exception&& failure) -> kj::Promise<void> {
          // A partial response cannot be repaired, and a client that is gone needs none.
          if (e.started() || e.unreadable() ||
              failure.getType() == kj::Exception::Type::DISCONNECTED)
            return kj::mv(failure);
          if (failure.getType() == kj::Exception::Type::OVERLOADED)
            return e.send_status(503, "ServiceUnavailable",
                                 "the system's user database is not responding",
                                 OrderedJson{{"retryAfterSeconds", 1}});
          log::error("a request failed: {}", failure.getDescription().cStr());
          return e.send_status(500, "InternalError", "an internal error occurred");
        })
        .then([&e] {
          // KJ says that it closes the connection, but reads the next request.
          if (e.closes()) kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "as agreed"));
        })
        .attach(kj::defer([this, &e] { audit(e); }))
        .attach(kj::mv(exchange));
  }

  void audit(const Exchange& e) {
    if (e.peer.collector) return;
    // Unknown callers must not flood the log and push out other lines.
    if (e.peer.remote && !e.caller.distinguished) {
      if (!options_.audit || e.code() != 401) return;
      if (const auto more = unknown_.due(boot_now()))
        log::warn("a request from {} has no valid token{}{}", e.peer.source,
                  e.unknown_why.empty() ? "" : ": " + e.unknown_why, *more);
      return;
    }
    const AuditEntry entry{e.caller, e.wants, e.peer.source, e.user_agent, e.code(), e.made};
    if (options_.audit && is_audited(entry)) options_.audit(audit_object(entry, options_.now()));
    if (is_change(entry) && e.url.get("dryRun").empty()) log::info("{}", change_text(entry));
  }

  kj::Promise<void> answer_to(Exchange& e) {
    const bool known = !e.peer.elsewhere() || e.caller.distinguished;
    if (known && !quotas_.take_request(e.caller, boot_now()))
      return e.send_status(429, "TooManyRequests",
                           "more than " + std::to_string(options_.quotas.requests_max) +
                               " requests per second, the maximum for one user",
                           OrderedJson{{"retryAfterSeconds", 1}});
    if (auto refused = gate_.refuse(e)) return kj::mv(*refused);
    const std::vector<std::string>& path = e.url.path;
    const bool get = e.method == kj::HttpMethod::GET || e.method == kj::HttpMethod::HEAD;
    if (path.size() == 1 && (path[0] == "healthz" || path[0] == "livez") && get)
      return e.send(200, "ok", "text/plain");
    if (path.size() == 1 && path[0] == "readyz" && get)
      return is_ready() ? e.send(200, "ok", "text/plain")
                        : e.send(503, reason() + "\n", "text/plain");
    if (path.size() == 1 && path[0] == "metrics" && get && options_.metrics)
      return e.send(200, options_.metrics(), "text/plain; version=0.0.4; charset=utf-8");
    if (is_page(e.url) && wants_page(e)) {
      if (!get) return not_allowed(e);
      return send_page(e);
    }
    if (const Document* document = discovery_.find(e.url)) {
      if (!get) return not_allowed(e);
      return send_document(e, *document);
    }
    const bool own_words = path.size() > 1 && path[1] == "muster.dev" && !Target::of(e.url);
    const bool text = !path.empty() && path.back() == "log";
    if (!own_words && !text) {
      const auto accepts = accepted(e.accept, e.url.flag("watch"));
      if (!accepts)
        return e.send_status(406, "NotAcceptable",
                             "only the following media types are accepted: application/json, "
                             "application/yaml, application/vnd.kubernetes.protobuf");
      e.accepted = *accepts;
      if (const std::string timeout = e.url.get("timeout"); !is_duration(timeout))
        return e.bad("invalid timeout specified in the request URL: \"" + timeout + "\"");
    }
    if (is_access_review(e.url)) return answer_access_review(e, gate_);
    if (const auto why = not_served(e.method, e.url)) {
      e.headers.push_back({"Allow", why->allow});
      return e.send_status(405, "MethodNotAllowed", why->message);
    }
    if (is_empty_list(e.url)) return answer_empty_list(e, view_.version());
    if (AccountRoutes::serves(e.url)) return is_ready() ? routes_.answer_accounts(e) : not_ready(e);
    auto target = Target::of(e.url);
    const auto own = MusterTarget::of(e.url);
    const bool names = is_namespaces(e.url);
    if (!target && !own && !names)
      return e.send_status(404, "NotFound", "the server could not find the requested resource");
    if (!is_ready()) return not_ready(e);
    if (own) return routes_.answer_own(e, *own);
    if (names && get && !e.url.flag("watch")) return answer_namespaces(e, view_, gate_, renderer_);
    return routes_.answer(e, *target);
  }

  bool is_ready() const { return ready_ && queues_.ready(); }
  std::string reason() const { return ready_ ? "looking up the groups of queues" : reason_; }

  kj::Promise<void> not_ready(Exchange& e) const {
    return e.send_status(503, "ServiceUnavailable", reason(),
                         OrderedJson{{"retryAfterSeconds", 1}});
  }

  // Responds with 304 if the client already has the document.
  static kj::Promise<void> send_document(Exchange& e, const Document& document) {
    const bool json = std::string_view(document.content_type) == "application/json";
    const bool any = e.accept.empty() || e.accept.find("*/*") != std::string::npos;
    if (!json && !any && e.accept.find("protobuf") == std::string::npos)
      return e.send_status(
          406, "NotAcceptable",
          std::string("only the following media type is accepted: ") + document.content_type);
    if (!document.etag.empty()) {
      e.headers.emplace_back("ETag", document.etag);
      if (e.if_none_match == document.etag) return e.send(304, "");
    }
    return e.send(200, json ? document.text + "\n" : document.text, document.content_type);
  }

  static kj::Promise<void> not_allowed(Exchange& e) {
    e.headers.push_back({"Allow", "GET, HEAD"});
    return e.send_status(405, "MethodNotAllowed", "the server does not allow this method here");
  }

  void taskFailed(kj::Exception&& failure) override {
    log::debug("an API connection ended: {}", failure.getDescription().cStr());
  }

  // The request is not valid HTTP.
  kj::Promise<void> handleClientProtocolError(kj::HttpHeaders::ProtocolError error,
                                              kj::HttpService::Response& response) override {
    kj::HttpHeaders headers(*table_);
    headers.set(kj::HttpHeaderId::CONTENT_TYPE, "application/json");
    headers.add("X-Content-Type-Options", "nosniff");
    const int code = static_cast<int>(error.statusCode);
    std::string text =
        dumped(status_json(code, "BadRequest", std::string(error.description.cStr()))) + "\n";
    auto out = response.send(error.statusCode, error.statusMessage, headers, text.size());
    auto promise = context_.write(*out, std::move(text));
    return promise.attach(kj::mv(out));
  }

  // request() handles our own failures, so a failure before the response has started comes from the
  // request: a length that is not a number, or an unknown encoding.
  kj::Promise<void> handleApplicationError(
      kj::Exception failure, kj::Maybe<kj::HttpService::Response&> response) override {
    log::debug("an API response was cut off: {}", failure.getDescription().cStr());
    if (failure.getType() != kj::Exception::Type::DISCONNECTED) {
      KJ_IF_MAYBE (open, response)
        return handleClientProtocolError(
            {400, "Bad Request", "the length or the encoding of the body cannot be read", nullptr},
            *open);
    }
    return kj::READY_NOW;
  }

  View& view_;
  Backend& backend_;
  ServerOptions options_;
  kj::Own<kj::HttpHeaderTable> table_;
  kj::HttpHeaderId accept_id_, origin_id_, user_agent_id_, if_none_match_id_, fetch_site_id_,
      fetch_mode_id_, fetch_dest_id_, authorization_id_, protocol_id_;
  AccessGate gate_;
  Quotas quotas_;
  Pool bodies_;
  Directory directory_;
  Queues queues_;
  Logins logins_;
  Discovery discovery_;
  Renderer renderer_;
  StreamContext context_;
  Routes routes_;
  NamespaceSweep sweep_;
  OwnerSweep owner_sweep_;
  SchedulingEvents scheduling_events_;
  NodeEvents node_events_;
  ReachEvents reach_events_;
  CronController crons_;
  Notifier notifier_;
  LoginRoutes login_;
  MungeRoutes munge_;
  Authentication authentication_;
  bool ready_ = false;
  std::string reason_ = "starting";
  Closing answer_closing_;
  kj::HttpServer http_;
  PeerLookup peers_;
  Crowd crowd_, remote_crowd_;
  Acceptor acceptor_, metrics_acceptor_, tls_acceptor_;
  Server::Encrypt encrypt_;
  Seldom strangers_, turned_away_, unknown_;
  uint64_t last_id_ = 0, entering_ = 0;
  Peer entering_peer_;
  std::map<uint64_t, kj::Own<kj::PromiseFulfiller<void>>> closing_;
  std::map<uint64_t, kj::TimePoint> silent_;  // connections without a request yet, since when
  kj::TaskSet tasks_;
};

Server::Server(kj::Timer& timer, View& view, Backend& backend, ServerOptions options)
    : impl_(kj::heap<Impl>(timer, view, backend, std::move(options))) {}
Server::~Server() noexcept(false) = default;

void Server::reload(RoleGroups roles, QuotaLimits quotas) {
  impl_->reload(std::move(roles), quotas);
}

void Server::set_ready(bool ready, std::string reason) {
  impl_->set_ready(ready, std::move(reason));
}

kj::Promise<void> Server::serve(kj::Own<kj::ConnectionReceiver> port) {
  auto promise = impl_->accept(*port);
  return promise.attach(kj::mv(port));
}

kj::Promise<void> Server::serve_metrics(kj::Own<kj::ConnectionReceiver> port) {
  auto promise = impl_->accept_metrics(*port);
  return promise.attach(kj::mv(port));
}

kj::Promise<void> Server::serve_tls(kj::Own<kj::ConnectionReceiver> port, Encrypt encrypt) {
  auto promise = impl_->accept_tls(*port, std::move(encrypt));
  return promise.attach(kj::mv(port));
}

kj::Promise<void> Server::serve_connection(kj::Own<kj::AsyncIoStream> stream,
                                           std::optional<uid_t> uid) {
  return impl_->connection(kj::mv(stream), "trusted", uid ? uid : geteuid());
}

kj::Promise<void> Server::serve_passed(kj::Own<kj::AsyncIoStream> stream, PassedPeer from) {
  return impl_->passed(kj::mv(stream), std::move(from));
}

kj::Promise<void> Server::first_requests(kj::Duration patience) {
  return impl_->first_requests(patience);
}

kj::Promise<void> Server::drain() {
  return impl_->drain();
}

StreamContext& Server::streams() {
  return impl_->streams();
}

}  // namespace muster::api
