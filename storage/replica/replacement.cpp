#include "storage/replica/replacement.hpp"

#include "base/files/private_files.hpp"
#include "base/files/whole_write.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <utility>

namespace muster::storage {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIncoming = "/incoming";
constexpr const char* kReplaced = "/replaced";
constexpr const char* kNote = "replacing";

Error file_error(const std::string& what) {
  return {Errc::unavailable, "can't replace the database: " + what + ": " + std::strerror(errno)};
}

Status sync_entries(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || fsync(fd.get()) != 0) return file_error(path);
  return Nothing{};
}

Status remove_dir(const std::string& path) {
  std::error_code failed;
  fs::remove_all(path, failed);
  if (!failed) return Nothing{};
  errno = failed.value();
  return file_error(path);
}

bool exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

Status replace(const std::string& dir) {
  // The watermark is the old database's.
  if (unlink((dir + "/commit").c_str()) != 0 && errno != ENOENT) return file_error(dir + "/commit");
  if (exists(dir + kIncoming)) {
    if (exists(dir + "/db")) {
      if (Status s = remove_dir(dir + kReplaced); !s) return s;
      if (rename((dir + "/db").c_str(), (dir + kReplaced).c_str()) != 0)
        return file_error(dir + "/db");
    }
    if (rename((dir + kIncoming).c_str(), (dir + "/db").c_str()) != 0)
      return file_error(dir + kIncoming);
  }
  if (Status s = sync_entries(dir); !s) return s;
  if (Status s = remove_dir(dir + kReplaced); !s) return s;
  if (unlink((dir + "/" + kNote).c_str()) != 0) return file_error(dir + "/" + kNote);
  return sync_entries(dir);
}

}  // namespace

Result<Replacement> Replacement::begin(const std::string& data_dir) {
  if (Status s = finish_replacement(data_dir); !s) return s.error();
  auto dir = open_private_dir(data_dir + kIncoming, "data-dir");
  if (!dir) return dir.error();
  return Replacement(data_dir);
}

Status Replacement::next_file(std::string_view name) {
  if (Status s = end_file(); !s) return s;
  if (name.empty() || name.starts_with(".") || name.find('/') != name.npos)
    return invalid("the leader sent a file with the name \"" + std::string(name) + "\"");
  const std::string path = data_dir_ + kIncoming + "/" + std::string(name);
  file_ = Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_) return file_error(path);
  return Nothing{};
}

Status Replacement::write(std::string_view bytes) {
  if (!write_whole(file_.get(), bytes)) return file_error(data_dir_ + kIncoming);
  return Nothing{};
}

Status Replacement::end_file() {
  if (!file_) return Nothing{};
  if (fsync(file_.get()) != 0) return file_error(data_dir_ + kIncoming);
  file_ = Fd();
  return Nothing{};
}

Status Replacement::finish() {
  if (Status s = end_file(); !s) return s;
  if (!exists(data_dir_ + kIncoming + "/CURRENT"))
    return invalid("the leader sent a database without the file CURRENT");
  if (Status s = sync_entries(data_dir_ + kIncoming); !s) return s;
  auto dir = open_private_dir(data_dir_, "data-dir");
  if (!dir) return dir.error();
  if (Status s = replace_private_file(dir->get(), kNote, ""); !s) return s;
  return replace(data_dir_);
}

Status finish_replacement(const std::string& data_dir) {
  if (exists(data_dir + "/" + kNote)) return replace(data_dir);
  if (!exists(data_dir)) return Nothing{};
  if (Status s = remove_dir(data_dir + kIncoming); !s) return s;
  return remove_dir(data_dir + kReplaced);
}

}  // namespace muster::storage
