// Directory: the users of this machine, by uid: names, groups, and the roles that the groups give.
//
// The system's user database may be remote and slow (LDAP, SSSD), so it is read on a separate
// thread and cached for a minute.
#pragma once

#include "api/access/caller.hpp"
#include "base/result.hpp"

#include <kj/async.h>
#include <kj/time.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

namespace muster::api {

// A user of this machine.
struct Account {
  core::Owner who;
  std::vector<std::string> groups;  // names, the primary group first
};

// Reads the system's user database; may block. A uid without an entry is named by its number.
// `unavailable` if the database cannot be read.
Result<Account> read_account(uid_t uid);

// The uid of the user with this name. `not_found`, or `unavailable` if the database cannot be read.
Result<uid_t> read_uid(const std::string& name);

// The gid of the group with this name; errors likewise.
Result<gid_t> read_gid(const std::string& name);

// The account's highest role.
Role role_of(const Account& account, const RoleGroups& groups, uid_t own_uid);

// How long a request waits for the database.
constexpr auto kAccountPatience = 5 * kj::SECONDS;

class Directory {
 public:
  using Read = std::function<Result<Account>(uid_t)>;
  using ReadName = std::function<Result<uid_t>(const std::string&)>;
  explicit Directory(RoleGroups groups, Read read = read_account, ReadName read_name = read_uid,
                     ReadName read_group = read_gid);
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  // From now on, these groups have the roles.
  void change(RoleGroups groups);

  // The caller with this uid, immediately if read within the last minute. Fails (OVERLOADED) if the
  // database cannot be read. Call it from a KJ event loop.
  kj::Promise<Caller> find(uid_t uid);
  // The uid of the user with this name; errors as in read_uid().
  kj::Promise<Result<uid_t>> find_name(std::string name);
  // The gid of the group with this name; likewise.
  kj::Promise<Result<gid_t>> find_group(std::string name);

 private:
  using Clock = std::chrono::steady_clock;
  struct Known {
    Caller caller;
    Clock::time_point until;
  };

  std::optional<Caller> known(uid_t uid);
  kj::Promise<Result<uint32_t>> find_id(const ReadName& read, std::string name);
  void ask(std::function<void(std::unique_lock<std::mutex>&)> question);
  void run();

  const Read read_;
  const ReadName read_name_, read_group_;
  std::mutex mutex_;  // guards everything below
  RoleGroups groups_;
  std::condition_variable wake_;
  std::map<uid_t, Known> known_;
  std::deque<std::function<void(std::unique_lock<std::mutex>&)>> asked_;  // run under the lock
  bool stopping_ = false;
  std::thread thread_;  // started by the first question
};

}  // namespace muster::api
