// Codec: converts core values to the bytes of journal rows and back.
//
// Packed Cap'n Proto (schema/journal.capnp; docs/formats.md). decode(encode(x)) == x, except for
// the objects of JobAdmitted and JobSpecChanged, which have their own rows, and the part of
// NodeInfo that is not durable. JobAdmitted keeps only the parts of its object that the fold starts
// from: generation, parallelism and completions; it is decoded with an object that has only these.
// A decoder never guesses: an unknown version, a truncated value or a number outside its
// enumeration yields an Error that says so.
#pragma once

#include "base/result.hpp"
#include "core/cluster/nodes/node_info.hpp"
#include "core/job/facts/record.hpp"
#include "core/job/fold/job.hpp"
#include "core/kept.hpp"
#include "core/trust.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::storage {

// The records of one append.
std::string encode_records(const std::vector<core::Record>& records);
Result<std::vector<core::Record>> decode_records(std::string_view bytes);

// A snapshot: a job's state after its appends up to and including `sequence`.
struct Snapshot {
  core::JobState state;
  uint64_t sequence = 0;
};
std::string encode_state(const core::JobState& state, uint64_t sequence);
Result<Snapshot> decode_state(std::string_view bytes);

// Attempts that have ended and been judged, closed by one append at `at_ms`.
struct ClosedAttempts {
  Millis at_ms = 0;
  std::vector<core::Pod> pods;
};
std::string encode_attempts(Millis at_ms, const std::vector<core::Pod>& pods);
Result<ClosedAttempts> decode_attempts(std::string_view bytes);
struct AttemptsHead {
  Millis at_ms = 0;
  uint32_t count = 0;
};
Result<AttemptsHead> attempts_head(std::string_view bytes);

// The durable part of a node.
std::string encode_node(const core::NodeInfo& node);
Result<core::NodeInfo> decode_node(std::string_view bytes);

std::string encode_kept(const core::Kept& kept);
Result<core::Kept> decode_kept(std::string_view bytes);

std::string encode_token(const core::Token& token);
Result<core::Token> decode_token(std::string_view bytes);

std::string encode_claims(const core::NodeClaims& claims);
Result<core::NodeClaims> decode_claims(std::string_view bytes);

}  // namespace muster::storage
