#include "standby/follower_metrics.hpp"

#include "base/process/exposition.hpp"
#include "base/process/self_usage.hpp"
#include "base/version.hpp"
#include "coordinator/threads/listening.hpp"

#include <utility>

namespace muster::standby {
namespace {

constexpr size_t kOpenMax = 16;

kj::HttpServerSettings settings_of_metrics() {
  kj::HttpServerSettings settings;
  settings.headerTimeout = 10 * kj::SECONDS;
  settings.pipelineTimeout = 10 * kj::SECONDS;
  return settings;
}

kj::Promise<void> answer(kj::HttpService::Response& response, unsigned code, const char* status,
                         const char* type, std::string text, const kj::HttpHeaderTable& table) {
  kj::HttpHeaders headers(table);
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, type);
  auto body = kj::heapString(text.c_str(), text.size());
  auto stream = response.send(code, status, headers, body.size());
  auto written = stream->write(body.begin(), body.size());
  return written.attach(kj::mv(stream), kj::mv(body));
}

}  // namespace

std::string metrics_text(const FollowerFigures& figures, const std::string& data_dir,
                         Millis started_ms) {
  Exposition out;
  out.gauge("muster_coordinator_leader", "1: this coordinator leads, of several.", 0);
  out.gauge("muster_coordinator_term", "Term of the lead, which grows whenever one takes it.",
            static_cast<double>(figures.term));
  out.gauge("muster_coordinator_store_answers",
            "1: the consensus store has answered the last request; 0: it has not.",
            figures.store_answers ? 1 : 0);
  out.gauge("muster_coordinator_store_wiped",
            "1: the consensus store holds no configuration, so nobody can take over; 0: it does.",
            figures.store_wiped ? 1 : 0);
  out.gauge("muster_follower_connected",
            "1: this coordinator follows a leader, and gets each of its commits.",
            figures.follows ? 1 : 0);
  out.gauge("muster_follower_in_sync", "1: it may take over, as the consensus store said last.",
            figures.in_sync ? 1 : 0);
  out.gauge("muster_follower_commit", "Number of the last commit in its journal.",
            static_cast<double>(figures.commit));
  if (figures.lag)
    out.gauge("muster_follower_lag_commits",
              "Commits that the leader had more when it was last heard.",
              static_cast<double>(*figures.lag));
  if (figures.silent_ms)
    out.gauge("muster_follower_leader_heard_seconds", "Time since the leader was last heard.",
              static_cast<double>(*figures.silent_ms) / 1000);
  out.histogram("muster_follower_commit_duration_seconds",
                "Time to make a batch of the leader durable.", figures.syncs);
  tell_disk(out, "muster", data_dir, "the coordinator's state");
  out.metric("muster_build_info", "gauge", "The version of this coordinator.")
      .value(1, "version=\"" + std::string(kVersion) + "\"");
  tell_own_usage(out, "the coordinator", started_ms);
  return std::move(out).text();
}

std::string unready_text(const FollowerFigures& figures) {
  if (!figures.store_answers) return "the consensus store does not answer";
  if (figures.store_wiped)
    return "the consensus store holds no configuration: it was wiped; restart the leader with "
           "--new-store, once";
  if (!figures.follows) return "it follows no leader; see its log";
  if (!figures.in_sync) return "it is not in sync: it may lack some of what was acknowledged";
  return "";
}

FollowerMetrics::FollowerMetrics(kj::AsyncIoContext& io, FollowingRole& role, std::string data_dir,
                                 Millis started_ms)
    : io_(io),
      role_(role),
      data_dir_(std::move(data_dir)),
      started_ms_(started_ms),
      server_(io.provider->getTimer(), headers_, *this, settings_of_metrics()),
      acceptor_(io.provider->getTimer(), "the metrics port",
                [this](kj::Own<kj::AsyncIoStream> stream) { take(kj::mv(stream)); }) {}

Status FollowerMetrics::open(const std::string& address) {
  auto port = coordinator::listen_on(io_, "--metrics-listen", address, 0600);
  if (!port) return port.error();
  port_ = kj::mv(*port);
  tasks_.add(acceptor_.run(*port_));
  return Nothing{};
}

void FollowerMetrics::take(kj::Own<kj::AsyncIoStream> stream) {
  if (open_ >= kOpenMax) return;
  ++open_;
  tasks_.add(server_.listenHttp(kj::mv(stream)).attach(kj::defer([this] { --open_; })));
}

kj::Promise<void> FollowerMetrics::request(kj::HttpMethod method, kj::StringPtr url,
                                           const kj::HttpHeaders&, kj::AsyncInputStream&,
                                           Response& response) {
  constexpr const char* kPlain = "text/plain; charset=utf-8";
  const std::string path = std::string(url.cStr()).substr(0, std::string(url.cStr()).find('?'));
  if (method != kj::HttpMethod::GET)
    return answer(response, 405, "Method Not Allowed", kPlain, "only GET works here\n", headers_);
  if (path == "/healthz") return answer(response, 200, "OK", kPlain, "ok\n", headers_);
  if (path == "/readyz")
    return role_.figures().then([this, &response](const FollowerFigures& figures) {
      const std::string why = unready_text(figures);
      return why.empty() ? answer(response, 200, "OK", kPlain, "ok\n", headers_)
                         : answer(response, 503, "Service Unavailable", kPlain,
                                  "this coordinator could not take over: " + why + "\n", headers_);
    });
  if (path != "/metrics")
    return answer(response, 404, "Not Found", kPlain,
                  "there are only /metrics, /healthz and /readyz here\n", headers_);
  return role_.figures().then([this, &response](const FollowerFigures& figures) {
    return answer(response, 200, "OK", "text/plain; version=0.0.4; charset=utf-8",
                  metrics_text(figures, data_dir_, started_ms_), headers_);
  });
}

}  // namespace muster::standby
