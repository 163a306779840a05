// MungeLogin: when it logs in, and what it keeps.
#include "client/connect/munge_login.hpp"

#include "base/text/time_text.hpp"
#include "client/settings/files.hpp"
#include "client/terminal/json.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <sys/stat.h>
#include <vector>

namespace muster::cli {
namespace {

const std::string kAuthority = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";
constexpr Millis kLife = 3'600'000;

std::string bearer(char digit) {
  return std::string(16, digit) + "." + std::string(64, digit);
}

class MungeLoginTest : public testing::Test {
 protected:
  MungeLoginTest() {
    char name[] = "/tmp/muster-munge-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~MungeLoginTest() override { std::filesystem::remove_all(folder_); }

  // Answers like the coordinator: each log-in makes a new token.
  Result<Response> answer(const std::string* body) {
    asked_.push_back(body ? *body : "");
    if (down_) return Error{Errc::unavailable, "connection refused", {}};
    if (body == nullptr)
      return Response{enabled_ ? 200 : 401,
                      R"({"cluster":"0a","start":"0b","uid":997,"message":"a token is needed"})"};
    if (refusals_ > 0) return --refusals_, Response{401, R"({"message":"not accepted"})"};
    const Millis now = wall_now() + skew_;
    return Response{201, dumped(Json{{"text", bearer(next_++) + "\nits own certificate"
                                                                "-----BEGIN CERTIFICATE-----"},
                                     {"creationTimestamp", time_text(now)},
                                     {"expirationTimestamp", time_text(now + kLife)}})};
  }

  Result<UserToken> token(const std::string& refused = "",
                          const std::string& authority = kAuthority) {
    LogIn log_in;
    log_in.cache_folder = folder_ + "/cache";
    const MungeLogin login("https://head:7443", authority, log_in,
                           [this](uid_t reader, const std::string& payload) -> Result<std::string> {
                             reader_ = reader;
                             payloads_.push_back(payload);
                             if (!munge_) return Error{Errc::unavailable, "no socket", {}};
                             return std::string("MUNGE:x:");
                           });
    return login.token([this](const char*, const std::string* body) { return answer(body); },
                       refused);
  }

  std::string file() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/cache"))
      if (entry.path().extension() == ".json") return entry.path();
    return "";
  }
  // Makes this share of the token's life pass.
  void age(double share) {
    Json json = read_json(*read_file(file()));
    json["sinceMs"] = wall_now() - static_cast<Millis>(share * static_cast<double>(kLife));
    ASSERT_TRUE(write_file(file(), dumped(json)).ok());
  }

  std::string folder_;
  std::vector<std::string> asked_, payloads_;
  uid_t reader_ = 0;
  char next_ = '1';
  Millis skew_ = 0;
  int refusals_ = 0;
  bool down_ = false, enabled_ = true, munge_ = true;
};

TEST_F(MungeLoginTest, LogsInForTheCoordinatorAndKeepsTheToken) {
  const auto made = token();
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->bearer, bearer('1'));
  EXPECT_EQ(made->authority, kAuthority) << "the one that was verified, not one that was sent";
  EXPECT_EQ(reader_, 997u);
  EXPECT_TRUE(payloads_[0].starts_with("muster 0a 0b "));
  EXPECT_EQ(asked_, (std::vector<std::string>{"", R"({"credential":"MUNGE:x:"})"}));
  struct stat info = {};
  ASSERT_EQ(stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(token()->bearer, bearer('1'));
  EXPECT_EQ(token()->until, made->until);
  EXPECT_EQ(asked_.size(), 2u);
}

TEST_F(MungeLoginTest, ReplacesATokenAfterTwoThirdsOfItsLife) {
  skew_ = 7 * kLife;  // the clocks differ
  ASSERT_TRUE(token().ok());
  age(0.6);
  EXPECT_EQ(token()->bearer, bearer('1'));
  age(0.7);
  EXPECT_EQ(token()->bearer, bearer('2'));
  EXPECT_EQ(token()->bearer, bearer('2'));
  EXPECT_EQ(payloads_.size(), 2u);
  EXPECT_NE(payloads_[0], payloads_[1]) << "each has a nonce of its own";
}

TEST_F(MungeLoginTest, KeepsValidTokenWhileMungeFails) {
  ASSERT_TRUE(token().ok());
  munge_ = false;
  age(0.9);
  EXPECT_EQ(token()->bearer, bearer('1'));
  age(1.1);
  const auto none = token();
  ASSERT_FALSE(none.ok());
  EXPECT_TRUE(none.error().message.starts_with("cannot log in with munge: no socket;"));
  age(-0.1);
  EXPECT_FALSE(token().ok()) << "of the future";
}

TEST_F(MungeLoginTest, ReplacesRefusedToken) {
  ASSERT_TRUE(token().ok());
  EXPECT_EQ(token(bearer('1'))->bearer, bearer('2'));
  EXPECT_EQ(token(bearer('1'))->bearer, bearer('2')) << "another command has logged in";
  EXPECT_EQ(payloads_.size(), 2u);
  down_ = true;
  EXPECT_FALSE(token(bearer('2')).ok());
}

TEST_F(MungeLoginTest, CachesOneTokenPerAuthority) {
  ASSERT_TRUE(token().ok());
  EXPECT_EQ(token("", kAuthority + "\n")->bearer, bearer('2'));
  EXPECT_EQ(token()->bearer, bearer('1'));
}

TEST_F(MungeLoginTest, IgnoresCacheThatIsReadableByOthersOrDamaged) {
  ASSERT_TRUE(token().ok());
  chmod(file().c_str(), 0640);
  EXPECT_EQ(token()->bearer, bearer('2'));
  ASSERT_TRUE(write_file(file(), "{").ok());
  EXPECT_EQ(token()->bearer, bearer('3'));
  const std::string path = file();
  std::filesystem::rename(path, folder_ + "/other");
  std::filesystem::create_symlink(folder_ + "/other", path);
  EXPECT_EQ(token()->bearer, bearer('4'));
}

TEST_F(MungeLoginTest, RetriesOnceAfterRefusalByRestartedCoordinator) {
  refusals_ = 1;
  EXPECT_TRUE(token().ok());
  EXPECT_EQ(payloads_.size(), 2u);
  std::filesystem::remove_all(folder_ + "/cache");
  refusals_ = 9;
  const auto refused = token();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::invalid);
  EXPECT_NE(refused.error().message.find("not accepted; its log says why"), std::string::npos);
  EXPECT_EQ(refusals_, 7);
}

TEST_F(MungeLoginTest, ReportsCoordinatorWithoutMunge) {
  enabled_ = false;
  const auto none = token();
  ASSERT_FALSE(none.ok());
  EXPECT_TRUE(none.error().message.starts_with(
      "the coordinator at https://head:7443 does not accept munge logins"));
  EXPECT_TRUE(payloads_.empty());
}

TEST_F(MungeLoginTest, WithoutACacheItLogsInEachTime) {
  ASSERT_TRUE(write_file(folder_ + "/cache", "a file").ok());
  EXPECT_EQ(token()->bearer, bearer('1'));
  EXPECT_EQ(token()->bearer, bearer('2'));
}

}  // namespace
}  // namespace muster::cli
