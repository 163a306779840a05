#include "tests/bench/http.hpp"

#include "base/check.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::bench {

namespace {

// Whether the response is complete, judging by its length or, if it is chunked, by its last chunk.
bool whole(const std::string& answer) {
  const auto head = answer.find("\r\n\r\n");
  if (head == std::string::npos) return false;
  if (answer.find("Transfer-Encoding: chunked") < head) return answer.ends_with("\r\n0\r\n\r\n");
  const auto length = answer.find("Content-Length: ");
  return length < head && answer.size() >= head + 4 + std::stoul(answer.substr(length + 16));
}

}  // namespace

HttpClient::HttpClient(uint16_t port) : port_(port) {
  connect();
}

HttpClient::~HttpClient() {
  close(fd_);
}

void HttpClient::connect() {
  if (fd_ >= 0) close(fd_);
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  MUSTER_CHECK(fd_ >= 0, strerror(errno));
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int connected = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
  MUSTER_CHECK(connected == 0, strerror(errno));
}

std::string HttpClient::request(const std::string& method, const std::string& path,
                                const std::string& body) {
  std::string text = method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) +
                     "\r\nAccept: application/json\r\n";
  if (!body.empty())
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  text += "\r\n" + body;
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    MUSTER_CHECK(n > 0, strerror(errno));
    sent += static_cast<size_t>(n);
  }
  std::string answer;
  char part[65536];
  while (!whole(answer)) {
    const ssize_t n = recv(fd_, part, sizeof part, 0);
    MUSTER_CHECK(n > 0, method, path, answer.substr(0, 300), strerror(errno));
    answer.append(part, static_cast<size_t>(n));
  }
  if (answer.find("Connection: close\r\n") < answer.find("\r\n\r\n")) connect();
  return answer;
}

}  // namespace muster::bench
