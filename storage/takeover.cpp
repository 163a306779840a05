#include "storage/takeover.hpp"

#include "base/fd.hpp"
#include "base/files/private_files.hpp"
#include "base/printable.hpp"
#include "storage/journal/rocksdb_journal.hpp"

#include <algorithm>
#include <fcntl.h>
#include <sys/file.h>

namespace muster::storage {

bool mark_taken_over(const std::string& data_dir, const std::string& cluster_id,
                     const std::string& by) {
  const Fd dir(open(data_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir || flock(dir.get(), LOCK_EX | LOCK_NB) != 0) return false;
  if (RocksdbJournal::noted_cluster(data_dir) != cluster_id) return false;
  return replace_private_file(dir.get(), kTakenOver, by + "\n").ok();
}

std::optional<Error> refuses_taken_over(const std::string& data_dir) {
  const Fd dir(open(data_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir || faccessat(dir.get(), kTakenOver, F_OK, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  std::string by = read_private_file(dir.get(), kTakenOver).value_or("");
  by.erase(std::min(by.find('\n'), by.size()));
  return invalid(data_dir + " has been taken over" + (by.empty() ? "" : " by " + on_one_line(by)) +
                 ": its cluster would have two coordinators. Start that one instead. If it is to "
                 "be abandoned, remove " +
                 data_dir + "/" + kTakenOver + "; what it has accepted since is lost then");
}

}  // namespace muster::storage
