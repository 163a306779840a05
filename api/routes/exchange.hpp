// Exchange: one HTTP request and its answer.
//
// Whatever goes wrong is answered as an object of kind Status. Once the head of an answer is out it
// cannot be taken back: `started` says so, and a failure then cuts the connection, so that half an
// answer is never taken for a whole one.
#pragma once

#include "api/http/url.hpp"
#include "api/view/object_json.hpp"
#include "api/view/render.hpp"
#include "base/result.hpp"

#include <kj/async-io.h>
#include <kj/compat/http.h>
#include <kj/timer.h>

#include <memory>
#include <string>

namespace muster::api {

constexpr size_t kBodyMax = 3u << 20;  // bytes

// What a connection is, beside its streams.
struct Peer {
  int fd = -1;             // for looking only; -1: none
  std::string local_host;  // our own address on this connection, without the port
};

class Exchange {
 public:
  Exchange(const kj::HttpHeaderTable& table, kj::HttpMethod method, Url url,
           kj::AsyncInputStream& body, kj::HttpService::Response& response, Peer peer)
      : method(method),
        url(std::move(url)),
        peer(std::move(peer)),
        table_(table),
        body_(body),
        response_(response) {}

  const kj::HttpMethod method;
  const Url url;
  const Peer peer;
  std::string content_type, accept, user_agent, if_none_match;  // as sent
  std::vector<std::string> warnings;                            // go into the answer's head
  std::vector<std::pair<const char*, std::string>> headers;     // and so do these

  Form form() const;
  bool of_events_group() const;  // of events.k8s.io
  bool started() const { return started_; }
  // The body broke the rules of HTTP; that has been answered, and the connection must end.
  bool unreadable() const { return unreadable_; }
  // The client has closed its end. KJ does not notice that on an answer that is idle.
  bool client_gone() const;

  // How long to wait for the next piece of the body; without it, for ever.
  void impatient(kj::Timer& timer, kj::Duration patience) {
    timer_ = &timer;
    body_patience_ = patience;
  }
  // The body as text; an Error that has been answered already is nothing.
  kj::Promise<kj::Maybe<std::string>> read_body();

  kj::Promise<void> send(int code, std::string text, const char* content_type = "application/json");
  kj::Promise<void> send_status(int code, std::string_view reason, std::string_view message,
                                OrderedJson details = nullptr);
  kj::Promise<void> bad(std::string_view message) {
    return send_status(400, "BadRequest", message);
  }
  // As the error's kind says; `name` and `resource` go into the details.
  kj::Promise<void> send_error(const Error& error, const std::string& resource,
                               const std::string& name);
  // The head of an answer whose length is not known; the body is written by the caller.
  kj::Own<kj::AsyncOutputStream> open(const char* content_type);

 private:
  void add_warnings(kj::HttpHeaders& headers) const;
  enum class Body { whole, too_long, too_slow, unreadable };
  kj::Promise<Body> read_more(std::shared_ptr<std::string> text);

  const kj::HttpHeaderTable& table_;
  kj::AsyncInputStream& body_;
  kj::HttpService::Response& response_;
  kj::Timer* timer_ = nullptr;
  kj::Duration body_patience_ = 0 * kj::SECONDS;
  bool started_ = false, unreadable_ = false;
};

// `text` stays alive until it is written.
kj::Promise<void> write_text(kj::AsyncOutputStream& out, std::string text);

}  // namespace muster::api
