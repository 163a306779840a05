#include "api/access/directory.hpp"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <atomic>
#include <future>
#include <unistd.h>

namespace muster::api {
namespace {

Account account(uint32_t uid, std::vector<std::string> groups) {
  return {{uid, uid, "u" + std::to_string(uid)}, std::move(groups)};
}

TEST(Roles, UserHasHighestRoleOfItsGroups) {
  const RoleGroups groups{{"hpc"}, {"ops"}, {"wheel"}, {"prom"}};
  EXPECT_EQ(role_of(account(1001, {"hpc"}), groups, 500), Role::user);
  EXPECT_EQ(role_of(account(1001, {"hpc", "ops"}), groups, 500), Role::operators);
  EXPECT_EQ(role_of(account(1001, {"wheel", "ops"}), groups, 500), Role::admin);
  EXPECT_EQ(role_of(account(1001, {"prom"}), groups, 500), Role::metrics);
  EXPECT_EQ(role_of(account(1001, {"other"}), groups, 500), Role::none);
  EXPECT_EQ(role_of(account(1001, {}), groups, 500), Role::none);
  EXPECT_EQ(role_of(account(0, {}), groups, 500), Role::admin);
  EXPECT_EQ(role_of(account(500, {}), groups, 500), Role::admin);
  EXPECT_EQ(role_of(account(1001, {}), {{"*"}, {}, {}, {}}, 500), Role::user);
  // A star admits everyone as a user, never as more.
  EXPECT_EQ(role_of(account(1001, {}), {{"*"}, {"*"}, {"*"}, {}}, 500), Role::user);
}

TEST(Roles, UsersAreDistinguishedAsSoonAsAnyRoleIsGiven) {
  EXPECT_FALSE(RoleGroups{}.any());
  EXPECT_TRUE((RoleGroups{{"a"}, {}, {}, {}}).any());
  EXPECT_TRUE((RoleGroups{{}, {"a"}, {}, {}}).any());
  EXPECT_TRUE((RoleGroups{{}, {}, {"a"}, {}}).any());
  EXPECT_TRUE((RoleGroups{{}, {}, {}, {"a"}}).any());
}

TEST(Directory, ReadsTheUserDatabaseOfThisMachine) {
  const Account root = *read_account(0);
  EXPECT_EQ(root.who.name, "root");
  EXPECT_FALSE(root.groups.empty());
  const Account nobody_has_it = *read_account(4'000'000'123u);
  EXPECT_EQ(nobody_has_it.who.name, "4000000123");
  EXPECT_TRUE(nobody_has_it.groups.empty());
}

TEST(Directory, OtherGroupsHaveTheRolesAfterAChange) {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::promise<void> begun, changed;
  auto go_on = changed.get_future();
  std::atomic<int> reads{0};
  Directory directory({{"hpc"}, {}, {}, {}}, [&](uid_t uid) {
    if (++reads == 2) {  // the database answers after the change
      begun.set_value();
      go_on.wait();
    }
    return account(uid, {"hpc"});
  });
  EXPECT_EQ(directory.find(1001).wait(io.waitScope).role, Role::user);
  auto late = directory.find(1002);
  begun.get_future().wait();
  directory.change({{"bio"}, {}, {}, {}});
  changed.set_value();
  EXPECT_EQ(directory.find(1001).wait(io.waitScope).role, Role::none);
  EXPECT_EQ(late.wait(io.waitScope).role, Role::none);
  EXPECT_EQ(directory.find(1002).wait(io.waitScope).role, Role::none) << "not remembered as before";
}

TEST(Directory, LooksEachUserUpOnce) {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::atomic<int> reads{0};
  Directory directory({{"hpc"}, {}, {}, {}}, [&reads](uid_t uid) {
    ++reads;
    return account(uid, {"hpc"});
  });
  for (int i = 0; i < 3; ++i) {
    const Caller caller = directory.find(1001).wait(io.waitScope);
    EXPECT_EQ(caller.role, Role::user);
    EXPECT_EQ(caller.who.name, "u1001");
    EXPECT_TRUE(caller.distinguished);
  }
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(directory.find(1002).wait(io.waitScope).who.uid, 1002u);
  EXPECT_EQ(reads, 2);
}

TEST(Directory, FailedLookupIsReportedAndNotCached) {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::atomic<bool> down{true};
  Directory directory({{"*"}, {}, {}, {}}, [&down](uid_t uid) -> Result<Account> {
    if (down) return Error{Errc::unavailable, "connection refused", {}};
    return account(uid, {});
  });
  const bool failed = directory.find(1001)
                          .then([](Caller) { return false; },
                                [](kj::Exception&& failure) {
                                  return failure.getType() == kj::Exception::Type::OVERLOADED;
                                })
                          .wait(io.waitScope);
  EXPECT_TRUE(failed);
  down = false;  // the failure was not cached
  EXPECT_EQ(directory.find(1001).wait(io.waitScope).role, Role::user);
}

TEST(Directory, SlowLookupDoesNotBlockEventLoop) {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::promise<void> go;
  auto gone = go.get_future().share();
  Directory directory({{"*"}, {}, {}, {}}, [gone](uid_t uid) {
    gone.wait();
    return account(uid, {});
  });
  auto asked = directory.find(1001);
  EXPECT_FALSE(asked.poll(io.waitScope));
  go.set_value();
  EXPECT_EQ(asked.wait(io.waitScope).role, Role::user);
}

}  // namespace
}  // namespace muster::api
