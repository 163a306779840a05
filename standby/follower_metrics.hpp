// FollowerMetrics: what a coordinator that follows says of itself, on the port on which it serves
// its metrics while it leads (--metrics-listen). The leader knows nothing of its disk, and nobody
// knows of a follower that no leader reaches.
//
// Answers GET /metrics and GET /healthz to anyone, and nothing else. At most sixteen connections at
// a time; one that does not ask within ten seconds is closed.
//
// Belongs to the peers' thread; the role outlives it.
#pragma once

#include "api/http/admission.hpp"
#include "base/result.hpp"
#include "standby/following.hpp"

#include <kj/async-io.h>
#include <kj/compat/http.h>

#include <string>

namespace muster::standby {

// As text for Prometheus (docs/metrics.md). `started_ms`: when the process started, on the wall
// clock.
std::string metrics_text(const FollowerFigures& figures, const std::string& data_dir,
                         Millis started_ms);

// Why this coordinator could not take over now; empty: it could.
std::string unready_text(const FollowerFigures& figures);

class FollowerMetrics final : private kj::HttpService, private kj::TaskSet::ErrorHandler {
 public:
  FollowerMetrics(kj::AsyncIoContext& io, FollowingRole& role, std::string data_dir,
                  Millis started_ms);

  // `address`: HOST:PORT.
  Status open(const std::string& address);

 private:
  void take(kj::Own<kj::AsyncIoStream> stream);
  kj::Promise<void> request(kj::HttpMethod method, kj::StringPtr url,
                            const kj::HttpHeaders& headers, kj::AsyncInputStream& body,
                            Response& response) override;
  void taskFailed(kj::Exception&&) override {}  // a client that has gone

  kj::AsyncIoContext& io_;
  FollowingRole& role_;
  const std::string data_dir_;
  const Millis started_ms_;
  kj::HttpHeaderTable headers_;
  kj::HttpServer server_;
  api::Acceptor acceptor_;
  kj::Own<kj::ConnectionReceiver> port_;
  size_t open_ = 0;
  kj::TaskSet tasks_{*this};
};

}  // namespace muster::standby
