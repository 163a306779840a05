// HttpClient: one connection to the API, kept open between requests.
//
// Ends this program if the coordinator can't be reached or cuts a response short.
#pragma once

#include <cstdint>
#include <string>

namespace muster::bench {

class HttpClient {
 public:
  explicit HttpClient(uint16_t port);  // on 127.0.0.1
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Returns the whole response, headers included. An empty body is not sent.
  std::string request(const std::string& method, const std::string& path,
                      const std::string& body = "");

 private:
  void connect();

  const uint16_t port_;
  int fd_ = -1;
};

}  // namespace muster::bench
