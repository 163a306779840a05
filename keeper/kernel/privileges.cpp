#include "keeper/kernel/privileges.hpp"

#include "base/process/in_child.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr int kBits = 32;  // of a capability set in each word

}  // namespace

MUSTER_IN_CHILD bool give_up(const Privileges& privileges) {
  bool none_new = privileges.none_new;
  if (privileges.dropped != 0) {
    for (int cap = 0; cap < 2 * kBits; ++cap) {
      if ((privileges.dropped >> cap & 1) == 0) continue;
      if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != 1) continue;  // not there, or unknown here
      if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) none_new = true;
    }
    __user_cap_header_struct head{};
    __user_cap_data_struct sets[2]{};
    head.version = _LINUX_CAPABILITY_VERSION_3;
    if (syscall(SYS_capget, &head, sets) != 0) return false;
    for (int word = 0; word < 2; ++word) {
      const auto kept = static_cast<uint32_t>(~(privileges.dropped >> (kBits * word)));
      sets[word].effective &= kept;
      sets[word].permitted &= kept;
      sets[word].inheritable &= kept;
    }
    if (syscall(SYS_capset, &head, sets) != 0) return false;
  }
  return !none_new || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

}  // namespace muster::keeper
