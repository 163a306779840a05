// Keys: the format of the journal's keys.
//
//   key      = meta | node | owner | records | snapshot | attempts | summary | kept | epochs
//            | token | revoked | claims | history
//   meta     = "m" name       names: "format" "commit" "cluster" "cluster_key" "permit_key"
//                             "seal_key" "epoch" "next_job" "authority" "uses" "history";
//                             values are ASCII text
//   node     = "n" u32        NodeId           -> NodeRow (schema/journal.capnp)
//   owner    = "o" u64        JobId            -> JSON text, the owner's object
//   records  = "r" u64 u64    JobId, sequence  -> RecordList, one append
//   snapshot = "s" u64        JobId            -> JobSnapshot
//   attempts = "a" u64 u64    JobId, sequence  -> AttemptList, the attempts that this append closed
//   summary  = "i" u64        JobId            -> SummaryRow, of a finished job that is unloaded
//   kept     = "k" u64        id               -> KeptRow, an object stored for clients
//   epochs   = "e" u64        epoch            -> "NONCE FIRST_COMMIT" or
//                             "NONCE FIRST_COMMIT restored": a start that served
//   token    = "t" text       its id            -> TokenRow
//   revoked  = "g" text       a node's name     -> its generation, decimal (core/trust.hpp)
//   claims   = "l" text       a node's name     -> ClaimsRow
//   history  = "h" u64        JobId            -> HistoryRow, of a job that has ended or is deleted
//
// Numbers are big-endian, so a scan visits them in order. A job's sequences start at 1 and have no
// gaps: a snapshot replaces all appends up to its own sequence, and the rows after it are
// consecutive.
#pragma once

#include "core/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::storage::keys {

constexpr std::string_view kFormat = "mformat";           // "1"
constexpr std::string_view kCommit = "mcommit";           // number of the last batch, in that batch
constexpr std::string_view kCluster = "mcluster";         // cluster id
constexpr std::string_view kClusterKey = "mcluster_key";  // agents present it as proof
constexpr std::string_view kPermitKey = "mpermit_key";    // private, signs permits
constexpr std::string_view kSealKey = "mseal_key";        // private, seals history told to agents
constexpr std::string_view kEpoch = "mepoch";             // "EPOCH NONCE"
constexpr std::string_view kNextJob = "mnext_job";        // no job id at or above it was issued
constexpr std::string_view kAuthority = "mauthority";     // key and certificate, PEM
constexpr std::string_view kUses = "muses";          // "AT_MS", then lines "UID PARTS", of 10^9
constexpr std::string_view kHistoryOf = "mhistory";  // the last epoch that kept the history
constexpr std::string_view kNodes = "n";
constexpr std::string_view kOwners = "o";
constexpr std::string_view kRecords = "r";
constexpr std::string_view kSnapshots = "s";
constexpr std::string_view kAttempts = "a";
constexpr std::string_view kEpochs = "e";  // the line of epochs
constexpr std::string_view kSummary = "i";
constexpr std::string_view kKept = "k";
constexpr std::string_view kTokens = "t";
constexpr std::string_view kRevoked = "g";
constexpr std::string_view kClaims = "l";
constexpr std::string_view kHistory = "h";

template <class Number>
void append_number(std::string& key, Number number) {
  for (int shift = sizeof(Number) * 8 - 8; shift >= 0; shift -= 8) {
    key.push_back(static_cast<char>(number >> shift & 0xff));
  }
}

// Removes the number at the front of `rest`; nullopt if there are too few bytes.
template <class Number>
std::optional<Number> take_number(std::string_view& rest) {
  if (rest.size() < sizeof(Number)) return std::nullopt;
  Number number = 0;
  for (size_t i = 0; i < sizeof(Number); ++i) {
    number = static_cast<Number>(number << 8 | static_cast<uint8_t>(rest[i]));
  }
  rest.remove_prefix(sizeof(Number));
  return number;
}

// A key of this kind followed by a number.
template <class Number>
std::string numbered(std::string_view kind, Number number) {
  std::string key(kind);
  append_number(key, number);
  return key;
}

inline std::string node(NodeId id) {
  return numbered(kNodes, id);
}

inline std::string epoch(uint64_t number) {
  return numbered(kEpochs, number);
}

inline std::string kept(uint64_t id) {
  return numbered(kKept, id);
}

inline std::string owner(JobId job) {
  return numbered(kOwners, job);
}

inline std::string summary(JobId job) {
  return numbered(kSummary, job);
}

inline std::string history(JobId job) {
  return numbered(kHistory, job);
}

inline std::string snapshot(JobId job) {
  return numbered(kSnapshots, job);
}

// The prefix of all records of a job.
inline std::string records_of(JobId job) {
  return numbered(kRecords, job);
}

inline std::string records(JobId job, uint64_t sequence) {
  std::string key = records_of(job);
  append_number(key, sequence);
  return key;
}

// The prefix of all attempts of a job.
inline std::string attempts_of(JobId job) {
  return numbered(kAttempts, job);
}

inline std::string attempts(JobId job, uint64_t sequence) {
  std::string key = attempts_of(job);
  append_number(key, sequence);
  return key;
}

struct RecordsKey {
  JobId job = 0;
  uint64_t sequence = 0;
};

// nullopt: not a node's key.
inline std::optional<NodeId> parse_node(std::string_view key) {
  if (key.substr(0, 1) != kNodes) return std::nullopt;
  key.remove_prefix(1);
  auto id = take_number<NodeId>(key);
  return key.empty() ? id : std::nullopt;
}

// An owner's or a snapshot's key, by `kind` (kOwners, kSnapshots).
inline std::optional<JobId> parse_job(std::string_view kind, std::string_view key) {
  if (key.substr(0, 1) != kind) return std::nullopt;
  key.remove_prefix(1);
  auto id = take_number<JobId>(key);
  return key.empty() ? id : std::nullopt;
}

// A key of records or of attempts, by `kind` (kRecords, kAttempts).
inline std::optional<RecordsKey> parse_records(std::string_view key,
                                               std::string_view kind = kRecords) {
  if (key.substr(0, 1) != kind) return std::nullopt;
  key.remove_prefix(1);
  auto job = take_number<JobId>(key);
  auto sequence = take_number<uint64_t>(key);
  if (!job || !sequence || !key.empty()) return std::nullopt;
  return RecordsKey{*job, *sequence};
}

}  // namespace muster::storage::keys
