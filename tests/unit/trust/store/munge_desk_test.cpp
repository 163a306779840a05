// MungeDesk: which credentials are accepted, and who waits when the daemon does not answer.
#include "trust/store/munge_desk.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <vector>

namespace muster::coordinator {
namespace {

constexpr Millis kNow = 1'800'000'000'000;
const std::string kCluster = "00112233445566aa";

// The tests' daemon: a credential is its own payload, from user 1000.
Result<munge::Decoded> plain(const std::string& credential) {
  if (credential == "gone") return Error{Errc::unavailable, "no such socket", {}};
  if (credential == "forged") return invalid("Invalid credential");
  return munge::Decoded{1000, credential, kNow, 300'000};
}

Result<uid_t> judged(MungeDesk& desk, const std::string& credential) {
  std::promise<Result<uid_t>> said;
  desk.judge(credential, "host", [&said](Result<uid_t> uid) { said.set_value(std::move(uid)); });
  return said.get_future().get();
}

std::string claim(const MungeDesk& desk, char nonce = '0') {
  return munge::Claim{*desk.audience(), std::string(munge::kNonceDigits, nonce)}.text();
}

struct Open : MungeDesk {
  explicit Open(Decode decode = plain) : MungeDesk(std::move(decode), [] { return kNow; }) {
    open(kCluster);
  }
};

TEST(MungeDesk, AcceptsACredentialOnce) {
  Open desk;
  const std::string text = claim(desk);
  EXPECT_EQ(*judged(desk, text), 1000u);
  EXPECT_EQ(judged(desk, text).error().message, "it was used before");
  EXPECT_EQ(*judged(desk, claim(desk, '1')), 1000u);
}

TEST(MungeDesk, RefusalNamesReason) {
  Open desk;
  const munge::Audience here = *desk.audience();
  const std::string nonce(munge::kNonceDigits, '0');
  for (const auto& [text, why] : {
           std::pair<std::string, std::string>("forged", "Invalid credential"),
           {"", "its payload is not a muster claim"},
           {"muster", "its payload is not a muster claim"},
           {munge::Claim{{"ff", here.start}, nonce}.text(), "it was made for cluster ff"},
           {munge::Claim{{kCluster, "ff"}, nonce}.text(),
            "it was made for another run of this coordinator"},
       }) {
    const auto uid = judged(desk, text);
    ASSERT_FALSE(uid.ok()) << text;
    EXPECT_EQ(uid.error().code, Errc::invalid) << text;
    EXPECT_EQ(uid.error().message, why) << text;
  }
  EXPECT_EQ(judged(desk, "gone").error().code, Errc::unavailable);
}

TEST(MungeDesk, RefusesCredentialValidForMoreThanAnHour) {
  Open desk([](const std::string& credential) -> Result<munge::Decoded> {
    return munge::Decoded{1000, credential, kNow, MungeDesk::kLifeMaxMs + 1'000};
  });
  EXPECT_EQ(judged(desk, claim(desk)).error().message, "it is valid for more than an hour");
}

TEST(MungeDesk, EachRunIsAnAudienceOfItsOwn) {
  Open one, other;
  EXPECT_EQ(one.audience()->cluster, other.audience()->cluster);
  EXPECT_NE(one.audience()->start, other.audience()->start);
  EXPECT_FALSE(judged(other, claim(one)).ok());
}

TEST(MungeDesk, BeforeItIsOpenNothingIsAccepted) {
  MungeDesk desk(plain);
  EXPECT_FALSE(desk.audience());
  EXPECT_EQ(judged(desk, "any").error().code, Errc::overloaded);
}

// A daemon that does not answer until it is released.
class MungeDeskStuck : public testing::Test {
 protected:
  ~MungeDeskStuck() override { release(); }
  void release() {
    if (!released_.exchange(true)) go_.set_value();
  }
  MungeDesk::Decode decode() {
    return [this, wait = go_.get_future().share()](const std::string& credential) {
      ++begun_;
      begun_.notify_all();
      wait.wait();
      return plain(credential);
    };
  }
  void begun() { begun_.wait(0); }

  std::atomic<int> begun_{0};

 private:
  std::promise<void> go_;
  std::atomic<bool> released_{false};
};

TEST_F(MungeDeskStuck, WaitingIsBoundedInTotalAndPerPeer) {
  std::atomic<Millis> now = 0;
  std::atomic<int> refused = 0;
  std::promise<Result<uid_t>> last;
  MungeDesk desk(decode(), wall_now, [&now] { return now.load(); });
  desk.open(kCluster);
  const auto count = [&refused](const Result<uid_t>& uid) {
    refused += !uid.ok() && uid.error().code == Errc::overloaded;
  };
  desk.judge("first", "a", count);
  begun();
  for (size_t i = 0; i < MungeDesk::kWaitingOfOneMax + 2; ++i) desk.judge("x", "a", count);
  EXPECT_EQ(refused, 2) << "of one address";
  for (size_t host = 0; host < MungeDesk::kWaitingMax; ++host)
    desk.judge("x", "b" + std::to_string(host), count);
  EXPECT_EQ(refused, 2 + static_cast<int>(MungeDesk::kWaitingOfOneMax)) << "in all";
  // Callers that have given up make room, and their credentials are no longer decoded.
  now = MungeDesk::kPatienceMs + 1;
  desk.judge(claim(desk), "a", [&last](Result<uid_t> uid) { last.set_value(std::move(uid)); });
  release();
  EXPECT_EQ(*last.get_future().get(), 1000u);
  EXPECT_EQ(begun_, 2);
}

TEST_F(MungeDeskStuck, ADeskThatIsClosedDoesNotWaitForTheDaemon) {
  auto judged = std::make_shared<std::atomic<int>>(0);
  {
    MungeDesk desk(decode());
    desk.open(kCluster);
    desk.judge("x", "a", [judged](const Result<uid_t>&) { ++*judged; });
    begun();
    desk.judge("y", "a", [judged](const Result<uid_t>&) { ++*judged; });
  }
  release();
  // The desk's thread drops what is waiting, unused.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (judged.use_count() > 1 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(judged.use_count(), 1);
  EXPECT_EQ(*judged, 0);
}

}  // namespace
}  // namespace muster::coordinator
