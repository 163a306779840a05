#include "coordinator/desks/mail_desk.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <sys/stat.h>

namespace muster::coordinator {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class MailDeskTest : public testing::Test {
 protected:
  MailDeskTest() {
    std::string pattern = (fs::temp_directory_path() / "muster-mail-XXXXXX").string();
    dir_ = mkdtemp(pattern.data());
  }
  ~MailDeskTest() override { fs::remove_all(dir_); }

  std::string program(const std::string& script) {
    const fs::path path = dir_ / "sendmail";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    chmod(path.c_str(), 0755);
    return path;
  }
  static Status send(MailDesk& desk, std::vector<std::string> to, std::string message) {
    std::promise<Status> told;
    desk.send(std::move(to), std::move(message), [&told](Status s) { told.set_value(s); });
    return told.get_future().get();
  }
  std::string file(const char* name) {
    std::ostringstream text;
    text << std::ifstream(dir_ / name).rdbuf();
    return text.str();
  }
  fs::path dir_;
};

TEST_F(MailDeskTest, AddressesAreArgumentsAndTheMessageIsTheInput) {
  const std::string d = dir_;
  MailDesk desk(program("printf '%s\\n' \"$@\" >" + d + "/args; cat >" + d + "/in"));
  EXPECT_TRUE(send(desk, {"ada@example.org", "bob"}, "To: x\n\n.\ntext\n").ok());
  EXPECT_EQ(file("args"), "-i\n--\nada@example.org\nbob\n");
  EXPECT_EQ(file("in"), "To: x\n\n.\ntext\n");
}

TEST_F(MailDeskTest, AFailureSaysWhatTheProgramSaid) {
  MailDesk desk(program("echo 'no route to mail' >&2; echo more; exit 75"));
  const Status sent = send(desk, {"ada"}, "text");
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(sent.error().message, HasSubstr("sendmail exited with 75: no route to mail"));
  MailDesk missing("/nowhere/sendmail");
  EXPECT_THAT(send(missing, {"ada"}, "text").error().message, StartsWith("/nowhere/sendmail: "));
}

TEST_F(MailDeskTest, AProgramThatHangsIsKilledAndTheNextMessageSent) {
  const std::string d = dir_;
  MailDesk desk(program("[ -e " + d + "/once ] && exit 0; touch " + d + "/once; sleep 1000"), 300);
  EXPECT_THAT(send(desk, {"ada"}, "text").error().message, HasSubstr("took longer than"));
  EXPECT_TRUE(send(desk, {"ada"}, "text").ok());
}

}  // namespace
}  // namespace muster::coordinator
