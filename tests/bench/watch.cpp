// muster-bench-watch: how much many watchers slow down jobs.
//
// Jobs run alternately without and with watchers, on the same coordinator and hollow agent; the
// ratio of the two rates is what counts. The watchers are sockets of this program, read by one
// thread of the lowest priority, since watchers on other machines would use no CPU here.
#include "base/check.hpp"
#include "tests/bench/cluster.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace muster::bench {
namespace {

constexpr const char* kPods = "/api/v1/namespaces/default/pods";

struct Options {
  uint32_t watchers = 1'000;
  uint32_t pods = 100'000;
  int repeat = 3;
};

// Watches whose events are read and discarded.
class Watchers {
 public:
  Watchers(uint16_t port, uint32_t count, const std::string& path) : epoll_(epoll_create1(0)) {
    for (uint32_t i = 0; i < count; ++i) fds_.push_back(open(port, path));
    thread_ = std::thread([this] { read_all(); });
  }
  ~Watchers() {
    stop_ = true;
    thread_.join();
    for (int fd : fds_) close(fd);
    close(epoll_);
  }
  uint64_t bytes() const { return bytes_; }
  uint64_t cut() const { return cut_; }

 private:
  int open(uint16_t port, const std::string& path) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUSTER_CHECK(fd >= 0, strerror(errno));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUSTER_CHECK(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
                 strerror(errno));
    const std::string text =
        "GET " + path +
        "&watch=true&timeoutSeconds=3600 HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
        "\r\nAccept: application/json\r\n\r\n";
    MUSTER_CHECK(send(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    MUSTER_CHECK(epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0, strerror(errno));
    return fd;
  }

  void read_all() {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
    std::vector<char> buffer(1 << 20);
    epoll_event events[64];
    while (!stop_) {
      const int n = epoll_wait(epoll_, events, 64, 100);
      for (int i = 0; i < n; ++i) {
        const ssize_t got = recv(events[i].data.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got > 0) {
          bytes_ += static_cast<uint64_t>(got);
        } else if (got == 0 || errno != EAGAIN) {
          ++cut_;
          epoll_ctl(epoll_, EPOLL_CTL_DEL, events[i].data.fd, nullptr);
        }
      }
    }
  }

  int epoll_;
  std::vector<int> fds_;
  std::thread thread_;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> bytes_ = 0, cut_ = 0;
};

void measure(Cluster& cluster, const Options& options, const std::string& name,
             const std::string& path) {
  std::vector<double> alone, watched, ratios;
  uint64_t bytes = 0, cut = 0;
  double memory_before = 0, memory_most = 0;
  for (int i = 0; i < options.repeat; ++i) {
    alone.push_back(options.pods / cluster.run({options.pods, kParallelism}).seconds);
    memory_before = std::max(memory_before, cluster.coordinator_mb());
    Watchers watchers(cluster.api_port(), options.watchers,
                      path + "?resourceVersion=" + cluster.version());
    watched.push_back(options.pods / cluster.run({options.pods, kParallelism}).seconds);
    ratios.push_back(watched.back() / alone.back());
    memory_most = std::max(memory_most, cluster.coordinator_mb());
    bytes += watchers.bytes();
    cut += watchers.cut();
  }
  std::printf("%-30s %10.0f %10.0f %7.2f %12.0f %12.0f %10.0f %6llu\n", name.c_str(), median(alone),
              median(watched), median(ratios), memory_before, memory_most,
              static_cast<double>(bytes) / 1e6 / options.repeat,
              static_cast<unsigned long long>(cut));
  std::fflush(stdout);
}

int usage(int code) {
  std::fprintf(code == 0 ? stdout : stderr,
               "muster-bench-watch [--watchers N] [--pods N] [--repeat N]\n"
               "Ends per second of hollow pods, without and with watchers.\n"
               "  --watchers N  of each kind, one kind after the other (default 1000)\n"
               "  --pods N      of each job (default 100000)\n"
               "  --repeat N    runs of each kind, median (default 3)\n");
  return code;
}

int main(int argc, char** argv) {
  Options options;
  const auto code = read_numbers(argc, argv, [&options](const std::string& flag, long n) {
    if (flag == "--watchers")
      options.watchers = static_cast<uint32_t>(n);
    else if (flag == "--pods")
      options.pods = static_cast<uint32_t>(n);
    else if (flag == "--repeat")
      options.repeat = static_cast<int>(n);
    else
      return false;
    return true;
  });
  if (code) return usage(*code);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  Cluster cluster(bin_dir_of_this(), {"--hollow", "--slots", "1000"});
  cluster.run({options.pods, kParallelism});  // warm-up: later runs do not pay for one-time growth
  std::printf("%-30s %10s %10s %7s %12s %12s %10s %6s\n", "", "ends/s", "watched", "ratio",
              "MB before", "MB watched", "MB sent", "cut");
  const std::string many = std::to_string(options.watchers);
  measure(cluster, options, many + " watch all jobs", kJobs);
  measure(cluster, options, many + " watch all pods", kPods);
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  return muster::bench::main(argc, argv);
}
