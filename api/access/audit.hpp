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
#include <string_view>
#include <vector>

namespace muster::api {

struct AuditEntry {
  const Caller& caller;
  const Attributes& wants;
  std::string_view source;      // "unix", or the peer's address
  std::string_view user_agent;  // as sent
  int code = 0;                 // of the response; 0: the client disconnected before it got one
  std::string_view made{};      // Exchange::made

  std::string_view name() const { return wants.name.empty() ? made : wants.name; }
};

// Whether this request belongs in the audit log.
bool is_audited(const AuditEntry& entry);
// Whether it is a change of an object that clients do not make again and again, as of leases and
// events, and whose name is known. Jobs say themselves that they were created, and by whom.
bool is_change(const AuditEntry& entry);
// "patch jobs/scale default/sweep by ada (uid 1000)", for the log.
std::string change_text(const AuditEntry& entry);
OrderedJson audit_object(const AuditEntry& entry, Millis now_ms);
// MESSAGE is the line, PRIORITY is "notice" for a refusal and "info" otherwise, and each member
// except the time is a field: `userAgent` becomes MUSTER_USER_AGENT.
std::vector<JournalField> audit_journal(const OrderedJson& object);

}  // namespace muster::api
