// MetricsPort: serves the text of an agent's metrics to Prometheus, over HTTP.
//
// Answers GET /metrics and GET /healthz to anyone, once per connection, and nothing else; 404 and
// 405 for the rest. A connection that has not asked within ten seconds is closed, and so is one
// more than sixteen at a time.
//
// Belongs to a KJ thread, which must not throw it away while one of its promises runs.
#pragma once

#include "base/result.hpp"

#include <kj/async-io.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace muster::agent {

class MetricsPort final : private kj::TaskSet::ErrorHandler {
 public:
  MetricsPort(kj::Timer& timer, std::function<std::string()> text)
      : timer_(timer), text_(std::move(text)) {}

  // Binds HOST:PORT, and serves from now on. `invalid`: it cannot.
  Status serve(kj::Network& network, const std::string& address, kj::WaitScope& scope);
  unsigned port() { return port_->getPort(); }

 private:
  struct Connection {
    kj::Own<kj::AsyncIoStream> stream;
    std::string head, answer;
    char buffer[1024];
  };
  void taskFailed(kj::Exception&& exception) override;
  kj::Promise<void> accept();
  kj::Promise<void> converse(Connection& connection);
  kj::Promise<void> read_head(Connection& connection);

  kj::Timer& timer_;
  const std::function<std::string()> text_;
  kj::Own<kj::ConnectionReceiver> port_;
  size_t open_ = 0;
  kj::TaskSet tasks_{*this};
};

// The answer to a request with this head, as sent: status line, headers, body. `text` is called for
// /metrics.
std::string metrics_answer(std::string_view head, const std::function<std::string()>& text);

}  // namespace muster::agent
