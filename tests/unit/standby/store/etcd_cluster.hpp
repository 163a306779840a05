// EtcdCluster: etcd servers of a test's own, on free ports and in a directory of its own.
//
// A server that ends at once, because another program has taken one of its ports, is started again
// on other ports, together with the others.
#pragma once

#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <netinet/in.h>
#include <string>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace muster::standby {

constexpr char kEtcdProgram[] = "/usr/bin/etcd";

// A port that nothing listens on, for a moment at least.
inline int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&at), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size), 0);
  close(fd);
  return ntohs(at.sin_port);
}

class EtcdCluster {
 public:
  // `more`: further flags of all members; "https" for `scheme` needs those of the certificates.
  explicit EtcdCluster(size_t members, std::vector<std::string> more = {},
                       std::string scheme = "http")
      : more_(std::move(more)), scheme_(std::move(scheme)) {
    std::string path = testing::TempDir() + "muster-etcd-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) std::abort();
    dir_ = path;
    members_.resize(members);
    assign_ports();
  }
  EtcdCluster(const EtcdCluster&) = delete;
  EtcdCluster& operator=(const EtcdCluster&) = delete;
  ~EtcdCluster() {
    for (size_t i = 0; i < members_.size(); ++i) kill(i);
    std::filesystem::remove_all(dir_);
  }

  std::string url(size_t i) const { return at(scheme_, members_[i].client); }
  std::vector<std::string> urls() const {
    std::vector<std::string> all;
    for (size_t i = 0; i < members_.size(); ++i) all.push_back(url(i));
    return all;
  }
  const std::string& dir() const { return dir_; }

  // Fails the test if there is no etcd.
  void start_all() {
    ASSERT_EQ(access(kEtcdProgram, X_OK), 0)
        << kEtcdProgram << " is missing: install Debian's etcd-server (./dev setup does)";
    for (size_t i = 0; i < members_.size(); ++i) start(i);
  }
  // Whether a member has ended by itself; its log then says why.
  bool has_failed() {
    for (Member& m : members_)
      if (m.pid > 0 && waitpid(m.pid, nullptr, WNOHANG) == m.pid) {
        m.pid = -1;
        return true;
      }
    return false;
  }
  void start_again_elsewhere() {
    for (size_t i = 0; i < members_.size(); ++i) {
      kill(i);
      std::filesystem::remove_all(dir_ + "/" + name(i));
    }
    assign_ports();
    start_all();
  }
  void start(size_t i) {
    std::string all;
    for (size_t j = 0; j < members_.size(); ++j)
      all += (j == 0 ? "" : ",") + name(j) + "=" + at("http", members_[j].peer);
    const std::string client = url(i), peer = at("http", members_[i].peer);
    std::vector<std::string> args{kEtcdProgram,
                                  "--name=" + name(i),
                                  "--data-dir=" + dir_ + "/" + name(i),
                                  "--listen-client-urls=" + client,
                                  "--advertise-client-urls=" + client,
                                  "--listen-peer-urls=" + peer,
                                  "--initial-advertise-peer-urls=" + peer,
                                  "--initial-cluster=" + all,
                                  "--initial-cluster-token=" + dir_,
                                  "--heartbeat-interval=50",
                                  "--election-timeout=500"};
    args.insert(args.end(), more_.begin(), more_.end());
    std::vector<char*> raw;
    for (std::string& arg : args) raw.push_back(arg.data());
    raw.push_back(nullptr);
    const std::string log = dir_ + "/" + name(i) + ".log";
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      dup2(fd, 1);
      dup2(fd, 2);
      execv(kEtcdProgram, raw.data());
      _exit(127);
    }
    members_[i].pid = pid;
  }
  void signal(size_t i, int number) { ::kill(members_[i].pid, number); }
  void kill(size_t i) {
    if (members_[i].pid <= 0) return;
    signal(i, SIGKILL);
    waitpid(members_[i].pid, nullptr, 0);
    members_[i].pid = -1;
  }
  std::string log(size_t i) const {
    std::ifstream file(dir_ + "/" + name(i) + ".log");
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  struct Member {
    int client = 0, peer = 0;
    pid_t pid = -1;
  };
  static std::string name(size_t i) { return "m" + std::to_string(i); }
  static std::string at(const std::string& scheme, int port) {
    return scheme + "://127.0.0.1:" + std::to_string(port);
  }
  void assign_ports() {
    for (Member& m : members_) {
      m.client = free_port();
      m.peer = free_port();
    }
  }

  const std::vector<std::string> more_;
  const std::string scheme_;
  std::string dir_;
  std::vector<Member> members_;
};

}  // namespace muster::standby
