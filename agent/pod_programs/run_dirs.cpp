#include "agent/pod_programs/run_dirs.hpp"

#include "base/fd.hpp"
#include "base/files/whole_write.hpp"
#include "base/hex.hpp"
#include "base/log.hpp"
#include "base/network/interfaces.hpp"
#include "base/process/own_executable.hpp"
#include "base/secret.hpp"
#include "core/pod_name.hpp"
#include "core/spec/fields/mpi.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace muster::agent {
namespace {

constexpr size_t kNameDigits = 32;
constexpr const char* kPrograms[] = {"muster-rsh", "muster-mpi-entry", "muster-pmi"};
constexpr const char* kShims[] = {"ssh", "rsh", "scp"};

Error cannot(const char* what, const std::string& path) {
  return {Errc::unavailable,
          std::string("cannot ") + what + " " + path + ": " + std::strerror(errno)};
}

// Readers see the old text or the new one.
Status replace(const std::string& path, const std::string& text, mode_t mode) {
  const std::string next = path + ".new";
  unlink(next.c_str());
  const Fd fd(open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (fd.get() < 0) return cannot("write", next);
  if (!write_whole(fd.get(), text) || fchmod(fd.get(), mode) != 0 ||
      rename(next.c_str(), path.c_str()) != 0)
    return cannot("write", path);
  return Nothing{};
}

// Made by muster-rsh (rsh.cpp), for the ranks that it starts.
std::string shared_memory_of(const std::string& name) {
  return "/dev/shm/muster-" + name;
}

std::string host_of(const core::node::PodTemplate& job, uint32_t index) {
  return core::pod_hostname(job.job_name, job.job_uid, job.indexed, {index, 0});
}

std::string real_host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// As JSON. Names of nodes and hosts are DNS names, so they need no other escapes.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= ' ') out += c;
  }
  return out + "\"";
}

std::optional<uint64_t> number(std::string_view& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data() + text.size() || *end != '-') return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return value;
}

}  // namespace

RunDirs::RunDirs(std::string work_dir, std::string secret)
    : work_dir_(std::move(work_dir)),
      run_(work_dir_ + "/run"),
      secret_(std::move(secret)),
      program_(own_executable()) {}

// The directories below can be entered, but not listed. The work-dir is closed to others until an
// MPI job needs it.
Status RunDirs::make_run() const {
  if (mkdir(run_.c_str(), 0700) != 0 && errno != EEXIST) return cannot("make", run_);
  for (const std::string& dir : {run_, work_dir_})
    if (public_ && chmod(dir.c_str(), 0711) != 0) return cannot("open", dir);
  return Nothing{};
}

std::string RunDirs::keyed(const std::string& what) const {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
       reinterpret_cast<const unsigned char*>(what.data()), what.size(), digest.data(), &size);
  return to_hex({reinterpret_cast<const char*>(digest.data()), size});
}

std::string RunDirs::name(PodId pod) const {
  return keyed("run " + to_string(pod)).substr(0, kNameDigits);
}

std::string RunDirs::path(PodId pod) const {
  return run_ + "/" + name(pod);
}

// JOB-INDEX-ATTEMPT-UID-PROOF
std::string RunDirs::token(PodId pod, uint32_t uid) const {
  const std::string text = std::to_string(pod.job) + "-" + std::to_string(pod.index) + "-" +
                           std::to_string(pod.attempt) + "-" + std::to_string(uid) + "-";
  return text + keyed("token " + text);
}

std::optional<RunDirs::Caller> RunDirs::owner_of(const std::string& presented) const {
  std::string_view rest = presented;
  std::array<uint64_t, 4> numbers{};
  for (uint64_t& one : numbers) {
    const auto value = number(rest);
    if (!value) return std::nullopt;
    one = *value;
  }
  const Caller caller{
      {numbers[0], static_cast<uint32_t>(numbers[1]), static_cast<uint32_t>(numbers[2])},
      static_cast<uint32_t>(numbers[3])};
  if (!same_secret(token(caller.pod, caller.uid), presented)) return std::nullopt;
  return caller;
}

bool RunDirs::has_pod_of(uint32_t uid) const {
  return std::ranges::any_of(
      made_, [uid](const auto& one) { return one.second->owner_uid.value_or(geteuid()) == uid; });
}

Status RunDirs::make(PodId pod, uint32_t uid, const core::node::PodTemplatePtr& job) {
  const mode_t dir_mode = public_ ? 0755 : 0700, file_mode = public_ ? 0644 : 0600;
  const std::string dir = path(pod), bin = dir + "/bin";
  if (Status s = make_run(); !s) return s;
  for (const std::string& one : {dir, bin})
    if ((mkdir(one.c_str(), 0700) != 0 && errno != EEXIST) || chmod(one.c_str(), dir_mode) != 0)
      return cannot("make", one);
  auto link = [&](const char* program) {
    return symlink(program_.c_str(), (bin + "/" + program).c_str()) == 0 || errno == EEXIST;
  };
  for (const char* program : kPrograms)
    if (!link(program)) return cannot("make links in", bin);
  if (const auto options = core::parse_mpi(job->mpi); options.ok() && options->ssh_shim)
    for (const char* shim : kShims)
      if (!link(shim)) return cannot("make links in", bin);
  if (Status s = replace(dir + "/" + core::node::kRshToken, token(pod, uid), file_mode); !s)
    return s;
  if (Status s = replace(dir + "/discover_hosts.sh",
                         "#!/bin/sh\nexec cat \"$(dirname \"$0\")/hosts.running\"\n", dir_mode);
      !s)
    return s;
  made_.insert_or_assign(pod, job);
  return write_hosts(pod, *job);
}

Status RunDirs::write_hosts(PodId pod, const core::node::PodTemplate& job) const {
  const auto options = core::parse_mpi(job.mpi);
  const std::string slots = std::to_string(options.ok() ? options->slots : 1);
  const auto known = hosts_.find(pod.job);
  const uint32_t count = known != hosts_.end()
                             ? known->second.count
                             : static_cast<uint32_t>(std::max(
                                   0, std::min(job.completions.value_or(0), job.parallelism)));
  // A launcher starts its own host's processes itself if it finds that host's real name.
  const std::string own = real_host_name();
  auto alias = [&](uint32_t index) { return index == pod.index ? own : host_of(job, index); };
  std::string openmpi, hydra, running, peers;
  for (uint32_t i = 0; i < count; ++i) {
    openmpi += alias(i) + " slots=" + slots + "\n";
    hydra += alias(i) + ":" + slots + "\n";
  }
  if (known != hosts_.end()) {
    for (const JobHosts::Host& host : known->second.hosts) {
      if (host.running) running += alias(host.index) + ":" + slots + "\n";
      std::ostringstream one;
      one << (peers.empty() ? "" : ",\n ") << "{\"index\": " << host.index
          << ", \"attempt\": " << host.attempt << ", \"host\": " << quoted(host_of(job, host.index))
          << ", \"node\": " << quoted(host.node) << ", \"address\": " << quoted(host.ip)
          << ", \"state\": " << (host.running ? "\"Running\"" : "\"Pending\"") << "}";
      peers += one.str();
    }
  }
  const std::string dir = path(pod) + "/";
  const mode_t mode = public_ ? 0644 : 0600;
  const std::pair<const char*, std::string> files[] = {{core::node::kOpenMpiHosts, openmpi},
                                                       {core::node::kHydraHosts, hydra},
                                                       {"hosts.running", running},
                                                       {"peers.json", "[" + peers + "]\n"}};
  for (const auto& [name, text] : files)
    if (Status s = replace(dir + name, text, mode); !s) return s;
  return Nothing{};
}

void RunDirs::adopt(PodId pod, const core::node::PodTemplatePtr& job) {
  if (Status made = make_run(); !made) log::warn("{}", made.error().message);
  made_.emplace(pod, job);
}

void RunDirs::remove(PodId pod) {
  if (made_.erase(pod) == 0) return;
  std::error_code ignored;
  std::filesystem::remove_all(path(pod), ignored);
  std::filesystem::remove_all(shared_memory_of(name(pod)), ignored);
}

void RunDirs::sweep() {
  std::set<std::string> used;
  for (const auto& [pod, job] : made_) used.insert(name(pod));
  std::error_code failed;
  for (const auto& one : std::filesystem::directory_iterator(run_, failed)) {
    const std::string name = one.path().filename().string();
    if (name.size() != kNameDigits || used.contains(name)) continue;
    std::error_code ignored;
    std::filesystem::remove_all(one.path(), ignored);
    std::filesystem::remove_all(shared_memory_of(name), ignored);
  }
}

void RunDirs::set_hosts(JobId job, JobHosts hosts) {
  if (hosts.hosts.empty())
    hosts_.erase(job);
  else
    hosts_.insert_or_assign(job, std::move(hosts));
  for (auto pod = made_.lower_bound({job, 0, 0}); pod != made_.end() && pod->first.job == job;
       ++pod)
    if (Status written = write_hosts(pod->first, *pod->second); !written)
      log::warn("{}", written.error().message);
}

std::optional<std::vector<std::string>> RunDirs::nodes_of(JobId job) const {
  const auto known = hosts_.find(job);
  if (known == hosts_.end() || known->second.hosts.size() != known->second.count)
    return std::nullopt;
  std::vector<std::string> nodes;
  for (const JobHosts::Host& host : known->second.hosts) nodes.push_back(host.node);
  return nodes;
}

void RunDirs::set_ip(const std::string& ip) {
  iface_ = interface_of(ip);
  network_ = network_of(iface_);
}

core::node::MpiFacts RunDirs::facts(PodId pod) const {
  core::node::MpiFacts facts{path(pod), "", iface_, network_, has_rdma()};
  const auto known = hosts_.find(pod.job);
  if (known == hosts_.end()) return facts;
  for (const JobHosts::Host& host : known->second.hosts)
    if (host.index == 0) facts.leader_address = host.ip;
  return facts;
}

}  // namespace muster::agent
