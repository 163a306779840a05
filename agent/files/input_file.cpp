#include "agent/files/input_file.hpp"

#include "base/fd.hpp"
#include "base/files/trusted_links.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster::agent {

Result<core::InputTablePtr> InputFile::read(const std::string& path) {
  const auto failed = [&path](const std::string& why) {
    return Error{Errc::invalid, "inputs " + path + ": " + why, {}};
  };
  UntrustedLink link;
  // Not blocking, because it may be a pipe.
  const Fd fd(
      open_by_trusted_links(path.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK, 0, geteuid(), link));
  if (*link.path != '\0')
    return failed(std::string(link.path) + " is a symbolic link of uid " +
                  std::to_string(link.owner) + ", and only those of root and of uid " +
                  std::to_string(geteuid()) + " are followed; name what it points to");
  struct stat found {};
  if (!fd || fstat(fd.get(), &found) != 0) return failed(std::strerror(errno));
  if (!S_ISREG(found.st_mode)) return failed("not a regular file");
  if (static_cast<size_t>(found.st_size) > core::kInputFileMax)
    return failed("larger than " + std::to_string(core::kInputFileMax >> 20) + " MiB");
  const State state{found.st_dev, found.st_ino, found.st_size,
                    int64_t{found.st_ctim.tv_sec} * 1'000'000'000 + found.st_ctim.tv_nsec};
  if (table_ != nullptr && path == path_ && state == state_) return table_;
  std::string bytes(static_cast<size_t>(found.st_size), '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(fd.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(std::strerror(errno));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  bytes.resize(size);
  auto table = core::InputTable::of(std::move(bytes));
  if (!table) return failed(table.error().message);
  path_ = path;
  state_ = state;
  table_ = std::make_shared<const core::InputTable>(std::move(*table));
  return table_;
}

}  // namespace muster::agent
