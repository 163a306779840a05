// Audit: one line of JSON for each request that changes something, reads a log, or is refused:
// when, who, from where, what, and the outcome. Never a body.
#pragma once

#include "api/access/attributes.hpp"
#include "api/access/caller.hpp"
#include "base/clock.hpp"

#include <string>

namespace muster::api {

struct AuditEntry {
  const Caller& caller;
  const Attributes& wants;
  std::string source;      // "unix", or the host at the other end
  std::string user_agent;  // as sent
  int code = 0;            // of the response; 0: the client left before it had one
};

// Whether this request belongs into the audit log.
bool is_audited(const AuditEntry& entry);
std::string audit_line(const AuditEntry& entry, Millis now_ms);

}  // namespace muster::api
