#include "agent/files/work_dir.hpp"

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/files/whole_write.hpp"
#include "base/hex.hpp"
#include "base/log.hpp"
#include "base/secret.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace muster::agent {

namespace {

namespace fs = std::filesystem;

constexpr size_t kIdBytes = 16;

Error failed(const std::string& what) {
  return {Errc::unavailable, what + ": " + std::strerror(errno)};
}

// The inode and, if the file system records it, the birth time: inode numbers are reused.
std::string inode_of(int dir) {
  struct statx st {};
  MUSTER_CHECK(statx(dir, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) == 0, errno);
  std::string born = (st.stx_mask & STATX_BTIME) != 0 ? std::to_string(st.stx_btime.tv_sec) + "." +
                                                            std::to_string(st.stx_btime.tv_nsec)
                                                      : "0";
  return std::to_string(st.stx_ino) + ":" + born;
}

uint64_t number(const std::string& text) {
  return std::strtoull(text.c_str(), nullptr, 10);
}

// Keeps the later of the two if `to` already has a seal. No change if `text` is not valid.
void take_sealed(const std::string& text, SealedHistory& to) {
  std::istringstream in(text);
  SealedHistory read;
  if (!(in >> read.term.epoch >> read.term.nonce >> read.commit >> read.seal) ||
      !is_hex(read.seal, kSealDigits))
    return;
  if (to.seal.empty() ||
      std::pair(read.term.epoch, read.commit) > std::pair(to.term.epoch, to.commit))
    to = read;
}

std::string text_of(const SealedHistory& sealed) {
  std::array<char, 3 * 21 + 1> numbers{};
  std::snprintf(numbers.data(), numbers.size(), "%020" PRIu64 " %020" PRIu64 " %020" PRIu64 " ",
                sealed.term.epoch, sealed.term.nonce, sealed.commit);
  return numbers.data() + sealed.seal;
}

}  // namespace

std::string boot_id() {
  static const std::string id = [] {
    std::ifstream in("/proc/sys/kernel/random/boot_id");
    std::string read;
    in >> read;
    MUSTER_CHECK(!read.empty());
    return read;
  }();
  return id;
}

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == 0) return "localhost";
  std::string out = name;
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';  // not allowed in a node name
  }
  return out;
}

Status WorkDir::there() const {
  struct stat own = {};
  struct stat named = {};
  if (path_.empty() || fstat(dir_.get(), &own) != 0) return Nothing{};
  if (stat(path_.c_str(), &named) == 0)
    return own.st_dev == named.st_dev && own.st_ino == named.st_ino
               ? Status(Nothing{})
               : Error{Errc::unavailable, "work-dir " + path_ + " was replaced while in use", {}};
  if (errno != ENOENT && errno != ENOTDIR) return Nothing{};  // the disk may come back
  return Error{Errc::unavailable, "work-dir " + path_ + " was deleted while in use", {}};
}

WorkDir WorkDir::ephemeral(const std::string& name) {
  WorkDir dir;
  dir.id_ = random_hex(kIdBytes);
  dir.secret_ = random_hex(kSecretBytes);
  dir.name_ = name.empty() ? host_name() : name;
  return dir;
}

Result<WorkDir> WorkDir::open(const std::string& path, const std::string& name,
                              const std::string& otherwise) {
  auto opened = open_private_dir(path, "work-dir");
  if (!opened) return opened.error();
  WorkDir dir;
  dir.dir_ = std::move(*opened);
  std::error_code error;
  dir.path_ = fs::canonical(path, error).string();
  if (error) return Error{Errc::unavailable, "work-dir " + path + ": " + error.message()};
  std::string lock = dir.path_ + "/lock";
  dir.lock_ = open_private_file(dir.dir_.get(), "lock", O_RDWR | O_CREAT);
  if (dir.lock_.get() < 0) return failed("cannot open " + lock);
  // The lock is on the directory, so that removing the file opens nothing; earlier versions lock
  // the file. A file system without locks on directories has the file's only.
  const bool taken = flock(dir.dir_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (taken || flock(dir.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (!taken && errno != EWOULDBLOCK) return failed("cannot lock " + lock);
    return Error{Errc::conflict, "another agent runs on work-dir " + dir.path_ +
                                     "; give this one another --work-dir"};
  }
  if (Status loaded = dir.load(name, otherwise); !loaded) return loaded.error();
  return dir;
}

Status WorkDir::load(const std::string& wanted_name, const std::string& otherwise) {
  std::map<std::string, std::string> kept;
  auto identity = read_private_file(dir_.get(), "identity");
  if (!identity && errno != ENOENT) return failed("cannot read " + path_ + "/identity");
  std::istringstream in(identity.value_or(""));
  for (std::string line; std::getline(in, line);) {
    size_t space = line.find(' ');
    if (space != std::string::npos) kept[line.substr(0, space)] = line.substr(space + 1);
  }
  if (identity && kept["muster-node"] != "1") {
    return Error{Errc::invalid, path_ + "/identity has an unknown format (\"" +
                                    kept["muster-node"] + "\", known: 1)"};
  }
  inode_ = inode_of(dir_.get());
  bool ours = !kept["id"].empty() && kept["inode"] == inode_;
  if (ours) {
    id_ = kept["id"];
    name_ = kept["name"];
    secret_ = kept["secret"];
    cluster_id_ = kept["cluster"];
    cluster_key_ = kept["cluster-key"];
    term_ = {number(kept["epoch"]), number(kept["nonce"])};
    if (!wanted_name.empty() && wanted_name != name_) {
      return Error{Errc::conflict, "work-dir " + path_ + " belongs to node " + name_ + ", not " +
                                       wanted_name + "; start it with --name " + name_ +
                                       " or another --work-dir"};
    }
    const std::string commit = read_private_file(dir_.get(), "commit").value_or("0");
    commit_ = number(commit);
    take_sealed(kept["sealed"], sealed_);
    if (const size_t end = commit.find('\n'); end != std::string::npos)
      take_sealed(commit.substr(end + 1), sealed_);
    if (secret_.empty()) {  // written by an earlier version
      secret_ = random_hex(kSecretBytes);
      if (Status saved = save(); !saved) return saved;
    }
  } else {
    if (!kept["id"].empty()) {
      log::warn("work-dir {} is a copy of node {}'s; registering as a new node", path_,
                kept["name"]);
      if (Status moved = move_keeper_away("copied"); !moved) return moved;
    }
    id_ = random_hex(kIdBytes);
    secret_ = random_hex(kSecretBytes);
    name_ = wanted_name.empty() ? otherwise : wanted_name;
    if (Status saved = save(); !saved) return saved;
  }
  commit_file_ = open_private_file(dir_.get(), "commit", O_WRONLY | O_CREAT);
  if (commit_file_.get() < 0) return failed("cannot open " + path_ + "/commit");
  return Nothing{};
}

Status WorkDir::save() const {
  std::ostringstream out;
  out << "muster-node 1\nid " << id_ << "\nsecret " << secret_ << "\ninode " << inode_ << "\nname "
      << name_ << "\ncluster " << cluster_id_ << "\ncluster-key " << cluster_key_ << "\nepoch "
      << term_.epoch << "\nnonce " << term_.nonce << "\n";
  if (!sealed_.seal.empty()) out << "sealed " << text_of(sealed_) << "\n";
  Status saved = replace_private_file(dir_.get(), "identity", out.str());
  if (!saved) return Error{saved.error().code, "work-dir " + path_ + ": " + saved.error().message};
  return saved;
}

Status WorkDir::learn(const std::string& cluster_id, core::node::Term term,
                      const std::string& cluster_key, uint64_t commit, const std::string& seal) {
  bool new_key = !cluster_key.empty() && cluster_key != cluster_key_;
  const bool first_seal = !seal.empty() && !(sealed_.term == term && !sealed_.seal.empty());
  if (cluster_id == cluster_id_ && term == term_ && !new_key && !first_seal) return Nothing{};
  if (cluster_id != cluster_id_) {  // these belong to the other cluster
    commit_ = 0;
    cluster_key_.clear();
    sealed_ = {};
  }
  if (first_seal) sealed_ = {term, commit, seal};
  if (new_key) cluster_key_ = cluster_key;
  cluster_id_ = cluster_id;
  term_ = term;
  return path_.empty() ? Status{Nothing{}} : save();
}

void WorkDir::learn_commit(uint64_t commit, const std::string& seal) {
  if (commit <= commit_) return;
  commit_ = commit;
  if (!seal.empty()) sealed_ = {term_, commit, seal};
  if (path_.empty()) return;
  std::array<char, 24> number{};
  std::snprintf(number.data(), number.size(), "%020" PRIu64 "\n", commit);
  std::string text = number.data();
  if (!sealed_.seal.empty()) text += text_of(sealed_) + "\n";
  if (!write_whole_at(commit_file_.get(), text, 0))
    log::warn("cannot write {}/commit: {}", path_, std::strerror(errno));
}

Status WorkDir::move_keeper_away(const char* why) const {
  std::string from = path_ + "/keeper", to = from + "." + why + "." + std::to_string(wall_now());
  if (rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT)
    return failed("cannot move " + from + " away");
  return Nothing{};
}

std::optional<std::string> WorkDir::read(const std::string& name) const {
  return path_.empty() ? std::nullopt : read_private_file(dir_.get(), name);
}

Status WorkDir::replace(const std::string& name, const std::string& text) const {
  if (path_.empty()) return Nothing{};
  return replace_private_file(dir_.get(), name, text);
}

void WorkDir::remove(const std::string& name) const {
  if (!path_.empty()) unlinkat(dir_.get(), name.c_str(), 0);
}

Status WorkDir::renew_id() {
  id_ = random_hex(kIdBytes);
  secret_ = random_hex(kSecretBytes);
  // First: as the old node without its spool, we would report that its processes never ran.
  if (Status saved = save(); !saved) return saved;
  return move_keeper_away("damaged");
}

}  // namespace muster::agent
