// The keeper opens outputs for the agent.
#include "keeper/users/output_server.hpp"

#include "agent/run/output_client.hpp"
#include "base/fd.hpp"
#include "base/peer/unix_address.hpp"
#include "tests/unit/agent/temp_dir.hpp"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

class OutputServerTest : public ::testing::Test {
 protected:
  ~OutputServerTest() noexcept override = default;
  OutputServerTest() {
    std::filesystem::create_directories(temp_ / "work/keeper");
    std::filesystem::create_directories(temp_ / "work/logs/uid");
    work_dir_ = temp_ / "work";
    const std::string file = work_dir_ + "/logs/uid/pod.main.stdout";
    std::ofstream(file) << "text";
    chmod(file.c_str(), 0600);
    if (getuid() == 0) {
      EXPECT_EQ(chown(file.c_str(), 1001, 0), 0);
    }
    listen_fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const Fd dir(open((work_dir_ + "/keeper").c_str(), O_PATH | O_CLOEXEC));
    const auto address = unix_address(dir.get(), kOutputSocket);
    EXPECT_EQ(bind(listen_fd_, reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
    EXPECT_EQ(listen(listen_fd_, 100), 0);
  }
  // The server's thread lives until the process ends, and so must the objects that it uses.
  void serve() const {
    const auto* owners =
        new Owners({.agent_uid = getuid(),
                    .mark_gid = getuid() == 0 ? 0 : getgid(),
                    .uid_min = getuid() == 0 ? 1000 : getuid(),
                    .work_fd = open(work_dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)});
    serve_outputs(listen_fd_, *owners);
  }
  kj::Promise<kj::AutoCloseFd> ask(std::string pod, std::string job = "uid") {
    return agent::open_output(io_.unixEventPort, work_dir_,
                              {std::move(job), std::move(pod), "main"});
  }
  std::string refusal(kj::Promise<kj::AutoCloseFd> answer) {
    std::string why;
    answer
        .then([](kj::AutoCloseFd&&) {},
              [&why](kj::Exception&& e) { why = e.getDescription().cStr(); })
        .wait(io_.waitScope);
    return why;
  }

  agent::TempDir temp_;
  std::string work_dir_;
  int listen_fd_ = -1;
  kj::AsyncIoContext io_ = kj::setupAsyncIo();
};

TEST_F(OutputServerTest, PassesDescriptors) {
  serve();
  std::vector<kj::Promise<kj::AutoCloseFd>> many;
  for (int i = 0; i < 50; ++i) many.push_back(ask("pod"));
  for (auto& one : many) {
    const kj::AutoCloseFd fd = one.wait(io_.waitScope);
    char text[8] = {};
    EXPECT_EQ(pread(fd, text, sizeof text, 0), 4);
    EXPECT_STREQ(text, "text");
    EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
  }
  EXPECT_LT(ask("other").wait(io_.waitScope).get(), 0) << "there is none";
  EXPECT_NE(refusal(ask("pod", "..")).find("not the name of an output"), std::string::npos);
  EXPECT_NE(refusal(ask(std::string(5000, 'x'))), "") << "longer than a request may be";
  EXPECT_GE(ask("pod").wait(io_.waitScope).get(), 0) << "it still serves";
}

TEST_F(OutputServerTest, SilentClientDoesNotBlockOthers) {
  serve();
  const kj::AutoCloseFd silent(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const Fd dir(open((work_dir_ + "/keeper").c_str(), O_PATH | O_CLOEXEC));
  const auto address = unix_address(dir.get(), kOutputSocket);
  ASSERT_EQ(connect(silent, reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
  EXPECT_GE(ask("pod").wait(io_.waitScope).get(), 0);
}

TEST_F(OutputServerTest, AgentTimesOutOnUnresponsiveKeeper) {
  EXPECT_NE(refusal(ask("pod")).find("timed out"), std::string::npos) << "nobody answers";
  close(listen_fd_);
  EXPECT_NE(refusal(ask("pod")).find("Connection refused"), std::string::npos);
  std::filesystem::remove_all(work_dir_ + "/keeper");
  EXPECT_NE(refusal(ask("pod")).find("log socket is unavailable"), std::string::npos);
}

}  // namespace
}  // namespace muster::keeper
