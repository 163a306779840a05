// Of a node whose keeper runs, the keeper's limits and cgroup count, not those of this process.
#include "agent/disk.hpp"
#include "base/fd.hpp"
#include "base/network/address_list.hpp"
#include "base/network/interfaces.hpp"
#include "base/peer/local_sockets.hpp"
#include "base/peer/users.hpp"
#include "base/process/usable_cpus.hpp"
#include "cli/doctor/look.hpp"
#include "keeper/kernel/cgroup_home.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <netdb.h>
#include <poll.h>
#include <pwd.h>
#include <sstream>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace muster::cli::doctor {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kUidMin = 1'000, kUidMax = 60'000;  // people, as in Debian's login.defs
constexpr size_t kHomesMax = 20;                    // automounters mount each that is looked at
constexpr size_t kUsersMax = 1'000;
constexpr int kConnectMs = 3'000;
constexpr std::string_view kKeeperCgroup = "muster-";
constexpr size_t kKeeperCgroupSize = kKeeperCgroup.size() + 16;

// The one of this name that has a lock on the directory; 0: none.
int holder(const std::string& locks, const std::string& path, const std::string& name) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return 0;
  for (const int pid : holders_of(locks, info.st_ino))
    if (process_name(pid) == name) return pid;
  return 0;
}

bool has_word(const std::string& text, std::string_view word) {
  std::istringstream words(text);
  for (std::string one; words >> one;)
    if (one == word) return true;
  return false;
}

std::optional<uint64_t> lowest_pids_max(std::string path) {
  std::optional<uint64_t> lowest;
  for (; path.size() > 1; path = fs::path(path).parent_path().string()) {
    const std::string text = text_of_file(path + "/pids.max");
    if (text.empty()) continue;
    const uint64_t one =
        text.starts_with("max") ? kUnlimited : std::strtoull(text.c_str(), nullptr, 10);
    lowest = std::min(lowest.value_or(kUnlimited), one);
  }
  return lowest;
}

// The directory of a running keeper's cgroups, at or above its own; empty: it has none.
std::string cgroup_of_keeper(std::string own) {
  for (int level = 0; level < 3 && own.size() > 1; ++level) {
    std::error_code error;
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(own, error)) {
      const std::string name = entry.path().filename().string();
      if (name.size() == kKeeperCgroupSize && name.starts_with(kKeeperCgroup))
        found.push_back(entry.path().string());
    }
    if (found.size() == 1) return found.front();
    own = fs::path(own).parent_path().string();
  }
  return "";
}

CgroupFacts look_at_cgroup(int keeper_pid) {
  CgroupFacts facts;
  if (keeper_pid == 0) {
    const auto homes = keeper::cgroup_homes();
    facts.mounted = !homes.empty();
    if (homes.empty()) return facts;
    facts.path = homes.front().path;
    const std::string there = text_of_file(facts.path + "/cgroup.controllers");
    const bool ours = access(facts.path.c_str(), W_OK) == 0 &&
                      access((facts.path + "/cgroup.subtree_control").c_str(), W_OK) == 0;
    facts.memory = ours && has_word(there, "memory");
    facts.cpu = ours && has_word(there, "cpu");
    facts.cpuset = ours && has_word(there, "cpuset");
    facts.pids_max = lowest_pids_max(facts.path);
    return facts;
  }
  std::istringstream mounts(text_of_file("/proc/self/mountinfo"));
  std::istringstream membership(text_of_file("/proc/" + std::to_string(keeper_pid) + "/cgroup"));
  const std::string own = keeper::own_cgroup(mounts, membership);
  facts.mounted = !own.empty();
  facts.keeper = true;
  const std::string pods = cgroup_of_keeper(own);
  facts.path = pods.empty() ? own : pods;
  if (pods.empty()) return facts;  // nothing is enforced without one
  errno = 0;
  const std::string on = text_of_file(pods + "/cgroup.subtree_control");
  if (on.empty() && errno != 0) facts.not_seen = std::strerror(errno);
  facts.memory = has_word(on, "memory");
  facts.cpu = has_word(on, "cpu");
  facts.cpuset = has_word(text_of_file(pods + "/cgroup.controllers"), "cpuset");
  facts.pids_max = lowest_pids_max(pods);
  return facts;
}

HomeFacts look_at_homes() {
  HomeFacts facts;
  const auto look = [&facts](const passwd& user) {
    ++facts.looked_at;
    if (access(user.pw_dir, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR))
      facts.missing.push_back(std::string(user.pw_name) + " (" + user.pw_dir + ")");
  };
  if (getuid() != 0) {
    if (const passwd* const user = getpwuid(getuid())) look(*user);
    return facts;
  }
  setpwent();
  size_t seen = 0;
  while (const passwd* const user = getpwent()) {
    if (++seen > kUsersMax || facts.looked_at >= kHomesMax) break;
    const std::string_view shell = user->pw_shell;
    const bool person = user->pw_uid >= kUidMin && user->pw_uid < kUidMax &&
                        !shell.ends_with("/nologin") && !shell.ends_with("/false");
    if (person) look(*user);
  }
  endpwent();
  return facts;
}

// Why no connection can be made; empty: one was, and is closed again.
std::string try_connection(const sockaddr* address, socklen_t size) {
  const Fd fd(socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return std::strerror(errno);
  if (connect(fd.get(), address, size) == 0) return "";
  if (errno != EINPROGRESS) return std::strerror(errno);
  pollfd wait{fd.get(), POLLOUT, 0};
  if (poll(&wait, 1, kConnectMs) != 1)
    return "no answer within " + std::to_string(kConnectMs / 1'000) + " s";
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? "" : std::strerror(error);
}

std::string try_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return "its path is too long";
  path.copy(address.sun_path, path.size());
  return try_connection(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

std::string try_address(const std::string& address) {
  if (address.starts_with("unix:")) return try_socket(address.substr(5));
  const size_t colon = address.rfind(':');
  const std::string host = address_host(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found);
      code != 0)
    return gai_strerror(code);
  std::string error;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    error = try_connection(one->ai_addr, one->ai_addrlen);
    if (error.empty()) break;
  }
  freeaddrinfo(found);
  return error;
}

std::vector<LinkFacts> look_at_links(const agent::AgentOptions& options) {
  if (const auto socket = find_socket(options.sockets);
      socket && (options.coordinators.empty() || try_socket(*socket).empty()))
    return {{.address = "unix:" + *socket, .error = try_socket(*socket)}};
  std::vector<LinkFacts> links;
  for (const std::string& address : options.coordinators) {
    LinkFacts link{.address = address, .host = look_up(address)};
    if (link.host.error.empty()) link.error = try_address(address);
    links.push_back(std::move(link));
  }
  return links;
}

std::vector<std::string> find_launchers() {
  std::vector<std::string> found;
  const char* const path = std::getenv("PATH");
  for (const char* name : {"mpirun", "mpiexec", "mpiexec.hydra", "prterun"}) {
    std::istringstream dirs(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
    for (std::string dir; std::getline(dirs, dir, ':');) {
      const std::string file = dir + "/" + name;
      if (dir.empty() || access(file.c_str(), X_OK) != 0) continue;
      found.push_back(file);
      break;
    }
  }
  return found;
}

}  // namespace

KeeperFacts look_at_keeper(const std::string& work_dir) {
  KeeperFacts facts;
  errno = 0;
  const std::string locks = text_of_file("/proc/locks");
  if (locks.empty() && errno != 0) {
    facts.not_seen = std::string("/proc/locks: ") + std::strerror(errno);
    return facts;
  }
  struct stat work = {}, keeper = {};
  const std::string keeper_dir = work_dir + "/keeper";
  if (stat(work_dir.c_str(), &work) != 0) return facts;
  if (stat(keeper_dir.c_str(), &keeper) != 0 && errno != ENOENT) {
    facts.not_seen = keeper_dir + ": " + std::strerror(errno);
    return facts;
  }
  facts.of_root = keeper.st_ino != 0 && keeper.st_uid == 0 && work.st_uid != 0;
  facts.agent_pid = holder(locks, work_dir, "muster");
  facts.keeper_pid = holder(locks, keeper_dir, "muster-keeper");
  facts.agent_outdated = facts.agent_pid != 0 && is_outdated(facts.agent_pid);
  facts.keeper_outdated = facts.keeper_pid != 0 && is_outdated(facts.keeper_pid);
  return facts;
}

NodeFacts look_at_node(const agent::AgentOptions& options, Depth depth) {
  const bool all = depth == Depth::all;
  NodeFacts facts;
  facts.work_dir = look_at_place(options.work_dir, all);
  facts.reserve_bytes =
      std::min(options.disk_reserve_bytes, facts.work_dir.bytes / agent::kReservePart);
  facts.tmp = look_at_place("/tmp", false);
  facts.slots = options.slots != 0 ? options.slots : usable_cpu_count();
  facts.has_rdma = has_rdma();
  facts.keeper = look_at_keeper(options.work_dir);
  facts.cgroup = look_at_cgroup(facts.keeper.keeper_pid);
  if (!facts.keeper.not_seen.empty()) {
    facts.cgroup.path = "that of the keeper, if one runs";
    facts.cgroup.not_seen = facts.keeper.not_seen;
    facts.cgroup.pids_max.reset();
  }
  const int agent_pid = facts.keeper.agent_pid, keeper_pid = facts.keeper.keeper_pid;
  const int pid = keeper_pid != 0 ? keeper_pid : agent_pid;
  const char* const what = keeper_pid != 0 ? "the keeper" : agent_pid != 0 ? "the agent" : nullptr;
  facts.limits = look_at_limits(
      pid, what == nullptr ? (all ? "a program started from here" : "the agent")
                           : std::string(what) + " (pid " + std::to_string(pid) + ")");
  if (!all) return facts;
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) {
    facts.own_name = look_up(name.data());
    facts.own_name.host = name.data();
  }
  const std::string certificate = options.work_dir + "/credentials.pem";
  if (CertificateFacts found = look_at_certificate(certificate); found.there)
    facts.certificate = std::move(found);
  facts.links = look_at_links(options);
  facts.homes = look_at_homes();
  facts.launchers = find_launchers();
  return facts;
}

}  // namespace muster::cli::doctor
