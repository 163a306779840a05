#include "api/access/directory.hpp"

#include <kj/debug.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <grp.h>
#include <memory>
#include <pwd.h>
#include <unistd.h>
#include <utility>

namespace muster::api {
namespace {

constexpr auto kRemembered = std::chrono::minutes(1);
constexpr size_t kKnownMax = 10'000;

// Calls get(bytes, size) with growing buffers while it returns ERANGE, up to 16 MiB.
template <class Get>
int with_room(std::vector<char>& buffer, Get&& get) {
  for (size_t size = 4096;; size *= 2) {
    buffer.resize(size);
    const int error = get(buffer.data(), size);
    if (error != ERANGE || size >= (16u << 20)) return error;
  }
}

// Some databases return ENOENT or the like for an unknown user or group (getpwnam(3)).
bool is_absence(int error) {
  return error == 0 || error == ENOENT || error == ESRCH || error == EPERM;
}

std::string group_name(gid_t gid) {
  std::vector<char> buffer;
  group entry = {};
  group* found = nullptr;
  const int error = with_room(buffer, [&](char* bytes, size_t size) {
    return getgrgid_r(gid, &entry, bytes, size, &found);
  });
  return error == 0 && found ? found->gr_name : std::to_string(gid);
}

std::vector<gid_t> groups_of(const char* user, gid_t primary) {
  std::vector<gid_t> gids(64);
  int count = static_cast<int>(gids.size());
  while (getgrouplist(user, primary, gids.data(), &count) < 0 && gids.size() < (1u << 16)) {
    gids.resize(std::max(gids.size() * 2, static_cast<size_t>(count)));
    count = static_cast<int>(gids.size());
  }
  gids.resize(std::min(gids.size(), static_cast<size_t>(std::max(count, 0))));
  return gids;
}

bool shares(const std::vector<std::string>& some, const std::vector<std::string>& others) {
  return std::any_of(some.begin(), some.end(), [&others](const std::string& one) {
    return std::find(others.begin(), others.end(), one) != others.end();
  });
}

// `get`: finds the entry of a name in a database of these.
template <class Entry, class Get>
Result<uint32_t> id_of(const char* what, const std::string& name, Get get, uint32_t Entry::*id) {
  std::vector<char> buffer;
  Entry entry = {};
  Entry* found = nullptr;
  const int error = with_room(buffer, [&](char* bytes, size_t size) {
    return get(name.c_str(), &entry, bytes, size, &found);
  });
  if (found) return found->*id;
  if (!is_absence(error)) return Error{Errc::unavailable, strerror(error), {}};
  return Error{Errc::not_found, std::string("unknown ") + what + " " + name, {}};
}

}  // namespace

Result<Account> read_account(uid_t uid) {
  std::vector<char> buffer;
  passwd entry = {};
  passwd* found = nullptr;
  const int error = with_room(buffer, [&](char* bytes, size_t size) {
    return getpwuid_r(uid, &entry, bytes, size, &found);
  });
  Account account;
  account.who = {uid, uid, std::to_string(uid), {}, ""};
  if (!found && !is_absence(error)) return Error{Errc::unavailable, strerror(error), {}};
  if (!found) return account;
  account.who.gid = found->pw_gid;
  account.who.name = found->pw_name;
  account.who.home = found->pw_dir;
  for (const gid_t gid : groups_of(found->pw_name, found->pw_gid)) {
    account.who.groups.push_back(gid);
    account.groups.push_back(group_name(gid));
  }
  return account;
}

Result<uid_t> read_uid(const std::string& name) {
  return id_of("user", name, getpwnam_r, &passwd::pw_uid);
}

Result<gid_t> read_gid(const std::string& name) {
  return id_of("group", name, getgrnam_r, &group::gr_gid);
}

Role role_of(const Account& account, const RoleGroups& groups, uid_t own_uid) {
  if (account.who.uid == 0 || account.who.uid == own_uid) return Role::admin;
  if (shares(account.groups, groups.admins)) return Role::admin;
  if (shares(account.groups, groups.operators)) return Role::operators;
  const bool everyone =
      std::find(groups.users.begin(), groups.users.end(), "*") != groups.users.end();
  if (everyone || shares(account.groups, groups.users)) return Role::user;
  if (shares(account.groups, groups.metrics)) return Role::metrics;
  return Role::none;
}

Directory::Directory(RoleGroups groups, Read read, ReadName read_name, ReadName read_group)
    : read_(std::move(read)),
      read_name_(std::move(read_name)),
      read_group_(std::move(read_group)),
      groups_(std::move(groups)) {}

void Directory::change(RoleGroups groups) {
  const std::lock_guard lock(mutex_);
  groups_ = std::move(groups);
  known_.clear();
}

Directory::~Directory() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    asked_.clear();
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::optional<Caller> Directory::known(uid_t uid) {
  const auto it = known_.find(uid);
  if (it == known_.end() || it->second.until < Clock::now()) return std::nullopt;
  return it->second.caller;
}

void Directory::ask(std::function<void(std::unique_lock<std::mutex>&)> question) {
  asked_.push_back(std::move(question));
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  wake_.notify_one();
}

kj::Promise<Caller> Directory::find(uid_t uid) {
  const std::lock_guard lock(mutex_);
  if (auto caller = known(uid)) return std::move(*caller);
  auto paf = kj::newPromiseAndCrossThreadFulfiller<Caller>();
  auto answer =
      std::make_shared<kj::Own<kj::CrossThreadPromiseFulfiller<Caller>>>(kj::mv(paf.fulfiller));
  ask([this, uid, answer](std::unique_lock<std::mutex>& held) {
    std::optional<Caller> caller = known(uid);
    if (!caller) {
      held.unlock();
      auto account = read_(uid);
      held.lock();
      if (!account.ok())
        return (*answer)->reject(KJ_EXCEPTION(OVERLOADED, "the user database cannot be read"));
      const Role role = role_of(*account, groups_, geteuid());  // which may have changed meanwhile
      caller = Caller{role, std::move(account->who), std::move(account->groups), true};
      if (known_.size() >= kKnownMax) known_.clear();
      known_[uid] = {*caller, Clock::now() + kRemembered};
    }
    (*answer)->fulfill(std::move(*caller));
  });
  return kj::mv(paf.promise);
}

kj::Promise<Result<uid_t>> Directory::find_name(std::string name) {
  return find_id(read_name_, std::move(name));
}

kj::Promise<Result<gid_t>> Directory::find_group(std::string name) {
  return find_id(read_group_, std::move(name));
}

kj::Promise<Result<uint32_t>> Directory::find_id(const ReadName& read, std::string name) {
  const std::lock_guard lock(mutex_);
  auto paf = kj::newPromiseAndCrossThreadFulfiller<Result<uid_t>>();
  auto answer = std::make_shared<kj::Own<kj::CrossThreadPromiseFulfiller<Result<uid_t>>>>(
      kj::mv(paf.fulfiller));
  ask([&read, name = std::move(name), answer](std::unique_lock<std::mutex>& held) {
    held.unlock();
    auto found = read(name);
    held.lock();
    (*answer)->fulfill(std::move(found));
  });
  return kj::mv(paf.promise);
}

void Directory::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !asked_.empty(); });
    if (stopping_) return;
    const auto question = std::move(asked_.front());
    asked_.pop_front();
    question(lock);
  }
}

}  // namespace muster::api
