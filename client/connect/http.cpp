#include "client/connect/http.hpp"

#include "base/network/not_leader.hpp"
#include "base/printable.hpp"
#include "base/text/http_date.hpp"
#include "base/version.hpp"
#include "client/connect/expected.hpp"
#include "client/connect/munge_login.hpp"
#include "client/terminal/text.hpp"
#include "trust/tls/checked.hpp"
#include "trust/tls/limited.hpp"
#include "trust/tls/link.hpp"

#include <kj/async-io.h>
#include <kj/compat/http.h>
#include <kj/debug.h>

#include <iostream>
#include <strings.h>
#include <unistd.h>
#include <utility>

namespace muster::cli {
namespace {

constexpr size_t kPiece = 64 * 1024;    // bytes read at a time
constexpr size_t kEventMax = 64 << 20;  // bytes of a line of a watch
constexpr size_t kPathShown = 100;      // bytes of a path in an error
constexpr Millis kGlance = 500;         // to read what a foreign server says
constexpr Millis kNextTry = 50;         // between two attempts while the coordinator starts
constexpr Millis kSilence = 1'000;      // before telling the user about the wait
constexpr char kRefused[] = "connection refused";
constexpr char kGone[] = "Connection timed out";

// "connect(fd, addr, addrlen): Connection refused" -> "connection refused"; only the first line
// counts.
std::string reason_of(const kj::Exception& e) {
  if (auto meant = tls::explained(e)) return std::move(*meant);
  std::string text = e.getDescription().cStr();
  text = text.substr(0, text.find('\n'));
  for (const char* known : {"Connection refused", "Connection reset", "No route to host",
                            "Network is unreachable", "Broken pipe", "timed out"}) {
    if (text.find(known) == std::string::npos) continue;
    std::string reason = known;
    reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
    return reason;
  }
  if (e.getType() == kj::Exception::Type::DISCONNECTED) return "the connection broke";
  return text;
}

// Reads a body as JSON or text. Returns what was met if it cannot be an answer, which is known
// before it ends; throws if it does not end within the limit.
std::optional<std::string> read_body(kj::AsyncInputStream& in, const Expected& expected, bool json,
                                     kj::Timer& timer, Millis limit_ms, kj::WaitScope& wait,
                                     std::string& body) {
  const Millis end = boot_now() + limit_ms;
  auto buffer = kj::heapArray<char>(kPiece);
  for (;;) {
    const Millis left = end - boot_now();
    if (left <= 0) kj::throwFatalException(KJ_EXCEPTION(OVERLOADED, "the answer does not end"));
    const size_t n =
        timer.timeoutAfter(left * kj::MILLISECONDS, in.tryRead(buffer.begin(), 1, buffer.size()))
            .wait(wait);
    if (n == 0) return std::nullopt;
    body.append(buffer.begin(), n);
    const size_t first = body.find_first_not_of(" \t\r\n");
    if (json && first != std::string::npos && body[first] != '{')
      return "what is not an object: " + shown_bytes(body);
    if (body.size() > expected.size_max())
      return "more than " + std::to_string(expected.size_max() >> 20) +
             " MiB: " + shown_bytes(body);
  }
}

// Whether the connection could not be made: nobody listens, or the socket is being replaced, or who
// listened left before it was known who that was (trust/tls/checked.hpp).
bool nothing_was_sent(const kj::Exception& e, const std::string& reason) {
  return reason == kRefused || e.getDescription() == "connection reset" ||
         reason.find("No such file or directory") != std::string::npos;
}

// `299 - "TEXT"` (RFC 7234, 5.5) -> TEXT
std::string text_of_warning(std::string_view value) {
  const size_t first = value.find('"'), last = value.rfind('"');
  if (first == last) return std::string(value);
  std::string text;
  for (size_t i = first + 1; i < last; ++i) {
    if (value[i] == '\\') ++i;
    text += value[i];
  }
  return text;
}

// What a coordinator says that does not lead its cluster; absent: it is another answer.
std::optional<std::string> not_leading(const Response& answer) {
  if (answer.status != 503) return std::nullopt;
  const Json status = read_json(answer.body);
  if (text_at(status, {"reason"}) != kNotLeader) return std::nullopt;
  const std::string said = on_one_line(cut(text_at(status, {"message"}), kPathShown));
  return said.empty() ? "it does not lead its cluster" : said;
}

// Whether no response arrived.
bool lost(const Result<Response>& answer) {
  return !answer && answer.error().code == Errc::unavailable;
}

}  // namespace

struct ApiClient::Loop {
  explicit Loop(const std::string& coordinator_user) : servers(coordinator_user) {}
  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::HttpHeaderTable::Builder builder;
  kj::HttpHeaderId accept = builder.add("Accept");
  kj::HttpHeaderId user_agent = builder.add("User-Agent");
  kj::HttpHeaderId authorization = builder.add("Authorization");
  UserToken token;                      // over https
  bool by_munge = false;                // likewise
  kj::Own<kj::TlsContext> tls;          // likewise
  TrustedServers servers;               // over http, on this machine
  bool unconnected = false;             // of several addresses: the last attempt could not connect
  kj::Own<kj::NetworkAddress> address;  // null: not resolved yet
  kj::Own<kj::HttpHeaderTable> table = builder.build();
  kj::Own<kj::HttpClient> kept;  // reused by GETs; null: none yet
};

ApiClient::ApiClient(const std::string& addresses, std::string origin, LogIn log_in)
    : addresses_(split_addresses(addresses)),
      origin_(std::move(origin)),
      log_in_(std::move(log_in)),
      loop_(std::make_unique<Loop>(log_in_.coordinator_user)) {}

ApiClient::~ApiClient() = default;

void ApiClient::set_timeout(Millis timeout_ms) {
  timeout_ms_ = timeout_ms;
}

// Before the first request over https.
Status ApiClient::prepare() {
  if (!encrypted()) return Nothing{};
  Loop& loop = *loop_;
  if (loop.tls.get() == nullptr) {
    loop.by_munge = logs_in_by_munge(log_in_);
    if (loop.by_munge) {
      auto authority = read_authority(log_in_.ca_file);
      if (!authority.ok()) return authority.error();
      loop.token.authority = std::move(*authority);
    } else {
      auto token = read_token(log_in_);
      if (!token.ok()) return token.error();
      loop.token = std::move(*token);
    }
    const auto failed = kj::runCatchingExceptions(
        [&] { loop.tls = tls::client_context(std::nullopt, loop.token.authority); });
    KJ_IF_MAYBE (e, failed) {
      return invalid((loop.by_munge ? log_in_.ca_file : log_in_.token_file) +
                     ": the certificate in it cannot be read: " + reason_of(*e));
    }
  }
  if (loop.token.bearer.empty()) return log_in_by_munge("");
  return Nothing{};
}

Status ApiClient::log_in_by_munge(std::string refused) {
  loop_->token.bearer.clear();  // login requests carry no token
  const MungeLogin login(address(), loop_->token.authority, log_in_);
  auto token = login.token(
      [this](const char* path, const std::string* body) {
        const auto method = body != nullptr ? kj::HttpMethod::POST : kj::HttpMethod::GET;
        return attempt({.method = static_cast<int>(method), .path = path, .body = body}, true);
      },
      refused);
  if (!token.ok()) return token.error();
  loop_->token = std::move(*token);
  return Nothing{};
}

// A command may wait for longer than a token lasts, and find another in the file.
bool ApiClient::take_new_token() {
  if (!encrypted()) return false;
  auto token = read_token(log_in_);
  if (!token.ok() || token->bearer == loop_->token.bearer ||
      token->authority != loop_->token.authority)
    return false;
  loop_->token = std::move(*token);
  return true;
}

Result<UserToken> ApiClient::token() {
  if (Status s = prepare(); !s) return s.error();
  return loop_->token;
}

Result<Response> ApiClient::once(const Question& question, bool fresh) {
  refused_ = silent_ = false;
  away_.reset();
  if (Status s = prepare(); !s) return s.error();
  auto answer = attempt(question, fresh);
  if (!answer || answer->status != 401) return answer;
  // The token has expired, was revoked or belongs to another coordinator; nothing was done.
  const bool by_munge = encrypted() && loop_->by_munge;
  if (!by_munge && !take_new_token()) return answer;
  if (by_munge)
    if (Status s = log_in_by_munge(loop_->token.bearer); !s) return s.error();
  return attempt(question, true);
}

Error ApiClient::unreachable(std::string why) const {
  std::string message = "cannot reach the coordinator at " + address() + ": " + why;
  if (!origin_.empty()) {
    message += " (" + origin_ +
               ")\n  running jobs are not affected\n  check that the coordinator is running and "
               "that this is its --api address; endpoints.json in its data-dir has it";
  }
  return Error{Errc::unavailable, std::move(message), {}};
}

Error ApiClient::all_unreachable() const {
  std::string message = "cannot reach a coordinator: " + addresses_.failures();
  if (!origin_.empty()) {
    message += " (" + origin_ +
               ")\n  running jobs are not affected\n  check that a coordinator is running and that "
               "these are --api addresses; endpoints.json in its data-dir has its own";
  }
  return Error{Errc::unavailable, std::move(message), {}};
}

Error ApiClient::foreign(std::string_view method, const std::string& path, const std::string& met) {
  const std::string asked = on_one_line(cut(path.substr(0, path.find('?')), kPathShown));
  foreign_ = {Errc::foreign,
              address() + " answered " + std::string(method) + " " + asked + " with " + met +
                  ", which is not what a muster coordinator sends" +
                  (origin_.empty() ? "" : " (" + origin_ + ")"),
              {}};
  return *foreign_;
}

// An address may come to belong to another coordinator, also between two requests.
std::optional<std::string> ApiClient::misfit_of_cluster(const std::string& path,
                                                        const std::string& named) {
  if (!path.starts_with("/api")) return std::nullopt;  // health, before the state has been read
  if (cluster_.empty()) cluster_ = cut(named, kPathShown);
  if (named == cluster_) return std::nullopt;
  return (named.empty() ? "no cluster's id"
                        : "the id of cluster " + on_one_line(cut(named, kPathShown))) +
         " after answers of cluster " + on_one_line(cluster_);
}

// What an attempt has met.
struct ApiClient::Hearing {
  Response answer;
  Expected expected;
  std::string cluster;
  bool began = false;
  std::optional<std::string> met{};  // instead of what is expected
};

void ApiClient::open_connection(bool fresh) {
  Loop& loop = *loop_;
  kj::Timer& timer = loop.io.provider->getTimer();
  if (loop.address.get() == nullptr) {
    const std::string plain = encrypted() ? address().substr(kHttps.size()) : address();
    const Millis limit_ms = connect_limit();
    loop.address =
        timer
            .timeoutAfter(limit_ms * kj::MILLISECONDS,
                          loop.io.provider->getNetwork().parseAddress(plain.c_str(), 7117))
            .wait(loop.io.waitScope);
    loop.address = encrypted() ? tls::encrypted(kj::mv(loop.address), *loop.tls)
                               : tls::checked(kj::mv(loop.address), loop.servers, address());
    if (addresses_.several())
      loop.address = tls::limited(kj::mv(loop.address), timer, limit_ms, &loop.unconnected);
  }
  if (fresh || loop.kept.get() == nullptr)
    loop.kept = kj::newHttpClient(timer, *loop.table, *loop.address);
}

void ApiClient::hear(const Question& question, Hearing& hearing) {
  Loop& loop = *loop_;
  kj::HttpHeaders headers(*loop.table);
  headers.set(kj::HttpHeaderId::HOST, address().starts_with("unix:") ? "localhost"
                                      : encrypted()
                                          ? kj::StringPtr(address().c_str() + kHttps.size())
                                          : kj::StringPtr(address().c_str()));
  if (encrypted() && !loop.token.bearer.empty())
    headers.set(loop.authorization, kj::str("Bearer ", loop.token.bearer));
  headers.set(loop.accept, kj::StringPtr(question.accept));
  headers.set(loop.user_agent, kj::str("muster/", kVersion));
  kj::Maybe<uint64_t> size;
  if (question.body != nullptr) {
    headers.set(kj::HttpHeaderId::CONTENT_TYPE, kj::StringPtr(question.body_type));
    size = uint64_t{question.body->size()};
  }
  auto request = loop.kept->request(static_cast<kj::HttpMethod>(question.method),
                                    question.path.c_str(), headers, size);
  kj::Promise<void> written = kj::READY_NOW;
  if (question.body != nullptr)
    written = request.body->write(question.body->data(), question.body->size());
  written = written.attach(kj::mv(request.body)).eagerlyEvaluate(nullptr);
  auto response = loop.io.provider->getTimer()
                      .timeoutAfter(timeout_ms_ * kj::MILLISECONDS, kj::mv(request.response))
                      .wait(loop.io.waitScope);
  Response& answer = hearing.answer;
  answer.status = static_cast<int>(response.statusCode);
  response.headers->forEach([&](kj::StringPtr name, kj::StringPtr value) {
    if (strcasecmp(name.cStr(), "Warning") == 0)
      answer.warnings.push_back(text_of_warning(value.cStr()));
    if (strcasecmp(name.cStr(), "Muster-Cluster") == 0) hearing.cluster = value.cStr();
    if (strcasecmp(name.cStr(), "Date") == 0) answer.date_ms = parse_http_date(value.cStr());
  });
  hearing.began = true;
  KJ_IF_MAYBE (type, response.headers->get(kj::HttpHeaderId::CONTENT_TYPE))
    answer.content_type = type->cStr();
  if (answer.status < 500) hearing.met = misfit_of_cluster(question.path, hearing.cluster);
  if (!hearing.met) hear_body(question, *response.body, hearing);
}

void ApiClient::hear_body(const Question& question, kj::AsyncInputStream& body, Hearing& hearing) {
  kj::Timer& timer = loop_->io.provider->getTimer();
  kj::WaitScope& wait = loop_->io.waitScope;
  Response& answer = hearing.answer;
  Expected& expected = hearing.expected;
  const bool refusal = answer.status >= 400;
  if (!refusal && (hearing.met = expected.misfit_of_head(answer.status, answer.content_type, ""))) {
    char beginning[256];
    const size_t n = timer
                         .timeoutAfter(std::min(timeout_ms_, kGlance) * kj::MILLISECONDS,
                                       body.tryRead(beginning, 1, sizeof beginning))
                         .catch_([](kj::Exception&&) { return size_t{0}; })
                         .wait(wait);
    hearing.met = expected.misfit_of_head(answer.status, answer.content_type, {beginning, n});
  } else if (question.sink != nullptr && !refusal) {
    auto buffer = kj::heapArray<char>(kPiece);
    for (;;) {
      auto piece = body.tryRead(buffer.begin(), 1, buffer.size());
      if (!expected.endless())
        piece = timer.timeoutAfter(timeout_ms_ * kj::MILLISECONDS, kj::mv(piece));
      const size_t n = piece.wait(wait);
      if (n == 0 || !(*question.sink)({buffer.begin(), n})) break;
    }
  } else {
    const bool json = !refusal && !expected.is_text();
    hearing.met = read_body(body, expected, json, timer, timeout_ms_, wait, answer.body);
    if (!hearing.met) hearing.met = expected.misfit(answer);
  }
}

Millis ApiClient::connect_limit() const {
  return addresses_.several() ? std::min(timeout_ms_, tls::kConnectMaxMs) : timeout_ms_;
}

// `may_repeat`: the request changes nothing. `began`: its answer did.
Error ApiClient::failed(const kj::Exception& e, bool may_repeat, bool began) {
  const bool unconnected = loop_->unconnected || loop_->address.get() == nullptr;
  // timeoutAfter() throws this type, and the kernel about a machine that is gone.
  const bool late = e.getType() == kj::Exception::Type::OVERLOADED;
  const bool gone =
      late && std::string_view(e.getDescription().cStr()).find(kGone) != std::string_view::npos;
  const bool harmless = may_repeat && !began;
  std::string reason = reason_of(e);
  if (late && !gone) {
    const Millis limit_ms = unconnected ? connect_limit() : timeout_ms_;
    reason = (began ? "its answer did not go on within " : "no answer within ") +
             std::to_string(limit_ms / 1000) + " s";
  } else {
    refused_ = (harmless && (gone || e.getType() == kj::Exception::Type::DISCONNECTED)) ||
               nothing_was_sent(e, reason);
  }
  silent_ = late;
  if (unconnected || refused_ || (late && harmless)) away_ = reason;
  return unreachable(reason);
}

Result<Response> ApiClient::attempt(const Question& question, bool fresh) {
  if (foreign_) return *foreign_;
  const auto method = static_cast<kj::HttpMethod>(question.method);
  const std::string method_name = kj::str(method).cStr();
  Hearing hearing{{},
                  Expected(method_name, question.path, question.accept,
                           method == kj::HttpMethod::POST ? question.body : nullptr),
                  {}};
  away_.reset();
  loop_->unconnected = false;
  const auto thrown = kj::runCatchingExceptions([&] {
    open_connection(fresh);
    hear(question, hearing);
  });
  KJ_IF_MAYBE (exception, thrown) {
    loop_->kept = nullptr;
    return failed(*exception, method == kj::HttpMethod::GET, hearing.began);
  }
  refused_ = false;
  if (addresses_.several()) away_ = not_leading(hearing.answer);
  // A connection whose body was abandoned early cannot be reused.
  if (question.sink != nullptr || hearing.met) loop_->kept = nullptr;
  if (hearing.met) return foreign(method_name, question.path, *hearing.met);
  return std::move(hearing.answer);
}

bool ApiClient::turn_to_next() {
  const bool more = addresses_.next(*away_);
  loop_->kept = nullptr;
  loop_->address = nullptr;
  return more;
}

// Retrying is safe: a refused connection or a 503 means that nothing has been done yet, and a GET
// does nothing.
Result<Response> ApiClient::patiently(const std::function<Result<Response>()>& ask) {
  const Millis begin = boot_now();
  addresses_.begin_round();
  for (bool warned = false;;) {
    auto answer = ask();
    const bool away = addresses_.several() && away_.has_value();
    if (away && turn_to_next()) continue;
    const bool starting = away || (answer ? answer->status == 503 : refused_);
    const Millis waited = boot_now() - begin;
    if (!starting || waited >= patience_ms_) {
      patience_ms_ = 0;
      if (away) return all_unreachable();
      return answer;
    }
    if (waited >= kSilence && patience_ms_ > kSilence && !std::exchange(warned, true))
      std::cerr << "muster: waiting up to " << patience_ms_ / 1000 << "s for the coordinator at "
                << addresses_.text() << std::endl;
    usleep(kNextTry * 1000);
  }
}

Result<Response> ApiClient::ask(const Question& question) {
  return patiently([&] {
    const bool kept = question.again && loop_->kept.get() != nullptr;
    auto answer = once(question, !question.again);
    const bool elsewhere = addresses_.several() && silent_ && away_.has_value();
    if (kept && lost(answer) && !elsewhere) return once(question, true);
    return answer;
  });
}

Result<Response> ApiClient::get(const std::string& path, const char* accept) {
  return ask({.method = static_cast<int>(kj::HttpMethod::GET),
              .path = path,
              .accept = accept,
              .again = true});
}

Result<Response> ApiClient::post(const std::string& path, const std::string& body) {
  return ask({.method = static_cast<int>(kj::HttpMethod::POST), .path = path, .body = &body});
}

Result<Response> ApiClient::patch(const std::string& path, const std::string& body) {
  return ask({.method = static_cast<int>(kj::HttpMethod::PATCH),
              .path = path,
              .body = &body,
              .body_type = kMergePatch});
}

Result<Response> ApiClient::replace(const std::string& path, const std::string& body) {
  return ask({.method = static_cast<int>(kj::HttpMethod::PUT),
              .path = path,
              .body = &body,
              .again = true});
}

Result<Response> ApiClient::put(const std::string& path, const std::string& body) {
  return ask({.method = static_cast<int>(kj::HttpMethod::PUT),
              .path = path,
              .body = &body,
              .body_type = kBytes,
              .again = true});
}

Result<Response> ApiClient::remove(const std::string& path, const std::string& body) {
  return ask({.method = static_cast<int>(kj::HttpMethod::DELETE), .path = path, .body = &body});
}

Result<Response> ApiClient::stream(const std::string& path, const char* accept,
                                   const std::function<bool(std::string_view)>& sink) {
  return ask({.method = static_cast<int>(kj::HttpMethod::GET),
              .path = path,
              .accept = accept,
              .sink = &sink});
}

Result<Response> ApiClient::lines(const std::string& path, const char* accept,
                                  const std::function<bool(std::string_view)>& sink) {
  const Expected expected("GET", path, accept, nullptr);
  std::optional<std::string> met;
  const auto take = [&](std::string_view line, bool cut_off) {
    if (expected.is_watch()) met = expected.misfit_of_event(line, cut_off);
    return !met && sink(line);
  };
  std::string pending;
  bool wanted = true;
  auto response = stream(path, accept, [&](std::string_view part) {
    pending += part;
    size_t from = 0;
    for (size_t end; wanted && (end = pending.find('\n', from)) != std::string::npos;
         from = end + 1)
      wanted = take(std::string_view(pending).substr(from, end - from), false);
    pending.erase(0, from);
    if (wanted && expected.is_watch() && pending.size() > kEventMax) wanted = take(pending, false);
    return wanted;
  });
  // The last line need not end with a newline.
  if (wanted && !pending.empty() && !foreign_) take(pending, true);
  if (met) return foreign("GET", path, *met);
  return response;
}

}  // namespace muster::cli
