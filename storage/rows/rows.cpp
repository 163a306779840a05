#include "storage/rows/rows.hpp"

#include "storage/codec/codec.hpp"
#include "storage/journal/keys.hpp"
#include "storage/journal/text_number.hpp"

#include <cmath>
#include <limits>
#include <variant>

namespace muster::storage {
namespace {

constexpr int kUseParts = 1'000'000'000;  // of the whole cluster, in a row of uses

const core::JobObject* object_of(const core::Record& record) {
  if (const auto* admitted = std::get_if<core::JobAdmitted>(&record)) return admitted->object.get();
  if (const auto* changed = std::get_if<core::JobSpecChanged>(&record))
    return changed->object.get();
  return nullptr;
}

void remove_tail(std::vector<Row>& rows, JobId job, uint64_t first, uint64_t last) {
  for (uint64_t sequence = first; sequence <= last; ++sequence) {
    rows.push_back({keys::records(job, sequence), std::nullopt});
  }
}

}  // namespace

std::vector<Row> job_rows(JobId job, uint64_t sequence, const std::vector<core::Record>& records) {
  std::vector<Row> rows;
  const core::JobObject* newest = nullptr;
  for (const core::Record& record : records) {
    if (const core::JobObject* object = object_of(record)) newest = object;
  }
  if (newest != nullptr) rows.push_back({keys::owner(job), newest->json});
  rows.push_back({keys::records(job, sequence), encode_records(records)});
  return rows;
}

std::vector<Row> snapshot_rows(JobId job, const core::JobState& state, uint64_t sequence,
                               uint64_t first_tail) {
  std::vector<Row> rows{{keys::snapshot(job), encode_state(state, sequence)}};
  remove_tail(rows, job, first_tail, sequence);
  return rows;
}

std::vector<Row> forget_rows(JobId job, uint64_t sequence, uint64_t first_tail) {
  std::vector<Row> rows{{keys::owner(job), std::nullopt},
                        {keys::snapshot(job), std::nullopt},
                        {keys::summary(job), std::nullopt}};
  remove_tail(rows, job, first_tail, sequence);
  return rows;
}

Row node_row(const core::NodeInfo& node) {
  return {keys::node(node.id), encode_node(node)};
}

Row kept_row(const core::Kept& kept) {
  return {keys::kept(kept.id), encode_kept(kept)};
}

Row forget_kept_row(uint64_t id) {
  return {keys::kept(id), std::nullopt};
}

Row cluster_row(const std::string& cluster_id) {
  return {std::string(keys::kCluster), cluster_id};
}

Row cluster_key_row(const std::string& key) {
  return {std::string(keys::kClusterKey), key};
}

Row permit_key_row(const std::string& key) {
  return {std::string(keys::kPermitKey), key};
}

Row seal_key_row(const std::string& key) {
  return {std::string(keys::kSealKey), key};
}

Row authority_row(const std::string& pems) {
  return {std::string(keys::kAuthority), pems};
}

Row token_row(const core::Token& token) {
  return {std::string(keys::kTokens) + token.id, encode_token(token)};
}

Row forget_token_row(const std::string& id) {
  return {std::string(keys::kTokens) + id, std::nullopt};
}

Row revoked_row(const std::string& node, uint64_t generation) {
  return {std::string(keys::kRevoked) + node, std::to_string(generation)};
}

Row claims_row(const std::string& node, const core::NodeClaims& claims) {
  return {std::string(keys::kClaims) + node, encode_claims(claims)};
}

Row epoch_row(uint64_t epoch, uint64_t nonce) {
  return {std::string(keys::kEpoch), std::to_string(epoch) + " " + std::to_string(nonce)};
}

Row line_row(const core::EpochEntry& entry) {
  return {keys::epoch(entry.epoch), std::to_string(entry.nonce) + " " +
                                        std::to_string(entry.first_commit) +
                                        (entry.restored ? " restored" : "")};
}

Row forget_line_row(uint64_t epoch) {
  return {keys::epoch(epoch), std::nullopt};
}

Row uses_row(const core::NotedUses& noted) {
  std::string text = std::to_string(noted.at_ms);
  for (const auto& [user, use] : noted.uses)
    text += "\n" + std::to_string(user) + " " + std::to_string(std::llround(use * kUseParts));
  return {std::string(keys::kUses), std::move(text)};
}

std::optional<core::NotedUses> read_uses(std::string_view row) {
  core::NotedUses noted;
  const std::string_view first = row.substr(0, row.find('\n'));
  const auto at_ms = parse_number(first);
  if (!at_ms) return std::nullopt;
  noted.at_ms = static_cast<Millis>(*at_ms);
  row.remove_prefix(first.size());
  while (!row.empty()) {
    row.remove_prefix(1);
    const std::string_view line = row.substr(0, row.find('\n'));
    const size_t space = line.find(' ');
    if (space == line.npos) return std::nullopt;
    const auto user = parse_number(line.substr(0, space));
    const auto parts = parse_number(line.substr(space + 1));
    if (!user || *user > std::numeric_limits<core::UserId>::max() || !parts || *parts > kUseParts)
      return std::nullopt;
    noted.uses[static_cast<core::UserId>(*user)] = static_cast<double>(*parts) / kUseParts;
    row.remove_prefix(line.size());
  }
  return noted;
}

Row next_job_row(JobId end) {
  return {std::string(keys::kNextJob), std::to_string(end)};
}

}  // namespace muster::storage
