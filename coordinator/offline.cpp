#include "coordinator/offline.hpp"

#include "api/kube/objects/manifest.hpp"
#include "base/clock.hpp"
#include "coordinator/threads/random.hpp"

namespace muster::coordinator {

Result<storage::BackupInfo> back_up_data_dir(const std::string& data_dir, const std::string& dir) {
  return storage::copy_backup(data_dir, dir);
}

Result<storage::Restored> restore_data_dir(const std::string& from, const std::string& data_dir) {
  uint64_t nonce = 0;
  while (nonce == 0) nonce = random_number();
  return storage::restore(from, data_dir, {wall_now(), nonce},
                          [](std::string_view json) { return api::load_job(json); });
}

Result<storage::Verified> verify_data_dir(const std::string& dir) {
  return storage::verify_dir(dir, [](std::string_view json) { return api::load_job(json); });
}

}  // namespace muster::coordinator
