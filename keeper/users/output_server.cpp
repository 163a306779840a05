#include "keeper/users/output_server.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr timeval kAgentPatience = {1, 0};  // with a connected client's request
constexpr timespec kAcceptPause = {0, 100'000'000};

bool calls_as_agent(int peer_fd, const Owners& owners) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(peer_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == owners.agent_uid() || peer.uid == 0);
}

// `file_fd` -1: no descriptor is passed.
void pass_file(int peer_fd, const std::string& error, int file_fd) {
  std::string packet;
  Writer(packet).text(error);
  iovec part = {packet.data(), packet.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file_fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof file_fd);
    std::memcpy(CMSG_DATA(head), &file_fd, sizeof file_fd);
  }
  sendmsg(peer_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void serve(int peer_fd, const Owners& owners) {
  setsockopt(peer_fd, SOL_SOCKET, SO_RCVTIMEO, &kAgentPatience, sizeof kAgentPatience);
  std::array<char, kOutputPacketMax> bytes;
  const ssize_t size = recv(peer_fd, bytes.data(), bytes.size(), 0);
  if (size <= 0) return;
  Reader in({bytes.data(), static_cast<size_t>(size)});
  const OutputName name = OutputName::read(in);
  if (!in.ok()) return pass_file(peer_fd, "the request is malformed", -1);
  const Result<int> opened = owners.read_output(name);
  if (!opened.ok()) return pass_file(peer_fd, opened.error().message, -1);
  pass_file(peer_fd, "", *opened);
  if (*opened >= 0) close(*opened);
}

}  // namespace

void serve_outputs(int listen_fd, const Owners& owners) {
  std::thread([listen_fd, &owners] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    prctl(PR_SET_NAME, "outputs");
    while (true) {
      const int peer_fd = accept4(listen_fd, nullptr, nullptr, SOCK_CLOEXEC);
      if (peer_fd < 0) {
        if (errno != EINTR && errno != ECONNABORTED) nanosleep(&kAcceptPause, nullptr);
        continue;
      }
      if (calls_as_agent(peer_fd, owners)) serve(peer_fd, owners);
      close(peer_fd);
    }
  }).detach();
}

}  // namespace muster::keeper
