// Exchange: one HTTP request and its response.
//
// Every failure is reported as an object of kind Status. After the head of a response is sent
// (`started`), a failure cuts the connection instead, so that a truncated response never passes for
// a complete one.
#pragma once

#include "api/access/attributes.hpp"
#include "api/access/caller.hpp"
#include "api/http/framing.hpp"
#include "api/http/paced_stream.hpp"
#include "api/http/url.hpp"
#include "api/request/accept.hpp"
#include "api/view/query/object_json.hpp"
#include "api/view/render/render.hpp"
#include "base/peer/pool.hpp"
#include "base/result.hpp"

#include <kj/async-io.h>
#include <kj/compat/http.h>
#include <kj/timer.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>

namespace muster::api {

constexpr const char* kJsonType = "application/json";
constexpr size_t kBodyMax = 3u << 20;   // bytes
enum class BodyType { object, bytes };  // JSON or YAML; application/octet-stream

// A connection's properties apart from its streams.
struct Peer {
  int fd = -1;                 // only for inspection; -1: none
  std::string local_host;      // our own address on the connection, without port
  std::optional<uid_t> uid{};  // of the process at the other end, where users have roles
  bool remote = false;         // over TLS: a token identifies the caller of each request
  bool collector = false;      // on the metrics port: open to anybody, for metrics and health only
  bool elsewhere() const { return remote || collector; }
  std::string source;  // the other end: "unix", or an address without port
  std::shared_ptr<Pace> pace = std::make_shared<Pace>();  // of its input
};

class Exchange {
 public:
  Exchange(const kj::HttpHeaderTable& table, kj::HttpMethod method, Url url,
           kj::AsyncInputStream& body, kj::HttpService::Response& response, Peer peer)
      : method(method),
        url(std::move(url)),
        wants(Attributes::of(kj::str(method).cStr(), this->url)),
        peer(std::move(peer)),
        table_(table),
        body_(body),
        response_(response) {}

  const kj::HttpMethod method;
  const Url url;
  const Attributes wants;
  const Peer peer;
  uint64_t connection = 0;  // its number
  Caller caller;            // set before anything is answered
  std::string unknown_why;  // why the caller is unknown, for the log; empty: it sent no token
  bool expired = false;     // its token is no longer valid, so a watch must end
  std::string content_type, accept, user_agent, if_none_match, authorization;  // as sent
  std::string upgrade, protocols;     // as sent: Upgrade and Sec-WebSocket-Protocol
  bool websocket = false;             // it may be upgraded to a WebSocket (RFC 6455, section 4.2.1)
  std::function<void()> on_upgrade;   // when it is
  Accepted accepted{};                // how objects are sent
  std::string made;                   // the name that a POST to a collection gives its object
  std::vector<std::string> warnings;  // sent in the response's head
  std::vector<std::pair<const char*, std::string>> headers;  // more headers of the response

  // Whose limits this request counts for.
  std::string who() const {
    return caller.distinguished ? "uid " + std::to_string(caller.who.uid) : peer.source;
  }
  Form form() const;
  bool of_events_group() const;  // whether its path is in events.k8s.io
  bool started() const { return code_ != 0; }
  int code() const { return code_; }  // of the response; 0: none yet
  // The body violated HTTP. The error has been sent, and the connection must be closed.
  bool unreadable() const { return unreadable_; }
  // The client has closed its end. KJ does not notice this while a response is idle.
  bool client_gone() const;

  // From now on, the connection ends with the response if `closes`.
  void connection_of(Closing& closing, bool closes) {
    closing_ = &closing;
    closes_ = closes;
  }
  bool closes() const { return closes_; }

  // Limits the wait for the next piece of the body, and for all of it; the default is no limit.
  void impatient(kj::Timer& timer, kj::Duration patience, kj::Duration body_time) {
    timer_ = &timer;
    body_patience_ = patience;
    body_time_ = body_time;
  }
  // Takes the memory for the body from this pool, which must outlive the exchange; the default is
  // no limit.
  void take_from(Pool& bodies) { bodies_ = &bodies; }
  // The body, at most `most` bytes; nothing if an error has already been sent. Its memory counts
  // until the exchange is over, since what is made of it lives as long.
  kj::Promise<kj::Maybe<std::string>> read_body(size_t most = kBodyMax,
                                                BodyType wanted = BodyType::object);

  // Sends the text of a JSON object, or of another content type. An object is encoded as `accepted`
  // says, if it can be.
  kj::Promise<void> send(int code, std::string text, const char* content_type = kJsonType);
  kj::Promise<void> send_status(int code, std::string_view reason, std::string_view message,
                                OrderedJson details = nullptr);
  kj::Promise<void> bad(std::string_view message) {
    return send_status(400, "BadRequest", message);
  }
  // For options of the request: one that cannot be read is a 400, one with a wrong value a 422.
  kj::Promise<void> bad_options(const Error& error);
  // Sends the status that matches the error; `name` and `resource` go into its details.
  kj::Promise<void> send_error(const Error& error, const std::string& resource,
                               const std::string& name);
  // Sends a body as it is.
  kj::Promise<void> send_bytes(int code, std::string bytes, const char* content_type);
  // Makes the connection a WebSocket with this subprotocol. It must be gone before the response is
  // over. When it ends in good order, say so with `finished()`.
  kj::Own<kj::WebSocket> accept_websocket(std::string_view protocol);
  void finished() { code_ = 200; }
  // Sends the head of a response of unknown length; the caller writes the body.
  kj::Own<kj::AsyncOutputStream> open(const char* content_type);

 private:
  void add_warnings(kj::HttpHeaders& headers) const;
  enum class Body { whole, too_long, too_slow, too_many, unreadable };
  bool make_room(std::string& text, size_t more, size_t most);
  kj::Promise<Body> read_more(std::shared_ptr<std::string> text, size_t most);

  const kj::HttpHeaderTable& table_;
  kj::AsyncInputStream& body_;
  kj::HttpService::Response& response_;
  kj::Timer* timer_ = nullptr;
  Closing* closing_ = nullptr;
  bool closes_ = false;
  kj::Duration body_patience_ = 0 * kj::SECONDS, body_time_ = 0 * kj::SECONDS;
  kj::TimePoint body_ends_ = kj::origin<kj::TimePoint>();
  Pool* bodies_ = nullptr;
  std::optional<Pool::Share> body_share_;
  int code_ = 0;
  bool unreadable_ = false;
};

// Keeps `text` alive until it is written.
kj::Promise<void> write_text(kj::AsyncOutputStream& out, std::string text);

}  // namespace muster::api
