#include "agent/metrics_port.hpp"

#include "base/check.hpp"
#include "base/log.hpp"

#include <utility>

namespace muster::agent {
namespace {

constexpr size_t kOpenMax = 16;
constexpr size_t kHeadMax = 8192;
constexpr auto kAskWithin = 10 * kj::SECONDS, kAcceptAgainAfter = 1 * kj::SECONDS;

std::string with_head(std::string_view status, std::string_view type, std::string_view body) {
  return "HTTP/1.1 " + std::string(status) + "\r\nContent-Type: " + std::string(type) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" +
         std::string(body);
}

}  // namespace

std::string metrics_answer(std::string_view head, const std::function<std::string()>& text) {
  constexpr std::string_view kPlain = "text/plain; charset=utf-8";
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || last == first ||
      !line.substr(last + 1).starts_with("HTTP/1."))
    return with_head("400 Bad Request", kPlain, "this is not HTTP/1.1\n");
  if (line.substr(0, first) != "GET")
    return with_head("405 Method Not Allowed", kPlain, "only GET works here\n");
  std::string_view path = line.substr(first + 1, last - first - 1);
  path = path.substr(0, path.find('?'));
  if (path == "/healthz") return with_head("200 OK", kPlain, "ok\n");
  if (path != "/metrics")
    return with_head("404 Not Found", kPlain, "there are only /metrics and /healthz here\n");
  return with_head("200 OK", "text/plain; version=0.0.4; charset=utf-8", text());
}

void MetricsPort::taskFailed(kj::Exception&& exception) {
  MUSTER_CHECK(false, exception.getDescription().cStr());
}

Status MetricsPort::serve(kj::Network& network, const std::string& address, kj::WaitScope& scope) {
  if (address.starts_with("unix") || address.rfind(':') == std::string::npos)
    return invalid("--metrics-listen " + address + ": must be ADDRESS:PORT, such as 0.0.0.0:7120");
  const auto failure = kj::runCatchingExceptions(
      [&] { port_ = network.parseAddress(address.c_str()).wait(scope)->listen(); });
  KJ_IF_MAYBE (exception, failure)
    return invalid("--metrics-listen " + address + ": " + exception->getDescription().cStr());
  tasks_.add(accept());
  return Nothing{};
}

kj::Promise<void> MetricsPort::accept() {
  return port_->accept()
      .then([this](kj::Own<kj::AsyncIoStream> stream) -> kj::Promise<void> {
        if (open_ >= kOpenMax) return kj::READY_NOW;
        ++open_;
        auto connection = kj::heap<Connection>();
        connection->stream = kj::mv(stream);
        auto& one = *connection;
        tasks_.add(timer_.timeoutAfter(kAskWithin, converse(one))
                       .catch_([](kj::Exception&&) {})  // the client's trouble
                       .attach(kj::mv(connection))
                       .then([this] { --open_; }));
        return kj::READY_NOW;
      })
      .catch_([this](kj::Exception&& exception) {  // no descriptors are left, for example
        log::warn("--metrics-listen: {}", exception.getDescription().cStr());
        return timer_.afterDelay(kAcceptAgainAfter);
      })
      .then([this] { return accept(); });
}

kj::Promise<void> MetricsPort::converse(Connection& connection) {
  return read_head(connection)
      .then([this, &connection] {
        connection.answer = metrics_answer(connection.head, text_);
        return connection.stream->write(connection.answer.data(), connection.answer.size());
      })
      .then([&connection] { connection.stream->shutdownWrite(); });
}

kj::Promise<void> MetricsPort::read_head(Connection& connection) {
  return connection.stream->tryRead(connection.buffer, 1, sizeof connection.buffer)
      .then([this, &connection](size_t size) -> kj::Promise<void> {
        connection.head.append(connection.buffer, size);
        const bool whole = connection.head.find("\r\n\r\n") != std::string::npos;
        if (whole || size == 0 || connection.head.size() > kHeadMax) return kj::READY_NOW;
        return read_head(connection);
      });
}

}  // namespace muster::agent
