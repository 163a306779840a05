// Audit: one object for each request that changes something, reads a log or is refused: when, who,
// from where, what, and the outcome, but never a body. It becomes a line of JSON in the audit log
// and an entry in the system journal.
#pragma once

#include "api/access/attributes.hpp"
#include "api/access/caller.hpp"
#include "base/clock.hpp"
#include "base/system_journal.hpp"
#include "base/text/json.hpp"

#include <string>
#include <vector>

namespace muster::api {

struct AuditEntry {
  const Caller& caller;
  const Attributes& wants;
  std::string source;      // "unix", or the peer's address
  std::string user_agent;  // as sent
  int code = 0;            // of the response; 0: the client disconnected before it got one
};

// Whether this request belongs in the audit log.
bool is_audited(const AuditEntry& entry);
OrderedJson audit_object(const AuditEntry& entry, Millis now_ms);
// MESSAGE is the line, PRIORITY is "notice" for a refusal and "info" otherwise, and each member
// except the time is a field: `userAgent` becomes MUSTER_USER_AGENT.
std::vector<JournalField> audit_journal(const OrderedJson& object);

}  // namespace muster::api
