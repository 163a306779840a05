// ApiClient: a blocking HTTP/1.1 client for a coordinator.
//
// It uses the same API as kubectl. Over https, each request carries the user's token, from a file
// or obtained through munge, and the coordinator must present a certificate from the cluster's
// authority.
//
// A GET or PUT on a kept-alive connection is retried once, because the server may have closed it.
// Any other request that changes something uses a fresh connection and is never repeated once it
// may have taken effect.
//
// With several addresses, a request goes to the next one if a coordinator cannot be connected to or
// answers that it does not lead (base/network/not_leader.hpp), since nothing has been done then; so
// does a GET that gets no answer. Later requests begin with the one that answered.
//
// An Error means that no response arrived (`unavailable`), or that it is not what a coordinator
// sends for this request (`foreign`, expected.hpp): then a server of another kind is at this
// address, and the client asks it nothing more. Every other response, even a refusal, is a
// Response. One client per thread: it owns the thread's KJ event loop.
#pragma once

#include "base/clock.hpp"
#include "base/network/address_list.hpp"
#include "base/result.hpp"
#include "client/connect/response.hpp"
#include "client/connect/token.hpp"
#include "client/settings/log_in.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kj {
class AsyncInputStream;
class Exception;
}  // namespace kj

namespace muster::cli {

constexpr std::string_view kHttps = "https://";

inline constexpr char kJson[] = "application/json";
inline constexpr char kMergePatch[] = "application/merge-patch+json";
inline constexpr char kBytes[] = "application/octet-stream";
inline constexpr char kTable[] = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

class ApiClient {
 public:
  // `addresses`: HOST:PORT, https://HOST:PORT or unix:PATH, or several of them, separated by
  // commas. `origin`: where they were configured, for the message when nothing answers. `log_in`:
  // for https.
  explicit ApiClient(const std::string& addresses, std::string origin = "", LogIn log_in = {});
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  // How long to wait for a coordinator that is not serving yet: it refuses the connection or
  // answers 503. Applies until the first other outcome; 0: do not wait.
  void set_patience(Millis patience_ms) { patience_ms_ = patience_ms; }
  // Limits a request; for a stream, the time until it begins, and each pause unless it follows
  // something.
  void set_timeout(Millis timeout_ms);
  // The one in use: that of the latest answer, if there was any.
  const std::string& address() const { return addresses_.now(); }

  // The error for an answer that no coordinator sends, which all later requests return as well.
  // `met`: what was met instead.
  Error foreign(std::string_view method, const std::string& path, const std::string& met);
  // That error, for verbs that do without some answers; unset: there was none.
  const std::optional<Error>& met_foreign() const { return foreign_; }

  // The token that requests carry over https. With munge, a token that is not cached is requested
  // now, and again when the coordinator refuses it.
  Result<UserToken> token();

  Result<Response> get(const std::string& path, const char* accept = kJson);
  Result<Response> post(const std::string& path, const std::string& body);
  // A merge patch (RFC 7386).
  Result<Response> patch(const std::string& path, const std::string& body);
  // Uploads bytes; idempotent, so retried like a GET.
  Result<Response> put(const std::string& path, const std::string& body);
  // Replaces an object, given as JSON; retried like a GET.
  Result<Response> replace(const std::string& path, const std::string& body);
  Result<Response> remove(const std::string& path, const std::string& body);

  // Passes the body to `sink` as it arrives, until it ends or `sink` returns false. A response
  // other than 200 is returned with its body instead.
  Result<Response> stream(const std::string& path, const char* accept,
                          const std::function<bool(std::string_view)>& sink);
  // The same, line by line, without line breaks. The last line need not be terminated.
  Result<Response> lines(const std::string& path, const char* accept,
                         const std::function<bool(std::string_view)>& sink);

 private:
  struct Loop;
  struct Question {
    int method = 0;  // kj::HttpMethod
    const std::string& path;
    const char* accept = kJson;
    const std::string* body = nullptr;  // null: none
    const char* body_type = kJson;
    bool again = false;  // may be sent again, so it goes over a connection that may be closed
    const std::function<bool(std::string_view)>* sink = nullptr;  // of stream()
  };
  Result<Response> ask(const Question& question);
  // `fresh`: over a new connection.
  Result<Response> once(const Question& question, bool fresh);
  Result<Response> patiently(const std::function<Result<Response>()>& ask);
  Result<Response> attempt(const Question& question, bool fresh);
  // In the scope that catches KJ's exceptions: connects, and reads an answer.
  void open_connection(bool fresh);
  struct Hearing;
  void hear(const Question& question, Hearing& hearing);
  void hear_body(const Question& question, kj::AsyncInputStream& body, Hearing& hearing);
  Status prepare();  // over https: TLS, and a token
  // Gets a token through munge, other than the refused one.
  Status log_in_by_munge(std::string refused);
  bool take_new_token();
  Error unreachable(std::string why) const;
  Error all_unreachable() const;
  Error failed(const kj::Exception& exception, bool may_repeat, bool began);
  Millis connect_limit() const;
  bool turn_to_next();  // to the next address, unless all of this round have been tried

  std::optional<std::string> misfit_of_cluster(const std::string& path, const std::string& named);

  bool encrypted() const { return address().starts_with(kHttps); }

  AddressList addresses_;
  const std::string origin_;
  const LogIn log_in_;
  Millis timeout_ms_ = 30'000, patience_ms_ = 0;
  bool refused_ = false;             // by the last attempt
  bool silent_ = false;              // likewise: whoever was asked did not answer
  std::optional<std::string> away_;  // why another address may be asked; unset: none may
  std::optional<Error> foreign_;     // unset: all answers so far were a coordinator's
  std::string cluster_;              // the id of the cluster that answered; empty: none has said it
  std::unique_ptr<Loop> loop_;
};

}  // namespace muster::cli
