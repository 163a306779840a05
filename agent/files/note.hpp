// Note: what the keeper stores with each process, so that a restarted agent can take over its pod.
//
//   note := "1" GRACE_MS JOB_UID POD_NAME CONTAINER                      a pod of one process
//         | "2" GRACE_MS JOB_UID POD_NAME CONTAINER GENERATION LEVEL POD_STARTED_MS DEVICES [USED
//         [STOP]] | "3" GRACE_MS JOB_UID POD_NAME CONTAINER SESSION                a session
//         (sessions.hpp)
//   DEVICES := "-" | NAME=N,N… (";" NAME=N,N…)*
//   USED := "-" | USER_US,SYSTEM_US,PEAK_BYTES
//   STOP := an EndCause, as a number: of an epilog, why its pod was ended
//
// No field contains a space. JOB_UID and GENERATION name the template (TemplateStore); LEVEL,
// POD_STARTED_MS, DEVICES, USED and STOP come from core::node::StartOrder. POD_STARTED_MS is boot
// time, because no pod survives a reboot.
#pragma once

#include "core/node/values.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace muster::agent {

struct Note {
  Millis grace_ms = 0;
  std::string job_uid;
  std::string pod_name;
  std::string container;
  bool planned = false;  // a version 2 note: the fields below are set
  int64_t generation = 0;
  uint16_t level = 0;
  std::optional<Millis> pod_started_at{};
  core::node::DeviceMapPtr devices{};  // null: none
  core::Usage used{};
  std::optional<core::EndCause> stop{};
  std::string session{};  // id; empty: of a pod

  std::string text() const;
  // A damaged or unknown note parses as an empty one.
  static Note parse(std::string_view text);
};

}  // namespace muster::agent
