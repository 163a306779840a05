// Endpoint: one URL of a store, and the connections to it.
//
// A connection is used for one request at a time and kept for the next one; a request that finds
// none idle opens another. It is kept only after a complete answer, and closed if anything has
// arrived on it since, which is how the end of a restarted server shows. So a request is never
// written to a connection that is known to be dead, and a failure says whether the request may have
// arrived (`sent`).
#pragma once

#include "standby/store/etcd_options.hpp"

#include <kj/async-io.h>
#include <kj/compat/http.h>
#include <kj/compat/tls.h>

#include <string>
#include <vector>

namespace muster::standby {

// What all endpoints share. The headers of a table have one order, so there is one table.
struct HttpNames {
  kj::HttpHeaderTable::Builder builder;
  kj::HttpHeaderId accept = builder.add("Accept");
  kj::HttpHeaderId authorization = builder.add("Authorization");
  kj::HttpHeaderId user_agent = builder.add("User-Agent");
  kj::Own<kj::HttpHeaderTable> table = builder.build();
};

class Endpoint {
 public:
  struct Question {
    const char* path;
    std::string body;         // JSON
    std::string token;        // of etcd's users; empty: none
    bool first_line = false;  // the answer is a stream, of which only the first line is wanted
  };
  struct Answer {
    unsigned status = 0;
    std::string body;
  };
  static constexpr size_t kAnswerMax = 1 << 20;  // bytes

  // `tls` is used if the URL is https.
  Endpoint(kj::Network& network, const HttpNames& names, EtcdUrl url,
           kj::Maybe<kj::TlsContext&> tls);

  // Throws what goes wrong. Sets `sent` when the request may have reached the server; it must stay
  // valid until the promise has ended.
  kj::Promise<Answer> ask(Question question, bool& sent);
  const EtcdUrl& url() const { return url_; }

 private:
  struct Connection {
    kj::Own<kj::AsyncIoStream> stream;
    int fd = -1;  // of the TCP connection, below TLS
    kj::Own<kj::HttpClient> client;
  };
  static bool is_quiet(const Connection& connection);
  kj::Promise<kj::Own<Connection>> connect();
  kj::Promise<kj::Own<Connection>> connection();
  kj::Promise<Answer> ask_on(kj::Own<Connection> connection, Question question);

  kj::Network& network_;
  const HttpNames& names_;
  const EtcdUrl url_;
  kj::Maybe<kj::TlsContext&> tls_;
  std::vector<kj::Own<Connection>> idle_;
};

}  // namespace muster::standby
