// ApiClient: HTTP/1.1 to one coordinator, blocking.
//
// A client of the same API as kubectl. Of a connection that was kept open, a GET is tried twice
// (the server may have closed it meanwhile); what changes something goes over a fresh connection
// and is never sent twice.
//
// An Error here means that no answer came (`unavailable`); what the coordinator answered, also a
// refusal, is a Response. One client a thread: it owns the thread's KJ event loop.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace muster::cli {

inline constexpr char kJson[] = "application/json";
inline constexpr char kMergePatch[] = "application/merge-patch+json";
inline constexpr char kTable[] = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

struct Response {
  int status = 0;
  std::string body;
  bool ok() const { return status >= 200 && status < 300; }
};

class ApiClient {
 public:
  // `address` HOST:PORT; `origin` says where it comes from, for the message when nobody is there.
  explicit ApiClient(std::string address, std::string origin = "");
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  // How long to wait for a coordinator that does not serve yet: nothing listens at its address, or
  // it answers that it is starting. Ends with the first answer; 0: no wait.
  void set_patience(Millis patience_ms) { patience_ms_ = patience_ms; }
  // An answer takes this long at most; a stream is bounded until it begins.
  void set_timeout(Millis timeout_ms);
  const std::string& address() const { return address_; }

  Result<Response> get(const std::string& path, const char* accept = kJson);
  Result<Response> post(const std::string& path, const std::string& body);
  // A merge patch (RFC 7386).
  Result<Response> patch(const std::string& path, const std::string& body);
  Result<Response> remove(const std::string& path, const std::string& body);

  // Executor the body over as it comes, until it ends or `sink` returns false. What is not 200 is
  // returned with its body instead.
  Result<Response> stream(const std::string& path, const char* accept,
                          const std::function<bool(std::string_view)>& sink);
  // The same, whole lines at a time.
  Result<Response> lines(const std::string& path, const char* accept,
                         const std::function<bool(std::string_view)>& sink);

 private:
  struct Loop;
  Result<Response> once(int method, const std::string& path, const char* accept,
                        const std::string* body, bool fresh,
                        const std::function<bool(std::string_view)>* sink,
                        const char* body_type = kJson);
  Result<Response> patiently(const std::function<Result<Response>()>& ask);
  Error unreachable(std::string why) const;

  const std::string address_, origin_;
  Millis timeout_ms_ = 30'000, patience_ms_ = 0;
  bool refused_ = false;  // the last try: nothing listens there
  std::unique_ptr<Loop> loop_;
};

}  // namespace muster::cli
