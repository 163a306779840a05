// FakeEndpoint: a server on this event loop that answers requests with whatever bytes a test wants.
#pragma once

#include "base/text/json.hpp"
#include "trust/tls/certificates.hpp"

#include <kj/async-io.h>
#include <kj/debug.h>

#include <arpa/inet.h>
#include <functional>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace muster::standby {

// What a request is answered with.
struct Reply {
  std::string bytes;    // of the whole answer, status line included
  bool silent = false;  // the connection then stays open, and nothing else is sent
  bool closes = false;  // the connection is closed then
};

// An answer of HTTP 200 with a JSON body.
inline Reply http(const std::string& body, const char* status = "200 OK",
                  const char* type = "application/json") {
  return {"HTTP/1.1 " + std::string(status) + "\r\nContent-Type: " + type +
          "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body};
}

// A port that refuses connections: it is bound, so nobody else gets it, and does not listen.
class RefusingPort {
 public:
  RefusingPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    at_.sin_family = AF_INET;
    at_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at_;
    KJ_SYSCALL(bind(fd_, reinterpret_cast<sockaddr*>(&at_), size));
    KJ_SYSCALL(getsockname(fd_, reinterpret_cast<sockaddr*>(&at_), &size));
  }
  RefusingPort(const RefusingPort&) = delete;
  RefusingPort& operator=(const RefusingPort&) = delete;
  ~RefusingPort() { close(fd_); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(ntohs(at_.sin_port)); }

 private:
  const int fd_;
  sockaddr_in at_{};
};

class FakeEndpoint {
 public:
  struct Request {
    std::string path, token, body;
  };
  using Handler = std::function<Reply(const Request&)>;

  FakeEndpoint(kj::AsyncIoContext& io, Handler handler)
      : handler_(std::move(handler)),
        port_(io.provider->getNetwork().parseAddress("127.0.0.1:0").wait(io.waitScope)->listen()),
        accepting_(accept().eagerlyEvaluate(nullptr)) {}

  std::string url() { return "http://127.0.0.1:" + std::to_string(port_->getPort()); }
  const std::vector<Request>& requests() const { return requests_; }
  size_t connections() const { return connections_.size(); }
  // Closes all connections; new ones are accepted.
  void hang_up() {
    for (auto& one : connections_) one->serving = nullptr, one->stream = nullptr;
  }
  void answer_with(Handler handler) { handler_ = std::move(handler); }

 private:
  struct Connection {
    kj::Own<kj::AsyncIoStream> stream;
    std::string read{};
    char buffer[4096] = {};
    kj::Promise<void> serving = nullptr;
  };

  kj::Promise<void> accept() {
    return port_->accept().then([this](kj::Own<kj::AsyncIoStream> stream) {
      auto made = kj::heap<Connection>();
      made->stream = kj::mv(stream);
      made->serving = serve(*made).eagerlyEvaluate([](kj::Exception&&) {});
      connections_.push_back(kj::mv(made));
      return accept();
    });
  }
  kj::Promise<void> serve(Connection& c) {
    return c.stream->tryRead(c.buffer, 1, sizeof c.buffer)
        .then([this, &c](size_t n) -> kj::Promise<void> {
          if (n == 0) return kj::READY_NOW;
          c.read.append(c.buffer, n);
          auto request = taken(c.read);
          if (!request) return serve(c);
          requests_.push_back(std::move(*request));
          auto reply = kj::heap<Reply>(handler_(requests_.back()));
          const Reply& r = *reply;
          return c.stream->write(r.bytes.data(), r.bytes.size())
              .then([this, &c, reply = kj::mv(reply)]() -> kj::Promise<void> {
                if (reply->silent) return kj::NEVER_DONE;
                if (!reply->closes) return serve(c);
                c.stream = nullptr;
                return kj::READY_NOW;
              });
        });
  }
  // Takes a complete request from the beginning of a text.
  static std::optional<Request> taken(std::string& text) {
    const size_t end = text.find("\r\n\r\n");
    if (end == text.npos) return std::nullopt;
    const std::string head = text.substr(0, end + 2);
    const size_t size = std::stoul(header(head, "Content-Length"));
    if (text.size() < end + 4 + size) return std::nullopt;
    const size_t path = head.find(' ') + 1;
    Request request{head.substr(path, head.find(' ', path) - path), header(head, "Authorization"),
                    text.substr(end + 4, size)};
    text.erase(0, end + 4 + size);
    return request;
  }
  static std::string header(const std::string& head, const std::string& name) {
    const size_t at = head.find("\r\n" + name + ": ");
    if (at == head.npos) return name == "Content-Length" ? "0" : "";
    const size_t begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }

  Handler handler_;
  std::vector<Request> requests_;
  std::vector<kj::Own<Connection>> connections_;
  kj::Own<kj::ConnectionReceiver> port_;
  kj::Promise<void> accepting_;
};

}  // namespace muster::standby
