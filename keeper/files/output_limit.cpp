#include "keeper/files/output_limit.hpp"

#include "base/fd.hpp"
#include "base/files/whole_write.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace muster::keeper {

OutputLimit::OutputLimit(uint64_t max_bytes, int base_fd,
                         std::function<int(const std::string& path)> open)
    : max_bytes_(max_bytes), base_fd_(base_fd), open_(std::move(open)) {}

void OutputLimit::add(uint64_t entry, const std::vector<std::string>& paths) {
  if (max_bytes_ == 0) return;
  for (size_t i = 0; i < paths.size(); ++i) files_[{entry, i}] = {paths[i], max_bytes_};
}

void OutputLimit::remove(uint64_t entry) {
  files_.erase(files_.lower_bound({entry, 0}), files_.lower_bound({entry + 1, 0}));
}

void OutputLimit::look() {
  auto file = files_.lower_bound(next_);
  for (size_t looks = 0; looks < kLooks && looks < files_.size(); ++looks, ++file) {
    if (file == files_.end()) file = files_.begin();
    check(file->second.first, file->second.second);
  }
  next_ = file == files_.end() ? std::pair<uint64_t, size_t>{} : file->first;
}

void OutputLimit::check(const std::string& path, uint64_t& allowed) {
  struct stat info = {};
  if (fstatat(base_fd_, path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (static_cast<uint64_t>(info.st_size) <= allowed) return;
  const Fd file(open_(path));
  if (!file) return;
  if (allowed == max_bytes_) {
    // Over what is there, before the cut: appended after it, the line could end up behind what the
    // process writes at the same time, and the next cut would take it along.
    const std::string line = "\nmuster: this output is cut here, at " + std::to_string(max_bytes_) +
                             " bytes (--output-max); what follows is lost\n";
    if (!write_whole_at(file.get(), line, static_cast<off_t>(max_bytes_))) return;
    allowed += line.size();
  }
  // Should this fail, the next look cuts it.
  std::ignore = ftruncate(file.get(), static_cast<off_t>(allowed));
}

}  // namespace muster::keeper
