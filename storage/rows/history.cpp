#include "storage/rows/history.hpp"

#include "schema/journal.capnp.h"
#include "storage/codec/codec_util.hpp"
#include "storage/journal/keys.hpp"

#include <optional>
#include <string>

namespace muster::storage {
namespace {

using codec::core_enum;
using codec::instant;
using codec::optional_instant_back;
using codec::text;
using codec::text_back;
using codec::wire_enum;

constexpr const char* kHistoryWhat = "a history row";

core::HistoryEntry entry_back(JobId job, wire::HistoryRow::Reader row) {
  const Millis base_ms = row.getCreatedMs();
  core::HistoryEntry entry{.id = job,
                           .ns = text_back(row.getNamespace()),
                           .name = text_back(row.getName()),
                           .uid = text_back(row.getUid())};
  if (row.getHasOwner()) entry.owner = row.getOwnerUid();
  entry.group = row.getOwnerGid();
  entry.user = text_back(row.getUser());
  entry.queue = text_back(row.getQueue());
  entry.command = text_back(row.getCommand());
  entry.state = core_enum(row.getState(), core::PastState::deleted);
  entry.reason = text_back(row.getReason());
  entry.message = text_back(row.getMessage());
  entry.removal = core_enum(row.getRemoval(), core::Removal::expired);
  entry.created_ms = base_ms;
  entry.started = optional_instant_back(row.getStarted(), base_ms);
  entry.waited_ms = row.getWaitedMs();
  entry.ended = optional_instant_back(row.getEnded(), base_ms);
  entry.removed = optional_instant_back(row.getRemoved(), base_ms);
  entry.indexed = row.getIndexed();
  entry.tasks = text_back(row.getTasks());
  entry.indexes = row.getIndexes();
  entry.succeeded = row.getSucceeded();
  entry.failed_indexes = row.getFailedIndexes();
  entry.cancelled_indexes = row.getCancelledIndexes();
  entry.attempts = row.getAttempts();
  entry.failed_attempts = row.getFailedAttempts();
  entry.used = wire::read_usage(row.getUsed());
  entry.ran_ms = row.getRanMs();
  entry.requested.cpu_millis = row.getCpuMillis();
  entry.requested.memory_bytes = row.getMemoryBytes();
  for (auto one : row.getNamed()) entry.requested.named[text_back(one.getName())] = one.getCount();
  return entry;
}

// The job of this key; 0: it is malformed.
JobId job_of(std::string_view key) {
  return keys::parse_job(keys::kHistory, key).value_or(0);
}

}  // namespace

Row history_row(const core::HistoryEntry& entry) {
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::HistoryRow>();
  const Millis base_ms = entry.created_ms;
  out.setVersion(wire::HISTORY_VERSION);
  out.setCreatedMs(base_ms);
  out.setState(wire_enum<wire::HistoryRow::State>(entry.state));
  out.setNamespace(text(entry.ns));
  out.setName(text(entry.name));
  out.setUid(text(entry.uid));
  out.setHasOwner(entry.owner.has_value());
  out.setOwnerUid(entry.owner.value_or(0));
  out.setOwnerGid(entry.group);
  out.setUser(text(entry.user));
  out.setQueue(text(entry.queue));
  out.setCommand(text(entry.command));
  out.setReason(text(entry.reason));
  out.setMessage(text(entry.message));
  out.setRemoval(wire_enum<wire::HistoryRow::Removal>(entry.removal));
  out.setStarted(instant(entry.started, base_ms));
  out.setWaitedMs(entry.waited_ms);
  out.setEnded(instant(entry.ended, base_ms));
  out.setRemoved(instant(entry.removed, base_ms));
  out.setIndexed(entry.indexed);
  if (!entry.tasks.empty()) out.setTasks(text(entry.tasks));
  out.setIndexes(entry.indexes);
  out.setSucceeded(entry.succeeded);
  out.setFailedIndexes(entry.failed_indexes);
  out.setCancelledIndexes(entry.cancelled_indexes);
  out.setAttempts(entry.attempts);
  out.setFailedAttempts(entry.failed_attempts);
  wire::write_usage(entry.used, [&out] { return out.initUsed(); });
  out.setRanMs(entry.ran_ms);
  out.setCpuMillis(entry.requested.cpu_millis);
  out.setMemoryBytes(entry.requested.memory_bytes);
  unsigned i = 0;
  auto named = out.initNamed(static_cast<uint32_t>(entry.requested.named.size()));
  for (const auto& [name, count] : entry.requested.named) {
    named[i].setName(text(name));
    named[i++].setCount(count);
  }
  return {keys::history(entry.id), codec::packed(message)};
}

Result<core::HistoryEntry> decode_history(JobId job, std::string_view bytes) {
  return codec::unpacked<wire::HistoryRow, core::HistoryEntry>(
      bytes, kHistoryWhat, wire::HISTORY_VERSION, [job](auto row) { return entry_back(job, row); });
}

Result<core::HistoryEntry> read_history(Rows& rows, JobId job) {
  auto row = rows.get(keys::history(job));
  if (!row) return row.error();
  if (!*row) return Error{Errc::not_found, "journal: no history row", {}};
  return decode_history(job, **row);
}

Status scan_history(Rows& rows, JobId after,
                    const std::function<bool(const core::HistoryEntry&)>& visit) {
  return rows.scan_from(keys::kHistory, keys::history(after + 1),
                        [&visit](std::string_view key, std::string_view value) {
                          auto entry = decode_history(job_of(key), value);
                          return !entry || visit(*entry);
                        });
}

std::vector<Row> outdated_history(Rows& rows, Millis before_ms, uint64_t keep, size_t rows_max) {
  std::vector<Row> out;
  uint64_t total = 0;
  auto count = [&total](std::string_view, std::string_view) { return ++total != 0; };
  if (keep != 0 && !rows.scan(keys::kHistory, count)) return out;
  const uint64_t surplus = keep != 0 && total > keep ? total - keep : 0;
  uint64_t passed = 0;
  // Ids rise with the time of creation, and no job ends before it is created.
  auto visit = [&](std::string_view key, std::string_view value) {
    if (keep == 0) {
      out.push_back({std::string(key), std::nullopt});
      return out.size() < rows_max;
    }
    const JobId job = job_of(key);
    const auto entry = decode_history(job, value);
    const bool too_many = passed++ < surplus;
    if (!too_many && entry && entry->created_ms >= before_ms) return false;
    const bool too_old = entry && entry->ended.value_or(before_ms) < before_ms;
    if (!too_many && !too_old) return true;
    const auto owner = rows.get(keys::owner(job));
    if (owner && !*owner) out.push_back({std::string(key), std::nullopt});
    return out.size() < rows_max;
  };
  // What was found before an error is outdated in any case.
  (void)rows.scan(keys::kHistory, visit);
  return out;
}

}  // namespace muster::storage
