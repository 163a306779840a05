// What daemons and clients have in common: directories, limits, names, certificates, munge.
#include "base/fd.hpp"
#include "base/files/whole_write.hpp"
#include "base/peer/users.hpp"
#include "cli/doctor/look.hpp"
#include "trust/munge/credential.hpp"
#include "trust/tls/certificates.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <netdb.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace muster::cli::doctor {
namespace {

constexpr int kSyncs = 5;
constexpr uint64_t kSyncsMaxUs = 1'000'000;  // measure no more after this time
constexpr size_t kSyncBytes = 4'096;

uint64_t now_us() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000 + static_cast<uint64_t>(t.tv_nsec) / 1'000;
}

// A file without a name, which disappears whatever happens to us.
Fd open_probe(const std::string& dir) {
  Fd fd(open(dir.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (fd || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  std::string name = dir + "/.muster-doctor-XXXXXX";
  fd = Fd(mkostemp(name.data(), O_CLOEXEC));
  if (fd) unlink(name.c_str());
  return fd;
}

// The median of some; a slow disk is not kept busy for long.
void measure_syncs(PlaceFacts& facts) {
  const Fd fd = open_probe(facts.path);
  if (!fd) {
    facts.no_sync = std::string("cannot write there: ") + std::strerror(errno);
    return;
  }
  std::vector<uint64_t> took;
  const uint64_t begin = now_us();
  const std::string bytes(kSyncBytes, 'm');
  while (took.size() < kSyncs && (took.empty() || now_us() - begin < kSyncsMaxUs)) {
    const uint64_t before = now_us();
    if (!write_whole(fd.get(), bytes) || fsync(fd.get()) != 0) {
      facts.no_sync = std::string("a synced write failed: ") + std::strerror(errno);
      return;
    }
    took.push_back(now_us() - before);
  }
  std::sort(took.begin(), took.end());
  facts.sync_us = took[took.size() / 2];
}

}  // namespace

std::string text_of_file(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd) return text;
  std::array<char, 4096> buffer{};
  ssize_t n = 0;
  while ((n = read(fd.get(), buffer.data(), buffer.size())) > 0)
    text.append(buffer.data(), static_cast<size_t>(n));
  return text;
}

std::string process_name(int pid) {
  std::string name = text_of_file("/proc/" + std::to_string(pid) + "/comm");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

bool is_outdated(int pid) {
  std::error_code error;
  const auto file = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
  return !error && file.string().ends_with(" (deleted)");
}

std::vector<std::string> command_of(int pid) {
  std::vector<std::string> words;
  std::istringstream text(text_of_file("/proc/" + std::to_string(pid) + "/cmdline"));
  for (std::string word; std::getline(text, word, '\0');) words.push_back(word);
  return words;
}

std::string type_of_mount(std::string_view mounts, const std::string& path) {
  std::string type;
  size_t longest = 0;
  std::istringstream lines{std::string(mounts)};
  for (std::string line; std::getline(lines, line);) {
    // id parent dev root mountpoint options... - type source options
    std::istringstream words(line);
    std::string skip, point;
    words >> skip >> skip >> skip >> skip >> point;
    for (size_t at = 0; (at = point.find("\\040", at)) != std::string::npos;)
      point.replace(at, 4, " ");
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos || point.empty() || point[0] != '/') continue;
    const bool below = point == "/" || path == point || path.starts_with(point + "/");
    if (!below || point.size() < longest) continue;
    longest = point.size();
    std::istringstream(line.substr(dash + 3)) >> type;
  }
  return type;
}

PlaceFacts look_at_place(const std::string& path, bool thorough) {
  PlaceFacts facts{.path = path};
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) facts.not_seen = std::strerror(errno);
    return facts;
  }
  facts.there = true;
  facts.directory = S_ISDIR(info.st_mode);
  facts.owner = info.st_uid;
  if (thorough) facts.owner_name = user_name(info.st_uid).value_or("");
  facts.mode = info.st_mode & 07777;
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  facts.type = type_of_mount(text_of_file("/proc/self/mountinfo"), error ? path : real.string());
  if (facts.type.empty()) facts.type = "an unknown file system";
  struct statvfs disk = {};
  if (statvfs(path.c_str(), &disk) == 0) {
    facts.read_only = (disk.f_flag & ST_RDONLY) != 0;
    facts.noexec = (disk.f_flag & ST_NOEXEC) != 0;
    facts.bytes = uint64_t{disk.f_blocks} * disk.f_frsize;
    facts.free_bytes = uint64_t{disk.f_bavail} * disk.f_frsize;
    facts.files = disk.f_files;
    facts.free_files = disk.f_favail;
  }
  if (thorough && facts.directory) measure_syncs(facts);
  return facts;
}

LimitFacts look_at_limits(int pid, std::string whose) {
  const std::string of = pid == 0 ? "self" : std::to_string(pid);
  return read_limits(text_of_file("/proc/" + of + "/limits"), std::move(whose));
}

HostFacts look_up(const std::string& address) {
  HostFacts facts;
  std::string host = address;
  if (host.starts_with("unix:")) return facts;
  if (host.starts_with("https://")) host.erase(0, 8);
  if (const size_t colon = host.rfind(':'); colon != std::string::npos) host.resize(colon);
  if (host.starts_with("[")) return facts;
  std::array<unsigned char, sizeof(in6_addr)> parsed{};
  if (inet_pton(AF_INET, host.c_str(), parsed.data()) == 1 || host.empty()) return facts;
  facts.host = host;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const Millis begin = boot_now();
  const int code = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  facts.took_ms = boot_now() - begin;
  if (code != 0) {
    facts.error = code == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(code);
    return facts;
  }
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) == 0)
      facts.addresses += (facts.addresses.empty() ? "" : ", ") + std::string(text.data());
  }
  freeaddrinfo(found);
  return facts;
}

CertificateFacts look_at_certificate(const std::string& path) {
  CertificateFacts facts{.path = path};
  errno = 0;
  const std::string text = text_of_file(path);
  if (text.empty() && errno != 0) {
    facts.there = errno != ENOENT;
    facts.may_read = errno != EACCES && errno != EPERM;
    facts.error = std::strerror(errno);
    return facts;
  }
  facts.there = true;
  const auto read = tls::read_certificate(text);
  if (!read) {
    facts.error = read.error().message;
    return facts;
  }
  const Millis now = wall_now();
  facts.left_ms = read->until_ms - now;
  facts.begins_in_ms = read->from_ms - now;
  return facts;
}

MungeFacts look_at_munge(const std::string& socket) {
  MungeFacts facts{.socket = socket};
  if (const Status loaded = munge::load(); !loaded) {
    facts.error = loaded.error().message;
    return facts;
  }
  if (const auto made = munge::encode(socket, getuid(), "muster doctor"); !made)
    facts.error = made.error().message;
  return facts;
}

std::vector<int> holders_of(std::string_view locks, uint64_t inode) {
  std::vector<int> pids;
  std::istringstream lines{std::string(locks)};
  for (std::string line; std::getline(lines, line);) {
    // 1: FLOCK ADVISORY WRITE 6526 fe:00:11035115 0 EOF; where one waits, "->" follows the number
    std::istringstream words(line);
    std::string skip, place;
    int pid = 0;
    if (!(words >> skip >> skip >> skip >> skip >> pid >> place)) continue;
    const std::string number = place.substr(place.rfind(':') + 1);
    if (number == std::to_string(inode)) pids.push_back(pid);
  }
  return pids;
}

std::optional<double> metric(std::string_view text, std::string_view series) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(series) || line.size() <= series.size() || line[series.size()] != ' ')
      continue;
    double value = 0;
    if (std::istringstream(line.substr(series.size())) >> value) return value;
  }
  return std::nullopt;
}

}  // namespace muster::cli::doctor
