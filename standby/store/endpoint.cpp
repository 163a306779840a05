#include "standby/store/endpoint.hpp"

#include "base/version.hpp"

#include <kj/debug.h>

#include <cerrno>
#include <strings.h>
#include <sys/socket.h>
#include <utility>

namespace muster::standby {
namespace {

constexpr size_t kBuffer = 16 << 10;  // bytes read at a time
constexpr size_t kIdleMax = 2;        // connections kept

// A body while it is read.
struct Reading {
  kj::Own<kj::AsyncInputStream> in;
  bool first_line;
  bool ended = false;
  std::string text{};
  kj::Array<char> buffer = kj::heapArray<char>(kBuffer);

  kj::Promise<void> go_on() {
    return in->tryRead(buffer.begin(), 1, buffer.size())
        .then([this](size_t n) -> kj::Promise<void> {
          ended = n == 0;
          text.append(buffer.begin(), n);
          if (text.size() > Endpoint::kAnswerMax)
            kj::throwFatalException(KJ_EXCEPTION(FAILED, "its answer is larger than 1 MiB"));
          if (ended || (first_line && text.find('\n') != text.npos)) return kj::READY_NOW;
          return go_on();
        });
  }
};

bool names_close(const kj::HttpHeaders& headers) {
  KJ_IF_MAYBE (value, headers.get(kj::HttpHeaderId::CONNECTION)) {
    return strcasecmp(value->cStr(), "close") == 0;
  }
  return false;
}

}  // namespace

Endpoint::Endpoint(kj::Network& network, const HttpNames& names, EtcdUrl url,
                   kj::Maybe<kj::TlsContext&> tls)
    : network_(network), names_(names), url_(std::move(url)), tls_(tls) {}

bool Endpoint::is_quiet(const Connection& connection) {
  char byte;
  return recv(connection.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

// The name is resolved each time: a member may have moved.
kj::Promise<kj::Own<Endpoint::Connection>> Endpoint::connect() {
  return network_.parseAddress(url_.address().c_str())
      .then([](kj::Own<kj::NetworkAddress> address) {
        auto connecting = address->connect();
        return connecting.attach(kj::mv(address));
      })
      .then([this](kj::Own<kj::AsyncIoStream> stream) -> kj::Promise<kj::Own<Connection>> {
        const int fd = KJ_ASSERT_NONNULL(stream->getFd());
        auto secured = kj::Promise<kj::Own<kj::AsyncIoStream>>(nullptr);
        if (url_.tls)
          secured = KJ_ASSERT_NONNULL(tls_).wrapClient(kj::mv(stream), url_.host.c_str());
        else
          secured = kj::mv(stream);
        return secured.then([this, fd](kj::Own<kj::AsyncIoStream> ready) {
          auto made = kj::heap<Connection>();
          made->stream = kj::mv(ready);
          made->fd = fd;
          made->client = kj::newHttpClient(*names_.table, *made->stream);
          return made;
        });
      });
}

kj::Promise<kj::Own<Endpoint::Connection>> Endpoint::connection() {
  while (!idle_.empty()) {
    kj::Own<Connection> kept = kj::mv(idle_.back());
    idle_.pop_back();
    if (is_quiet(*kept)) return kj::mv(kept);
  }
  return connect();
}

kj::Promise<Endpoint::Answer> Endpoint::ask(Question question, bool& sent) {
  return connection().then(
      [this, &sent, question = std::move(question)](kj::Own<Connection> ready) mutable {
        sent = true;
        return ask_on(kj::mv(ready), std::move(question));
      });
}

kj::Promise<Endpoint::Answer> Endpoint::ask_on(kj::Own<Connection> connection, Question question) {
  kj::HttpHeaders headers(*names_.table);
  const std::string host = url_.address();
  headers.set(kj::HttpHeaderId::HOST, kj::StringPtr(host.c_str()));
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, "application/json");
  headers.set(names_.accept, "application/json");
  headers.set(names_.user_agent, kj::str("muster/", kVersion));
  if (!question.token.empty()) headers.set(names_.authorization, kj::str(question.token.c_str()));
  auto request = connection->client->request(kj::HttpMethod::POST, question.path, headers,
                                             uint64_t{question.body.size()});
  auto body = kj::heap<std::string>(std::move(question.body));
  auto written = request.body->write(body->data(), body->size())
                     .attach(kj::mv(body), kj::mv(request.body))
                     .eagerlyEvaluate(nullptr);
  return request.response.attach(kj::mv(written))
      .then([first_line = question.first_line](kj::HttpClient::Response response) {
        // Trailers, which etcd sends after errors, are more than KJ reads.
        const bool keeps = response.statusCode == 200 && !names_close(*response.headers);
        auto reading = kj::heap<Reading>(Reading{kj::mv(response.body), first_line});
        auto read = reading->go_on();
        return read.then(
            [reading = kj::mv(reading), status = response.statusCode, keeps]() mutable {
              return std::pair{Answer{status, std::move(reading->text)}, keeps && reading->ended};
            });
      })
      .then([this, connection = kj::mv(connection)](std::pair<Answer, bool> heard) mutable {
        if (heard.second && idle_.size() < kIdleMax) idle_.push_back(kj::mv(connection));
        return std::move(heard.first);
      });
}

}  // namespace muster::standby
