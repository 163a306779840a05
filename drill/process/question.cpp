#include "drill/process/question.hpp"

#include "base/network/address_list.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::cli::drill {

std::optional<Question> Question::ask(const std::string& address, const std::string& path) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::string host = address_host(address);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) != 0)
    return std::nullopt;
  Fd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool connected = socket && connect(socket.get(), found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: " + address +
                              "\r\nAccept: application/json\r\nConnection: close\r\n\r\n";
  const Millis now = boot_now();
  if (!connected || send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
                        static_cast<ssize_t>(request.size()))
    return std::nullopt;
  return Question(std::move(socket), now);
}

std::string Question::answer(Millis patience_ms) const {
  std::string text;
  for (const Millis until = boot_now() + patience_ms; text.find('\n') == std::string::npos;) {
    const Millis left = until - boot_now();
    pollfd ready{socket_.get(), POLLIN, 0};
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) != 1) break;
    char bytes[512];
    const ssize_t n = recv(socket_.get(), bytes, sizeof bytes, 0);
    if (n <= 0) break;
    text.append(bytes, static_cast<size_t>(n));
  }
  return text.substr(0, text.find('\r'));
}

}  // namespace muster::cli::drill
