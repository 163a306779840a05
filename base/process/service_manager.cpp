#include "base/process/service_manager.hpp"

#include "base/fd.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace muster {
namespace {

// Returns the value, and removes the variable.
std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  unsetenv(name);
  return text;
}

}  // namespace

ServiceManager ServiceManager::take() {
  ServiceManager manager;
  manager.socket_ = take_variable("NOTIFY_SOCKET");
  const std::string span_us = take_variable("WATCHDOG_USEC");
  const std::string pid = take_variable("WATCHDOG_PID");
  const bool ours = pid.empty() || std::atoll(pid.c_str()) == getpid();
  if (ours && !manager.socket_.empty()) manager.watchdog_ms_ = std::atoll(span_us.c_str()) / 1'000;
  return manager;
}

void ServiceManager::ready() const {
  send("READY=1\n");
}

void ServiceManager::alive() const {
  send("WATCHDOG=1\n");
}

void ServiceManager::stopping() const {
  send("STOPPING=1\n");
}

void ServiceManager::send(const char* text) const {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (socket_.empty() || socket_.size() >= sizeof to.sun_path) return;
  std::memcpy(to.sun_path, socket_.data(), socket_.size());
  if (socket_.front() == '@') to.sun_path[0] = '\0';  // abstract
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  const Fd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return;
  const timeval patience{1, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sendto(fd.get(), text, std::strlen(text), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to),
         size);
}

}  // namespace muster
