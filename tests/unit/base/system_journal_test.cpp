#include "base/system_journal.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <sys/socket.h>
#include <sys/un.h>

namespace muster {
namespace {

using std::string_literals::operator""s;

// Listens in place of journald.
class SystemJournalTest : public ::testing::Test {
 protected:
  SystemJournalTest() {
    char pattern[] = "/tmp/muster-journal-XXXXXX";
    dir_ = mkdtemp(pattern);
    path_ = dir_ + "/socket";
    listen();
  }
  ~SystemJournalTest() override { std::filesystem::remove_all(dir_); }

  void listen() {
    std::filesystem::remove(path_);
    socket_ = Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  // The next entry, or "" if there is none.
  std::string received() const {
    char bytes[65536];
    const ssize_t size = recv(socket_.get(), bytes, sizeof bytes, 0);
    return {bytes, static_cast<size_t>(size < 0 ? 0 : size)};
  }

  std::string dir_, path_;
  Fd socket_;
};

TEST(JournalBytesTest, AValueCannotAddFields) {
  EXPECT_EQ(journal_bytes({{"MESSAGE", "a=b"}, {"PRIORITY", "6"}}), "MESSAGE=a=b\nPRIORITY=6\n");
  EXPECT_EQ(journal_bytes({{"A", "x\nPRIORITY=0"}, {"B", ""}}),
            "A\n\x0c\0\0\0\0\0\0\0x\nPRIORITY=0\nB=\n"s);
  const std::string much = std::string(258, 'x') + "\n";
  EXPECT_EQ(journal_bytes({{"A", much}}), "A\n\x03\x01\0\0\0\0\0\0"s + much + "\n");
}

TEST_F(SystemJournalTest, EntriesArriveAsTheyAre) {
  const auto journal = SystemJournal::open("muster-audit", path_);
  ASSERT_TRUE(journal.ok()) << journal.error().message;
  (*journal)->send({{"MESSAGE", "one"}});
  (*journal)->send({{"MESSAGE", "two"}});
  EXPECT_EQ(received(), "SYSLOG_IDENTIFIER=muster-audit\nMESSAGE=one\n");
  EXPECT_EQ(received(), "SYSLOG_IDENTIFIER=muster-audit\nMESSAGE=two\n");
  EXPECT_EQ(received(), "");
}

TEST_F(SystemJournalTest, OpenFailsWithoutListener) {
  const auto nothing = SystemJournal::open("x", dir_ + "/none");
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().message, dir_ + "/none: No such file or directory");
  socket_ = Fd();
  EXPECT_EQ(SystemJournal::open("x", path_).error().message, path_ + ": Connection refused");
}

TEST_F(SystemJournalTest, SendNeverBlocksAndReportsDroppedEntries) {
  const auto journal = SystemJournal::open("x", path_);
  ASSERT_TRUE(journal.ok());
  int sent = 0;
  while ((*journal)->dropped() == 0 && sent < 100'000)
    (*journal)->send({{"MESSAGE", std::to_string(sent++)}});
  ASSERT_EQ((*journal)->dropped(), 1u) << "the socket of this machine takes everything";
  (*journal)->send({{"MESSAGE", "lost as well"}});
  EXPECT_EQ((*journal)->dropped(), 2u);
  int got = 0;
  while (!received().empty()) ++got;
  EXPECT_EQ(got, sent - 1);
  (*journal)->send({{"MESSAGE", "after"}});
  EXPECT_EQ(received(),
            "SYSLOG_IDENTIFIER=x\nMESSAGE={\"dropped\":2}\nPRIORITY=4\nMUSTER_DROPPED=2\n");
  EXPECT_EQ(received(), "SYSLOG_IDENTIFIER=x\nMESSAGE=after\n");
  EXPECT_EQ((*journal)->dropped(), 0u);
}

TEST_F(SystemJournalTest, ARestartedJournalIsFoundAgain) {
  const auto journal = SystemJournal::open("x", path_);
  ASSERT_TRUE(journal.ok());
  socket_ = Fd();
  (*journal)->send({{"MESSAGE", "lost"}});
  EXPECT_EQ((*journal)->dropped(), 1u);
  listen();
  (*journal)->send({{"MESSAGE", "found"}});
  EXPECT_NE(received().find("MUSTER_DROPPED=1"), std::string::npos);
  EXPECT_EQ(received(), "SYSLOG_IDENTIFIER=x\nMESSAGE=found\n");
}

}  // namespace
}  // namespace muster
