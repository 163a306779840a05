#include "core/spec/fields/security.hpp"

#include <algorithm>
#include <iterator>

namespace muster::core {
namespace {

constexpr int64_t kIdMax = 2'147'483'647;

// In the order of the kernel's numbers (linux/capability.h).
constexpr std::string_view kCapabilities[] = {"CHOWN",
                                              "DAC_OVERRIDE",
                                              "DAC_READ_SEARCH",
                                              "FOWNER",
                                              "FSETID",
                                              "KILL",
                                              "SETGID",
                                              "SETUID",
                                              "SETPCAP",
                                              "LINUX_IMMUTABLE",
                                              "NET_BIND_SERVICE",
                                              "NET_BROADCAST",
                                              "NET_ADMIN",
                                              "NET_RAW",
                                              "IPC_LOCK",
                                              "IPC_OWNER",
                                              "SYS_MODULE",
                                              "SYS_RAWIO",
                                              "SYS_CHROOT",
                                              "SYS_PTRACE",
                                              "SYS_PACCT",
                                              "SYS_ADMIN",
                                              "SYS_BOOT",
                                              "SYS_NICE",
                                              "SYS_RESOURCE",
                                              "SYS_TIME",
                                              "SYS_TTY_CONFIG",
                                              "MKNOD",
                                              "LEASE",
                                              "AUDIT_WRITE",
                                              "AUDIT_CONTROL",
                                              "SETFCAP",
                                              "MAC_OVERRIDE",
                                              "MAC_ADMIN",
                                              "SYSLOG",
                                              "WAKE_ALARM",
                                              "BLOCK_SUSPEND",
                                              "AUDIT_READ",
                                              "PERFMON",
                                              "BPF",
                                              "CHECKPOINT_RESTORE"};

void validate_ids(const std::string& at, const SecurityContext& security, Violations& found) {
  for (const auto& [name, id] : {std::pair{".runAsUser", security.run_as_user},
                                 std::pair{".runAsGroup", security.run_as_group}})
    if (id && (*id < 0 || *id > kIdMax))
      found.invalid(at + name, *id, "must be between 0 and 2147483647, inclusive");
}

}  // namespace

std::optional<uint64_t> capability_mask(std::string_view name) {
  if (name.starts_with("CAP_")) name.remove_prefix(4);
  if (name == "ALL") return kAllCapabilities;
  const auto found = std::find(std::begin(kCapabilities), std::end(kCapabilities), name);
  if (found == std::end(kCapabilities)) return std::nullopt;
  return uint64_t{1} << (found - std::begin(kCapabilities));
}

void validate_security(const std::string& path, const PodTemplate& pod, Violations& found) {
  validate_ids(path + ".securityContext", pod.security, found);
  auto check = [&](const std::string& list, const std::vector<Container>& containers) {
    for (size_t i = 0; i < containers.size(); ++i) {
      const SecurityContext& own = containers[i].security;
      const std::string at = item(path + list, i) + ".securityContext";
      validate_ids(at, own, found);
      const bool non_root =
          own.run_as_non_root.value_or(pod.security.run_as_non_root.value_or(false));
      const bool root = own.run_as_user ? own.run_as_user == 0 : pod.security.run_as_user == 0;
      if (non_root && root)
        found.invalid((own.run_as_user ? at : path + ".securityContext") + ".runAsUser", 0,
                      "must not be 0 when `runAsNonRoot` is true");
      for (size_t k = 0; k < own.dropped_capabilities.size(); ++k)
        if (const std::string& name = own.dropped_capabilities[k]; !capability_mask(name))
          found.invalid(item(at + ".capabilities.drop", k), name,
                        "must be ALL or the name of a capability, such as NET_RAW");
    }
  };
  check(".containers", pod.containers);
  check(".initContainers", pod.init_containers);
}

}  // namespace muster::core
