#include "agent/run/output_client.hpp"

#include "base/peer/unix_address.hpp"
#include "keeper/protocol.hpp"

#include <kj/debug.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::agent {
namespace {

constexpr kj::Duration kPatience = 3 * kj::SECONDS;

kj::Exception no_keeper(const char* what) {
  return KJ_EXCEPTION(OVERLOADED, "the keeper's log socket is unavailable", what,
                      std::strerror(errno));
}

kj::AutoCloseFd receive(int from) {
  std::array<char, keeper::kOutputPacketMax> bytes;
  iovec part = {bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
  kj::AutoCloseFd file;
  const cmsghdr* head = size < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
    file = kj::AutoCloseFd(fd);
  }
  if (size < 0) kj::throwFatalException(no_keeper("recv"));
  Reader in({bytes.data(), static_cast<size_t>(size)});
  const std::string_view error = in.text();
  KJ_REQUIRE(in.ok() && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0,
             "the keeper's answer is malformed, or no descriptor is left");
  KJ_REQUIRE(error.empty(), "the keeper refused to open the log", error.data());
  return file;
}

}  // namespace

kj::Promise<kj::AutoCloseFd> open_output(kj::UnixEventPort& port, const std::string& work_dir,
                                         const LogName& name) {
  const kj::AutoCloseFd dir(
      ::open((work_dir + "/keeper").c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  kj::AutoCloseFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto address = unix_address(dir, keeper::kOutputSocket);
  if (dir.get() < 0 || fd.get() < 0 || !address ||
      connect(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) < 0)
    return no_keeper("connect");
  std::string request;
  Writer writer(request);
  keeper::OutputName{name.job_uid, name.pod_name, name.container, name.err}.write(writer);
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) return no_keeper("send");
  auto observer = kj::heap<kj::UnixEventPort::FdObserver>(
      port, fd, kj::UnixEventPort::FdObserver::OBSERVE_READ);
  auto answered = observer->whenBecomesReadable();
  return port.getTimer()
      .timeoutAfter(kPatience, kj::mv(answered))
      .then([from = fd.get()] { return receive(from); })
      .attach(kj::mv(observer))  // destroyed before what it observes
      .attach(kj::mv(fd));
}

}  // namespace muster::agent
