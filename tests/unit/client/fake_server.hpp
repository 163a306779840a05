// FakeServer: an HTTP server with canned answers.
//
// Serves one connection at a time. Each request gets the answer set for "METHOD PATH", or 404; as
// text if it is for a log, else as JSON.
#pragma once

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <atomic>
#include <map>
#include <mutex>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

namespace muster::cli {

class FakeServer {
 public:
  FakeServer() {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeServer() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // Answers are given in turn; the last one repeats. `headers`: more lines, each with its CRLF; a
  // Content-Type replaces the usual one. `SESSION` in a body stands for the request's session.
  void answer(const std::string& request, int status, const std::string& body,
              const std::string& headers = "") {
    std::lock_guard lock(mutex_);
    answers_[request].push_back({status, body, headers});
  }
  std::vector<std::string> requests() {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  std::atomic<bool> close_each = false;  // close after one answer, unannounced

 private:
  void serve() {
    for (int c; (c = accept(fd_, nullptr, nullptr)) >= 0;) {
      talk(c);
      close(c);
    }
  }

  void talk(int c) {
    timeval patience{.tv_sec = 0,
                     .tv_usec = 300'000};  // a kept connection must not hold up the next one
    setsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    std::string in;
    for (;;) {
      size_t head;
      while ((head = in.find("\r\n\r\n")) == std::string::npos) {
        if (!more(c, in)) return;
      }
      size_t length = 0;
      if (const size_t at = in.find("Content-Length: "); at < head)
        length = std::stoul(in.substr(at + 16));
      while (in.size() < head + 4 + length) {
        if (!more(c, in)) return;
      }
      const std::string line = in.substr(0, in.find(" HTTP/1.1"));
      const std::string request = line.substr(0, line.find('?'));
      std::string body = R"({"kind":"Status","status":"Failure","reason":"NotFound","code":404})",
                  headers;
      int status = 404;
      {
        std::lock_guard lock(mutex_);
        requests_.push_back(in.substr(0, head + 4 + length));
        if (auto it = answers_.find(request); it != answers_.end()) {
          std::tie(status, body, headers) = it->second.front();
          if (it->second.size() > 1) it->second.erase(it->second.begin());
        }
      }
      echo_session(in.substr(0, head + 4 + length), body);
      in.erase(0, head + 4 + length);
      if (headers.find("Content-Type") == std::string::npos)
        headers += request.ends_with("/log") && status == 200
                       ? "Content-Type: text/plain; charset=utf-8\r\n"
                       : "Content-Type: application/json\r\n";
      const std::string out = "HTTP/1.1 " + std::to_string(status) + " X\r\n" + headers +
                              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
      if (send(c, out.data(), out.size(), MSG_NOSIGNAL) < 0 || close_each) return;
    }
  }

  static void echo_session(const std::string& request, std::string& body) {
    static const std::string kKey = R"("session":")", kPlace = "SESSION";
    const size_t key = request.find(kKey), place = body.find(kPlace);
    if (key == std::string::npos || place == std::string::npos) return;
    const size_t value = key + kKey.size();
    body.replace(place, kPlace.size(), request.substr(value, request.find('"', value) - value));
  }

  static bool more(int c, std::string& in) {
    char buffer[4096];
    const ssize_t n = recv(c, buffer, sizeof buffer, 0);
    if (n > 0) in.append(buffer, static_cast<size_t>(n));
    return n > 0;
  }

  int fd_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::tuple<int, std::string, std::string>>> answers_;
  std::vector<std::string> requests_;
};

}  // namespace muster::cli
