#include "api/request/exchange.hpp"

#include "api/kube/objects/status_object.hpp"
#include "api/kube/schema/protobuf.hpp"
#include "api/request/body.hpp"
#include "api/request/write_options.hpp"
#include "base/clock.hpp"
#include "base/text/http_date.hpp"

#include <kj/debug.h>

#include <algorithm>
#include <cstdint>
#include <poll.h>

namespace muster::api {
namespace {

kj::StringPtr status_text(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 504:
      return "Gateway Timeout";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

constexpr size_t kPiece = 64 * 1024;  // bytes of a body that are read at a time

std::string too_many_bodies(const Pool& bodies) {
  return "the bodies of unfinished requests use too much memory: at most " +
         std::to_string(bodies.each_max() >> 10) + " KiB are for one user and " +
         std::to_string(bodies.all_max() >> 10) + " KiB for all together; try again later";
}

constexpr const char* kModified =
    "the object has been modified; please apply your changes to the latest version and try again";

OrderedJson conflict_details(const Error& error) {
  OrderedJson causes = OrderedJson::array();
  for (const Violation& one : error.violations)
    causes.push_back(
        {{"reason", "FieldManagerConflict"}, {"message", one.detail}, {"field", one.path}});
  return {{"causes", std::move(causes)}};
}

// As a quoted string in a header, which must not contain line breaks.
std::string quoted_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

}  // namespace

kj::Promise<void> write_text(kj::AsyncOutputStream& out, std::string text) {
  auto kept = kj::heap<std::string>(std::move(text));
  auto promise = out.write(kept->data(), kept->size());
  return promise.attach(kj::mv(kept));
}

bool Exchange::of_events_group() const {
  return url.path.size() > 1 && url.path[1] == "events.k8s.io";
}

Form Exchange::form() const {
  if (accepted.form == Form::table && url.get("includeObject") == "None") return Form::cells;
  if (accepted.form != Form::plain) return accepted.form;
  return of_events_group() ? Form::events_v1 : Form::plain;
}

bool Exchange::client_gone() const {
  if (peer.fd < 0) return false;
  // Polls instead of reading: over TLS, the last bytes of a client that has left are never read.
  pollfd end = {peer.fd, POLLRDHUP, 0};
  return poll(&end, 1, 0) == 1 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

kj::Promise<kj::Maybe<std::string>> Exchange::read_body(size_t most, BodyType wanted) {
  auto text = std::make_shared<std::string>();
  const std::string too_long =
      "the body is longer than " +
      (most >= 1 << 20 ? std::to_string(most >> 20) + " MiB" : std::to_string(most >> 10) + " KiB");
  KJ_IF_MAYBE (length, body_.tryGetLength()) {
    if (*length > most)
      return send_status(413, "RequestEntityTooLarge", too_long)
          .then([]() -> kj::Maybe<std::string> { return nullptr; });
  }
  if (timer_) body_ends_ = timer_->now() + body_time_;
  if (bodies_) body_share_.emplace(*bodies_, who());
  return read_more(text, most)
      .then([this, text, too_long, wanted](Body body) -> kj::Promise<kj::Maybe<std::string>> {
        if (body == Body::unreadable) {
          // The rest of the body would be read as the next request on this connection.
          unreadable_ = true;
          return send_status(400, "BadRequest", "the size of a chunk of the body is not a number")
              .then([]() -> kj::Maybe<std::string> {
                kj::throwFatalException(KJ_EXCEPTION(FAILED, "unreadable body"));
              });
        }
        if (body == Body::too_many) {
          // Before the answer is sent, so that other bodies that need room now are not refused too.
          *text = std::string();
          body_share_.reset();
          return send_status(429, "TooManyRequests", too_many_bodies(*bodies_),
                             {{"retryAfterSeconds", 1}})
              .then([]() -> kj::Maybe<std::string> { return nullptr; });
        }
        if (body != Body::whole)
          return (body == Body::too_long
                      ? send_status(413, "RequestEntityTooLarge", too_long)
                      : send_status(408, "Timeout", "timed out reading the body"))
              .then([]() -> kj::Maybe<std::string> { return nullptr; });
        if (text->empty()) return kj::Maybe<std::string>(std::string());
        std::string type = content_type.substr(0, content_type.find(';'));
        const bool patch = method == kj::HttpMethod::PATCH;
        if (!patch && wanted == BodyType::object && type == kProtobufType)
          return kj::Maybe<std::string>(std::move(*text));
        // Old clients send the options of a DELETE without a type. A web page cannot send a DELETE
        // without a preflight request.
        if (type.empty() && method == kj::HttpMethod::DELETE)
          content_type = type = "application/json";
        if (wanted == BodyType::bytes) {
          if (type == "application/octet-stream") return kj::Maybe<std::string>(std::move(*text));
          return send_status(
                     415, "UnsupportedMediaType",
                     "the body must be application/octet-stream, not \"" + content_type + "\"")
              .then([]() -> kj::Maybe<std::string> { return nullptr; });
        }
        const bool object = type == "application/json" || type == "application/yaml" ||
                            type == "application/x-yaml" || type == "text/yaml" ||
                            type == "application/vnd.kubernetes.yaml";
        if (patch ? !patch_type(content_type) : !object)
          return send_status(415, "UnsupportedMediaType",
                             std::string(patch ? "a patch must be application/merge-patch+json, "
                                                 "application/strategic-merge-patch+json, "
                                                 "application/json-patch+json or "
                                                 "application/apply-patch+yaml"
                                               : "a body must be application/json or "
                                                 "application/yaml") +
                                 ", not \"" + content_type + "\"")
              .then([]() -> kj::Maybe<std::string> { return nullptr; });
        return kj::Maybe<std::string>(std::move(*text));
      });
}

// Makes room for `more` bytes of a body of at most `most`. The room grows with what has arrived: a
// length that is only announced costs nothing. False: there is no memory for it.
bool Exchange::make_room(std::string& text, size_t more, size_t most) {
  const size_t needed = text.size() + more;
  if (needed <= text.capacity()) return true;
  const size_t room = std::max(needed, std::min(2 * text.capacity(), most + kPiece));
  // Until the text is copied, there are two of them; the old one is gone soon.
  if (body_share_ && !body_share_->take(room - (text.empty() ? 0 : text.capacity()))) return false;
  text.reserve(room);
  return true;
}

kj::Promise<Exchange::Body> Exchange::read_more(std::shared_ptr<std::string> text, size_t most) {
  constexpr size_t kLate = SIZE_MAX;
  const size_t had = text->size();
  size_t piece = kPiece;
  KJ_IF_MAYBE (left, body_.tryGetLength()) {
    if (*left == 0) return Body::whole;
    piece = std::min<uint64_t>(*left, kPiece);
  }
  if (!make_room(*text, piece, most)) return Body::too_many;
  text->resize(had + piece);
  constexpr size_t kUnreadable = SIZE_MAX - 1;
  auto reading = kj::evalNow([&] {
                   return body_.tryRead(text->data() + had, 1, piece);
                 }).catch_([](kj::Exception&& failure) -> kj::Promise<size_t> {
    if (failure.getType() == kj::Exception::Type::FAILED) return kUnreadable;
    return kj::mv(failure);
  });
  if (timer_)
    reading = reading.exclusiveJoin(
        timer_->atTime(std::min(timer_->now() + body_patience_, body_ends_)).then([]() -> size_t {
          return kLate;
        }));
  return reading.then([this, text, had, most](size_t n) -> kj::Promise<Body> {
    if (n == kLate) return Body::too_slow;
    if (n == kUnreadable) return Body::unreadable;
    text->resize(had + n);
    if (n == 0) return Body::whole;
    if (text->size() > most) return Body::too_long;
    return read_more(text, most);
  });
}

kj::Promise<void> Exchange::send(int code, std::string text, const char* type) {
  if (std::string_view(type) != kJsonType || text.empty())
    return send_bytes(code, std::move(text), type);
  if (accepted.encoding == Encoding::yaml)
    return send_bytes(code, std::move(text), "application/yaml");
  if (accepted.encoding == Encoding::protobuf)
    if (auto framed = json_to_protobuf(Json::parse(text)))
      return send_bytes(code, std::move(*framed), kProtobufType);
  return send_bytes(code, std::move(text), type);
}

kj::Promise<void> Exchange::send_bytes(int code, std::string text, const char* type) {
  kj::HttpHeaders headers(table_);
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, type);
  headers.add("X-Content-Type-Options", "nosniff");
  headers.add("Date", kj::str(http_date(wall_now()).c_str()));
  if (code == 503 || code == 429) headers.add("Retry-After", "1");
  add_warnings(headers);
  for (const auto& [name, value] : this->headers) headers.add(name, kj::str(value.c_str()));
  code_ = code;
  if (closing_ != nullptr) closing_->next(closes_);
  auto out = response_.send(static_cast<unsigned>(code), status_text(code), headers, text.size());
  if (text.empty()) return kj::READY_NOW;
  auto promise = write_text(*out, std::move(text));
  return promise.attach(kj::mv(out));
}

kj::Promise<void> Exchange::send_status(int code, std::string_view reason, std::string_view message,
                                        OrderedJson details) {
  return send(code, dumped(status_json(code, reason, message, std::move(details))) + "\n");
}

kj::Promise<void> Exchange::bad_options(const Error& error) {
  const char* options = method == kj::HttpMethod::GET      ? "ListOptions"
                        : method == kj::HttpMethod::POST   ? "CreateOptions"
                        : method == kj::HttpMethod::PUT    ? "UpdateOptions"
                        : method == kj::HttpMethod::DELETE ? "DeleteOptions"
                                                           : "PatchOptions";
  return send_error(error, options, "");
}

kj::Promise<void> Exchange::send_error(const Error& error, const std::string& resource,
                                       const std::string& name) {
  const std::string group(group_of(resource));
  const std::string what = resource + (group.empty() ? "" : "." + group) + " \"" + name + "\"";
  OrderedJson details = {{"name", name}, {"kind", resource}};
  if (!group.empty()) details["group"] = group;
  switch (error.code) {
    case Errc::invalid:
      if (!error.violations.empty())
        return send(422, invalid_status(resource, name, error)
                                 .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
                             "\n");
      return send_status(400, "BadRequest", error.message);
    case Errc::not_found:
      return send_status(404, "NotFound", what + " not found", std::move(details));
    case Errc::exists:
      return send_status(
          409, "AlreadyExists",
          (error.message.empty() ? "" : error.message + ": ") + what + " already exists",
          std::move(details));
    case Errc::conflict:
      if (!error.violations.empty())  // of an apply: one per field
        return send_status(409, "Conflict", error.message, conflict_details(error));
      return send_status(409, "Conflict",
                         "Operation cannot be fulfilled on " + what + ": " +
                             (error.message.empty() ? kModified : error.message),
                         std::move(details));
    case Errc::unavailable:
      details["retryAfterSeconds"] = 1;
      return send_status(503, "ServiceUnavailable", error.message, std::move(details));
    case Errc::overloaded:
      details["retryAfterSeconds"] = 1;
      return send_status(429, "TooManyRequests", error.message, std::move(details));
    case Errc::foreign:
      break;  // only clients meet it
  }
  return send_status(500, "InternalError", error.message);
}

kj::Own<kj::WebSocket> Exchange::accept_websocket(std::string_view protocol) {
  kj::HttpHeaders headers(table_);
  headers.add("Sec-WebSocket-Protocol", kj::heapString(protocol.data(), protocol.size()));
  for (const auto& [name, value] : this->headers) headers.add(name, kj::str(value.c_str()));
  code_ = 101;
  if (on_upgrade) on_upgrade();
  return response_.acceptWebSocket(headers);
}

void Exchange::add_warnings(kj::HttpHeaders& headers) const {
  for (const std::string& warning : warnings) {
    const std::string value = "299 - " + quoted_string(warning);
    headers.add("Warning", kj::str(value.c_str()));
  }
}

kj::Own<kj::AsyncOutputStream> Exchange::open(const char* type) {
  kj::HttpHeaders headers(table_);
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, type);
  headers.add("X-Content-Type-Options", "nosniff");
  headers.add("Date", kj::str(http_date(wall_now()).c_str()));
  add_warnings(headers);
  for (const auto& [name, value] : this->headers) headers.add(name, kj::str(value.c_str()));
  code_ = 200;
  if (closing_ != nullptr) closing_->next(closes_);
  return response_.send(200, "OK", headers);
}

}  // namespace muster::api
