#include "base/process/service_manager.hpp"

#include "base/fd.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace muster {
namespace {

// A manager at `path`; a leading '@' makes it an abstract socket.
Fd manager_at(const std::string& path) {
  Fd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path, path.data(), path.size());
  if (path.front() == '@') at.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), size), 0);
  return fd;
}

std::string heard(const Fd& manager) {
  char text[64] = {};
  const ssize_t size = recv(manager.get(), text, sizeof text, 0);
  return size < 0 ? "nothing" : std::string(text, static_cast<size_t>(size));
}

struct InEnvironment {
  explicit InEnvironment(const std::string& socket, const char* span_us = nullptr,
                         const char* pid = nullptr) {
    setenv("NOTIFY_SOCKET", socket.c_str(), 1);
    if (span_us != nullptr) setenv("WATCHDOG_USEC", span_us, 1);
    if (pid != nullptr) setenv("WATCHDOG_PID", pid, 1);
  }
  ~InEnvironment() {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }
};

TEST(ServiceManager, HearsWhatTheDaemonSays) {
  const std::string folder = testing::TempDir();
  const std::string own = "muster-manager-" + std::to_string(getpid());
  for (const std::string& path : {folder + own, "@" + own}) {
    const Fd manager = manager_at(path);
    const InEnvironment set(path);
    const ServiceManager told = ServiceManager::take();
    EXPECT_EQ(heard(manager), "nothing");
    told.ready();
    EXPECT_EQ(heard(manager), "READY=1\n");
    told.alive();
    EXPECT_EQ(heard(manager), "WATCHDOG=1\n");
    told.stopping();
    EXPECT_EQ(heard(manager), "STOPPING=1\n");
  }
  unlink((folder + own).c_str());
}

TEST(ServiceManager, VariablesAreNotInherited) {
  const InEnvironment set("/nowhere", "30000000", "1");
  ServiceManager::take();
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
    EXPECT_EQ(std::getenv(name), nullptr) << name;
}

TEST(ServiceManager, WatchdogIsHeardTwiceInItsTime) {
  const std::string us = std::to_string(getpid()), other = std::to_string(getppid());
  struct Case {
    const char* span_us;
    const char* pid;
    Millis each_ms;
  };
  for (const Case& one : {Case{"30000000", us.c_str(), 15'000}, Case{"30000000", nullptr, 15'000},
                          Case{"30000000", other.c_str(), 0}, Case{nullptr, nullptr, 0}}) {
    const InEnvironment set("/nowhere", one.span_us, one.pid);
    EXPECT_EQ(ServiceManager::take().alive_each_ms(), one.each_ms);
  }
}

TEST(ServiceManager, NoneAndOneThatIsGoneAreNoTrouble) {
  ServiceManager::take().ready();
  const InEnvironment set("/nowhere/at/all");
  ServiceManager::take().ready();
}

}  // namespace
}  // namespace muster
