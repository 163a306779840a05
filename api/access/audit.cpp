#include "api/access/audit.hpp"

#include "base/text/json.hpp"
#include "core/job/fold/text.hpp"

#include <cctype>

namespace muster::api {
namespace {

constexpr size_t kTextMax = 256;  // bytes kept of each text that a client chooses

void add(OrderedJson& line, const char* name, std::string_view text) {
  if (!text.empty()) line[name] = text.substr(0, kTextMax);
}

std::string journal_name(const std::string& member) {
  std::string name = "MUSTER_";
  for (const char c : member) {
    if (std::isupper(static_cast<unsigned char>(c))) name += '_';
    name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace

bool is_audited(const AuditEntry& entry) {
  const Attributes& wants = entry.wants;
  if (entry.code == 401 || entry.code == 403) return true;
  if (wants.resource.empty()) return false;
  const bool reads = wants.verb == "get" || wants.verb == "list" || wants.verb == "watch";
  // Input belongs to a command whose start and end are audited.
  if (wants.group == "muster.dev" && wants.subresource == "exec" && wants.verb == "update")
    return false;
  const bool reviews =
      wants.group == "authorization.k8s.io" || wants.group == "authentication.k8s.io";
  // A GET may start a command, too: as a WebSocket.
  const bool starts = wants.group.empty() && wants.subresource == "exec";
  return reads ? wants.subresource == "log" || starts : !reviews;
}

bool is_change(const AuditEntry& entry) {
  const Attributes& wants = entry.wants;
  const bool many = wants.verb == "deletecollection";
  const bool new_job = wants.resource == "jobs" && wants.name.empty() && !many;
  return entry.code / 100 == 2 && is_audited(entry) && (many || !entry.name().empty()) &&
         !new_job && wants.verb != "get" && wants.resource != "leases" &&
         wants.resource != "events";
}

std::string change_text(const AuditEntry& entry) {
  const Attributes& wants = entry.wants;
  return wants.verb + " " + wants.resource + (wants.subresource.empty() ? "" : "/") +
         wants.subresource + " " + wants.ns +
         (wants.ns.empty() || entry.name().empty() ? "" : "/") + std::string(entry.name()) +
         " by " + entry.caller.called() + " (uid " + std::to_string(entry.caller.who.uid) + ")";
}

OrderedJson audit_object(const AuditEntry& entry, Millis now_ms) {
  const Attributes& wants = entry.wants;
  OrderedJson line;
  line["time"] = core::instant_text(now_ms);
  add(line, "user", entry.caller.who.name);
  if (entry.code != 401) line["uid"] = entry.caller.who.uid;  // otherwise unknown
  line["role"] = name(entry.caller.role);
  add(line, "source", entry.source);
  add(line, "userAgent", entry.user_agent);
  add(line, "verb", wants.verb);
  add(line, "group", wants.group);
  add(line, "resource", wants.resource);
  add(line, "subresource", wants.subresource);
  add(line, "namespace", wants.ns);
  add(line, "name", entry.name());
  add(line, "path", wants.path);
  line["code"] = entry.code;
  return line;
}

std::vector<JournalField> audit_journal(const OrderedJson& object) {
  const int code = object.value("code", 0);
  std::vector<JournalField> fields = {{"MESSAGE", dumped(object)},
                                      {"PRIORITY", code == 401 || code == 403 ? "5" : "6"}};
  for (const auto& [name, value] : object.items())
    if (name != "time")
      fields.push_back(
          {journal_name(name), value.is_string() ? value.get<std::string>() : dumped(value)});
  return fields;
}

}  // namespace muster::api
