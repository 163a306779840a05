#include "api/http/unix_port.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace muster::api {
namespace {

class UnixPort : public ::testing::Test {
 protected:
  UnixPort() {
    char pattern[] = "/tmp/muster-port-XXXXXX";
    dir_ = mkdtemp(pattern);
  }
  ~UnixPort() override { std::filesystem::remove_all(dir_); }

  static bool connects(const std::string& path) {
    const Fd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  std::string dir_;
};

TEST_F(UnixPort, ListensWithTheModeAskedFor) {
  const std::string path = dir_ + "/api.sock";
  const mode_t before = umask(077);
  const auto port = listen_unix(path, 0666);
  umask(before);
  ASSERT_TRUE(port.ok()) << port.error().message;
  struct stat found = {};
  ASSERT_EQ(stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0666u);
  EXPECT_TRUE(connects(path));
}

TEST_F(UnixPort, ReplacesSocketLeftByCrash) {
  const std::string path = dir_ + "/api.sock";
  {
    const auto port = listen_unix(path, 0600);
    ASSERT_TRUE(port.ok());
  }
  ASSERT_TRUE(std::filesystem::exists(path));  // closing does not remove it
  EXPECT_FALSE(connects(path));
  const auto again = listen_unix(path, 0600);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(connects(path));
}

TEST_F(UnixPort, RefusesSocketOnWhichAnotherProcessListens) {
  const std::string path = dir_ + "/api.sock";
  const auto first = listen_unix(path, 0600);
  ASSERT_TRUE(first.ok());
  const auto second = listen_unix(path, 0600);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message, path + ": another process listens on it");
  EXPECT_TRUE(connects(path));
}

TEST_F(UnixPort, RefusesAndKeepsAnyOtherFile) {
  const std::string path = dir_ + "/api.sock";
  std::ofstream(path) << "precious";
  const auto port = listen_unix(path, 0600);
  ASSERT_FALSE(port.ok());
  EXPECT_EQ(port.error().message, path + ": exists and is not a socket");
  std::filesystem::remove(path);
  std::ofstream(dir_ + "/precious") << "precious";
  std::filesystem::create_symlink(dir_ + "/precious", path);
  EXPECT_FALSE(listen_unix(path, 0600).ok());
  EXPECT_TRUE(std::filesystem::exists(dir_ + "/precious"));
  EXPECT_FALSE(listen_unix(dir_ + "/", 0600).ok());
  EXPECT_FALSE(listen_unix(dir_ + "/no/api.sock", 0600).ok());
}

TEST_F(UnixPort, PathsMayBeLongerThanAnAddress) {
  const std::string folder = dir_ + "/" + std::string(120, 'd');
  std::filesystem::create_directory(folder);
  const auto port = listen_unix(folder + "/api.sock", 0600);
  EXPECT_TRUE(port.ok()) << port.error().message;
  EXPECT_FALSE(listen_unix(dir_ + "/" + std::string(100, 's'), 0600).ok());
}

}  // namespace
}  // namespace muster::api
