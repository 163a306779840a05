// The store in real etcd servers.
#include "standby/store/etcd.hpp"

#include "etcd_cluster.hpp"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <optional>
#include <utility>

namespace muster::standby {
namespace {

constexpr Millis kPatience = 30'000;  // for what takes milliseconds, on a machine under load

class EtcdTest : public testing::Test {
 protected:
  ~EtcdTest() noexcept override = default;

  void start(size_t members) {
    cluster_.emplace(members);
    cluster_->start_all();
    if (HasFatalFailure()) return;
    open(cluster_->urls());
    await_answers();
  }
  void open(std::vector<std::string> urls, Millis timeout_ms = 1000) {
    EtcdOptions options;
    options.urls = std::move(urls);
    options.timeout_ms = timeout_ms;
    store_ = opened(std::move(options));
  }
  kj::Own<Store> opened(EtcdOptions options) {
    auto made =
        etcd_store(io_.provider->getNetwork(), io_.provider->getTimer(), std::move(options));
    EXPECT_TRUE(made.ok()) << made.error().message;
    return kj::mv(*made);
  }
  // Until all members have started and elected a leader.
  void await_answers() {
    const Millis end = boot_now() + kPatience;
    for (;;) {
      auto seen = wait(store_->read());
      if (seen) return;
      if (cluster_->has_failed()) {
        cluster_->start_again_elsewhere();
        open(cluster_->urls());
      }
      ASSERT_LT(boot_now(), end) << seen.error().message << "\n" << cluster_->log(0);
      io_.provider->getTimer().afterDelay(20 * kj::MILLISECONDS).wait(io_.waitScope);
    }
  }
  template <class T>
  T wait(kj::Promise<T> promise) {
    return promise.wait(io_.waitScope);
  }
  StoreSeen read() {
    auto seen = wait(store_->read());
    EXPECT_TRUE(seen.ok()) << seen.error().message;
    return seen ? *seen : StoreSeen{};
  }
  StoreChanged change(StoreChange change) {
    auto changed = wait(store_->change(std::move(change)));
    EXPECT_TRUE(changed.ok()) << changed.error().message;
    return changed ? *changed : StoreChanged{};
  }
  uint64_t grant(Millis life_ms) {
    auto lease = wait(store_->grant(life_ms));
    EXPECT_TRUE(lease.ok()) << lease.error().message;
    return lease ? *lease : 0;
  }

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  std::optional<EtcdCluster> cluster_;
  kj::Own<Store> store_;
};

StoreChange taking(const StoreSeen& seen, std::string configuration, std::string member,
                   uint64_t lease) {
  return {seen.configuration ? seen.configuration->revision : 0,
          seen.leader ? seen.leader->created : 0, std::move(configuration),
          StoreChange::Key{std::move(member), lease}};
}

TEST_F(EtcdTest, ChangesAreMadeWhereTheirGuardsHold) {
  start(1);
  ASSERT_NE(store_.get(), nullptr);
  EXPECT_EQ(read(), StoreSeen{});

  const std::string binary("\0\xff{}\n", 5);
  const uint64_t lease = grant(10'000);
  const StoreChanged first = change(taking({}, binary, "a", lease));
  EXPECT_TRUE(first.applied);
  ASSERT_TRUE(first.now.configuration && first.now.leader);
  EXPECT_EQ(first.now.configuration->value, binary);
  EXPECT_EQ(first.now.configuration->lease, 0u);
  EXPECT_EQ(first.now.leader->value, "a");
  EXPECT_EQ(first.now.leader->lease, lease);
  EXPECT_EQ(first.now.leader->created, first.now.leader->revision);
  EXPECT_EQ(read(), first.now);

  // Another member that has seen nothing yet.
  const StoreChanged second = change(taking({}, "2", "b", lease));
  EXPECT_FALSE(second.applied);
  EXPECT_EQ(second.now, first.now);

  // Each guard alone.
  StoreChange old{first.now.configuration->revision, first.now.leader->created + 1, "3"};
  EXPECT_FALSE(change(old).applied);
  old = {first.now.configuration->revision - 1, first.now.leader->created, "3"};
  EXPECT_FALSE(change(old).applied);
  EXPECT_EQ(read(), first.now);

  // The value of a key changes; its creation does not.
  const StoreChanged third =
      change({first.now.configuration->revision, first.now.leader->created, "3"});
  EXPECT_TRUE(third.applied);
  EXPECT_EQ(third.now.configuration->created, first.now.configuration->created);
  EXPECT_GT(third.now.configuration->revision, first.now.configuration->revision);
  EXPECT_EQ(third.now.leader, first.now.leader);

  StoreChange leaves{third.now.configuration->revision, third.now.leader->created};
  leaves.resigns = true;
  const StoreChanged fourth = change(leaves);
  EXPECT_TRUE(fourth.applied);
  EXPECT_FALSE(fourth.now.leader);
  EXPECT_EQ(fourth.now.configuration, third.now.configuration);
}

TEST_F(EtcdTest, LeaseEndsWithItsKeyUnlessItIsRenewed) {
  start(1);
  ASSERT_NE(store_.get(), nullptr);
  const uint64_t kept = grant(1000), other = grant(60'000);
  EXPECT_TRUE(change(taking({}, "c", "a", kept)).applied);
  // Renewed for three times as long as it lasts.
  const Millis end = boot_now() + 6'000;
  while (boot_now() < end) {
    auto renewed = wait(store_->renew(kept));
    ASSERT_TRUE(renewed.ok()) << renewed.error().message;
    ASSERT_TRUE(*renewed);
    io_.provider->getTimer().afterDelay(50 * kj::MILLISECONDS).wait(io_.waitScope);
  }
  EXPECT_TRUE(read().leader);
  const Millis patience = boot_now() + kPatience;
  while (read().leader) ASSERT_LT(boot_now(), patience);
  auto renewed = wait(store_->renew(kept));
  ASSERT_TRUE(renewed.ok()) << renewed.error().message;
  EXPECT_FALSE(*renewed);
  EXPECT_TRUE(read().configuration);

  // A key can't be put under it any more.
  auto late = wait(store_->change(taking(read(), "d", "a", kept)));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Errc::not_found);
  EXPECT_EQ(read().configuration->value, "c");

  EXPECT_TRUE(change(taking(read(), "d", "b", other)).applied);
  EXPECT_TRUE(wait(store_->revoke(other)).ok());
  EXPECT_FALSE(read().leader);
  EXPECT_TRUE(wait(store_->revoke(other)).ok());
}

}  // namespace
}  // namespace muster::standby
