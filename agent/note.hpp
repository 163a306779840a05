// Note: what the keeper keeps beside a process, so that a restarted agent takes its pod back.
//
//   note := "1" GRACE_MS JOB_UID POD_NAME CONTAINER                      a pod of one process
//         | "2" GRACE_MS JOB_UID POD_NAME CONTAINER GENERATION LEVEL POD_STARTED_MS DEVICES
//   DEVICES := "-" | NAME=N,N… (";" NAME=N,N…)*
//
// None of them has a space. GENERATION names the template (TemplateStore); the others are those of
// core::node::StartOrder. POD_STARTED_MS is boot time, which a note never outlives.
#pragma once

#include "core/node/values.hpp"

#include <string>
#include <string_view>

namespace muster::agent {

struct Note {
  Millis grace_ms = 0;
  std::string job_uid;
  std::string pod_name;
  std::string container;
  bool planned = false;  // what follows is there
  int64_t generation = 0;
  uint16_t level = 0;
  Millis pod_started_at = 0;
  core::node::DeviceMapPtr devices{};  // null: none

  std::string text() const;
  // Of a damaged or unknown note the fields are empty.
  static Note parse(std::string_view text);
};

}  // namespace muster::agent
