#include "standby/doorway.hpp"

#include "api/http/ends.hpp"
#include "api/kube/objects/status_object.hpp"
#include "base/network/not_leader.hpp"
#include "base/text/json.hpp"
#include "coordinator/threads/listening.hpp"
#include "trust/store/trust_store.hpp"
#include "trust/tls/link.hpp"

#include <unistd.h>
#include <utility>

namespace muster::standby {
namespace {

constexpr Millis kWaitMs = 15'000;  // for a leader
constexpr Millis kAgainMs = 50;

kj::Promise<void> refuse(SharedStream stream, const std::string& why) {
  const std::string body =
      dumped(api::status_json(503, kNotLeader, why, {{"retryAfterSeconds", 1}}));
  auto text = kj::heapString(
      ("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: application/json\r\n"
       "Connection: close\r\nContent-Length: " +
       std::to_string(body.size()) + "\r\n\r\n" + body)
          .c_str());
  auto written = (*stream)->write(text.begin(), text.size());
  return written.attach(kj::mv(text)).then([stream = std::move(stream)] {
    (*stream)->shutdownWrite();
  });
}

}  // namespace

Doorway::Doorway(kj::AsyncIoContext& io, DoorwayPorts ports)
    : io_(io),
      timer_(io.provider->getTimer()),
      ports_(std::move(ports)),
      local_(timer_, "the API", [this](kj::Own<kj::AsyncIoStream> s) { take_local(kj::mv(s)); }),
      remote_(timer_, "the API's TLS port",
              [this](kj::Own<kj::AsyncIoStream> s) { take_remote(kj::mv(s)); }) {}

Status Doorway::follow(FollowingRole& role) {
  role_ = &role;
  admit_ = {};
  tls_ = nullptr;
  auto port = coordinator::listen_on(io_, "--api", ports_.api, 0600);
  if (!port) return port.error();
  accepting_->add(local_.run(**port));
  open_.push_back(kj::mv(*port));
  auto socket = coordinator::listen_also(io_, "--api-socket", ports_.api_socket, 0666,
                                         ports_.api_socket_required);
  if (!socket) return socket.error();
  KJ_IF_MAYBE (also, *socket) {
    accepting_->add(local_.run(**also));
    open_.push_back(kj::mv(*also));
  }
  if (!ports_.api_tls.empty()) {
    auto tls = coordinator::listen_on(io_, "--api-tls", ports_.api_tls, 0600);
    if (!tls) return tls.error();
    accepting_->add(remote_.run(**tls));
    open_.push_back(kj::mv(*tls));
  }
  changed();
  return Nothing{};
}

void Doorway::changed() {
  if (role_ == nullptr || tls_.get() != nullptr || !role_->authority()) return;
  const tls::Authority& authority = *role_->authority();
  tls_ = tls::server_context(coordinator::server_certificate(authority, ports_.names, wall_now()),
                             authority.pems().certificate, false);
}

void Doorway::take_local(kj::Own<kj::AsyncIoStream> stream) {
  const int fd = api::fd_of(*stream);
  const PeerVerdict peer = lookup_.judge(fd);
  Visit visit{std::make_shared<kj::Own<kj::AsyncIoStream>>(kj::mv(stream)), 0, api::source_of(fd),
              api::local_host(fd), boot_now() + kWaitMs};
  if (!peer.uid && !ports_.insecure) return tasks_.add(refuse(visit.stream, peer.why));
  visit.uid = peer.uid.value_or(geteuid());
  tasks_.add(pass(std::move(visit)));
}

void Doorway::take_remote(kj::Own<kj::AsyncIoStream> stream) {
  if (tls_.get() == nullptr) return;  // nothing proves yet who we are
  const int fd = api::fd_of(*stream);
  Visit visit{nullptr, -1, api::source_of(fd), api::local_host(fd), boot_now() + kWaitMs};
  auto shaken = timer_.timeoutAfter(kWaitMs * kj::MILLISECONDS, tls_->wrapServer(kj::mv(stream)));
  tasks_.add(shaken.then([this, visit = std::move(visit)](kj::Own<kj::AsyncIoStream> s) mutable {
    visit.stream = std::make_shared<kj::Own<kj::AsyncIoStream>>(kj::mv(s));
    return pass(std::move(visit));
  }));
}

void Doorway::lead(Admit admit) {
  role_ = nullptr;
  admit_ = std::move(admit);
  // Later, so that a connection that has just been accepted is taken, and not dropped.
  tasks_.add(kj::evalLast([this] {
    if (role_ != nullptr) return;
    accepting_ = kj::heap<kj::TaskSet>(broken_.handler());
    open_.clear();
  }));
}

kj::Promise<void> Doorway::pass(Visit visit) {
  if (admit_) return pass_here(std::move(visit));
  KJ_IF_MAYBE (leader, role_->leader()) return pass_to(*leader, std::move(visit));
  return again(std::move(visit));
}

kj::Promise<void> Doorway::again(Visit visit) {
  if (boot_now() >= visit.until)
    return refuse(std::move(visit.stream),
                  "no coordinator leads, or this one cannot reach it; "
                  "see its log");
  return timer_.afterDelay(kAgainMs * kj::MILLISECONDS)
      .then([this, visit = std::move(visit)]() mutable { return pass(std::move(visit)); });
}

kj::Promise<void> Doorway::pass_here(Visit visit) {
  api::PassedPeer peer{std::nullopt, visit.source, visit.host};
  if (visit.uid >= 0) peer.uid = static_cast<uid_t>(visit.uid);
  auto own = local_pair(io_, [&](Fd other) { return admit_(std::move(other), std::move(peer)); });
  if (own == nullptr) return again(std::move(visit));  // it does not serve
  auto builder = kj::heapArrayBuilder<kj::Promise<void>>(2);
  builder.add(pump(own, sink_to(visit.stream)));
  builder.add(pump(visit.stream, sink_to(own)));
  return kj::joinPromises(builder.finish());
}

kj::Promise<void> Doorway::pass_to(wire::Leading::Client leader, Visit visit) {
  auto request = leader.passRequest();
  request.setUid(visit.uid);
  request.setSource(visit.source);
  request.setHost(visit.host);
  request.setBack(sink_to(visit.stream));
  auto passed = request.send().then(
      [](auto&& response) -> kj::Maybe<wire::ByteSink::Client> { return response.getForth(); },
      [](kj::Exception&&) -> kj::Maybe<wire::ByteSink::Client> { return nullptr; });
  return passed.then(
      [this, visit = std::move(visit)](kj::Maybe<wire::ByteSink::Client> forth) mutable {
        KJ_IF_MAYBE (sink, forth) return pump(visit.stream, kj::mv(*sink));
        return again(std::move(visit));  // it does not serve yet
      });
}

}  // namespace muster::standby
