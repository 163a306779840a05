// Shared by the codecs of storage/: packing, instants, checked enumerations. Included by
// storage/codec/*.cpp and storage/rows/summary_row.cpp only.
//
// Decoders throw kj::Exception on a bad value, as Cap'n Proto itself does; unpacked() is the one
// place where both become an Error.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "core/job/facts/pod.hpp"
#include "core/job/facts/record.hpp"
#include "schema/journal.capnp.h"
#include "schema/pod_end.hpp"

#include <capnp/message.h>
#include <capnp/serialize-packed.h>
#include <kj/exception.h>
#include <kj/io.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::storage::codec {

// The runs of one record may expand to at most this many pods, so that a corrupt count can't
// exhaust memory.
constexpr uint64_t kPodsMax = uint64_t{1} << 24;

// Two packed bytes can stand for 256 words of zeros, and a decoder may read a list twice. Without
// this limit a wrong length in a damaged value would allocate gigabytes.
constexpr uint64_t kWordsPerByteMax = 2 * 128;

inline std::string packed(capnp::MessageBuilder& message) {
  kj::VectorOutputStream out(
      capnp::computeSerializedSizeInWords(message) * sizeof(capnp::word) / 2 + 64);
  capnp::writePackedMessage(out, message);
  auto bytes = out.getArray();
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

// Reads `bytes` as a Root whose version must be `version`, and returns read(root). `conflict`: it
// has another version; `invalid`: it is damaged.
template <class Root, class T, class Read>
Result<T> unpacked(std::string_view bytes, const char* what, uint32_t version, Read read) {
  // Returned outside the try block: readers throw in their destructors too, which would lose a
  // value that is being returned.
  T value{};
  std::string problem;
  bool other_version = false;
  try {
    kj::ArrayInputStream in(
        kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
    capnp::ReaderOptions limits;
    limits.traversalLimitInWords = bytes.size() * kWordsPerByteMax + 1024;
    capnp::PackedMessageReader message(in, limits);
    auto root = message.getRoot<Root>();
    if (root.getVersion() != version) {
      other_version = true;
      problem = std::string(what) + " of version " + std::to_string(root.getVersion()) +
                "; this muster knows " + std::to_string(version);
    } else {
      value = read(root);
      KJ_REQUIRE(in.tryGetReadBuffer().size() == 0, "bytes after the end");
    }
  } catch (const kj::Exception& e) {
    if (problem.empty())
      problem = std::string(what) + " can't be read: " + e.getDescription().cStr();
  }
  if (!problem.empty())
    return Error{other_version ? Errc::conflict : Errc::invalid, std::move(problem), {}};
  return value;
}

// Encodes an instant as its difference from a base; 0 (absent) stays 0. Differences wrap, so every
// instant except the one 2^63 ms before the base has a unique code.
inline uint64_t instant(Millis at_ms, Millis base_ms) {
  if (at_ms == 0) return 0;
  uint64_t delta = static_cast<uint64_t>(at_ms) - static_cast<uint64_t>(base_ms);
  return (delta << 1 ^ (delta >> 63 != 0 ? UINT64_MAX : 0)) + 1;
}
inline uint64_t instant(const std::optional<Millis>& at, Millis base_ms) {
  return at ? instant(*at, base_ms) : 0;
}
inline Millis instant_back(uint64_t code, Millis base_ms) {
  if (code == 0) return 0;
  --code;
  uint64_t delta = code >> 1 ^ ((code & 1) != 0 ? UINT64_MAX : 0);
  return static_cast<Millis>(static_cast<uint64_t>(base_ms) + delta);
}

inline std::optional<Millis> optional_instant_back(uint64_t code, Millis base_ms) {
  if (code == 0) return std::nullopt;
  return instant_back(code, base_ms);
}

inline capnp::Text::Reader text(const std::string& s) {
  return {s.c_str(), s.size()};
}
// `name` must be NUL-terminated.
inline capnp::Text::Reader text(std::string_view name) {
  return {name.data(), name.size()};
}
inline std::string text_back(capnp::Text::Reader t) {
  return std::string(t.begin(), t.size());
}

// Enumerators have the same numbers in core and on the wire; the asserts check that.
template <class Wire, class Core>
Wire wire_enum(Core value) {
  return static_cast<Wire>(value);
}
template <class Core, class Wire>
Core core_enum(Wire value, Core last) {
  KJ_REQUIRE(static_cast<uint16_t>(value) <= static_cast<uint16_t>(last), "unknown enumerant",
             static_cast<uint16_t>(value));
  return static_cast<Core>(value);
}
static_assert(static_cast<int>(core::Counted::cancelled) ==
              static_cast<int>(wire::Counted::CANCELLED));
static_assert(static_cast<int>(core::FailureAction::fail_job) ==
              static_cast<int>(wire::FailureAction::FAIL_JOB));

inline core::FailureAction action_back(wire::FailureAction value) {
  return core_enum(value, core::FailureAction::fail_job);
}
inline core::Steps steps_back(uint8_t memory, uint8_t time) {
  KJ_REQUIRE(memory <= core::kRetryStepsMax && time <= core::kRetryStepsMax, "too many steps",
             memory, time);
  return {memory, time};
}
inline core::Readiness readiness_back(wire::Readiness value) {
  const auto readiness = wire::from_wire(value);
  KJ_REQUIRE(readiness.has_value(), "unknown enumerant", static_cast<uint16_t>(value));
  return *readiness;
}
inline void write_break(const core::GangBreak& broken, wire::GangBreak::Builder to) {
  // Fails to compile when a break gets a member that is not written below.
  [[maybe_unused]] const auto& [by, whole, leader_pays, why] = broken;
  to.setIndex(by.index);
  to.setAttempt(by.attempt);
  to.setWhole(whole);
  to.setLeaderPays(leader_pays);
  to.setWhy(text(why));
}

inline core::GangBreak break_back(wire::GangBreak::Reader in) {
  return {.by = {in.getIndex(), in.getAttempt()},
          .whole = in.getWhole(),
          .leader_pays = in.getLeaderPays(),
          .why = text_back(in.getWhy())};
}

// Without its instant.
inline void write_hold(const core::JobHeld& hold, wire::Hold::Builder to) {
  // Fails to compile when a hold gets a member that is not written below.
  [[maybe_unused]] const auto& [at_ms, by, by_operator, reason] = hold;
  to.setBy(text(by));
  to.setByOperator(by_operator);
  if (!reason.empty()) to.setReason(text(reason));
}

inline core::JobHeld hold_back(wire::Hold::Reader in, Millis at_ms) {
  return {at_ms, text_back(in.getBy()), in.getByOperator(), text_back(in.getReason())};
}

// Likewise.
inline void write_overrides(const core::OverridesSet& set, wire::Priority::Builder to) {
  [[maybe_unused]] const auto& [at_ms, overrides, by] = set;
  const auto& [priority, queue, time_limit_s] = overrides;
  to.setBy(text(by));
  to.setSet(priority.has_value());
  to.setValue(priority.value_or(0));
  if (queue) to.setQueue(text(*queue));
  to.setTimeLimit(time_limit_s.value_or(-1));
}

inline core::OverridesSet overrides_back(wire::Priority::Reader in, Millis at_ms) {
  core::Overrides overrides;
  if (in.getSet()) overrides.priority = in.getValue();
  if (in.hasQueue()) overrides.queue = text_back(in.getQueue());
  if (in.getTimeLimit() >= 0) overrides.time_limit_s = in.getTimeLimit();
  return {at_ms, std::move(overrides), text_back(in.getBy())};
}

static_assert(static_cast<int>(core::Needed::each) == static_cast<int>(wire::Needed::EACH));
static_assert(static_cast<int>(core::DependencyEnd::waived) ==
              static_cast<int>(wire::DependencyEnd::WAIVED));

inline void write_dependencies(const std::vector<core::Dependency>& from,
                               capnp::List<wire::Dependency>::Builder to) {
  uint32_t i = 0;
  for (const auto& [job, after] : from) {
    auto one = to[i++];
    one.setJob(job);
    one.setName(text(after.job));
    one.setNeeded(wire_enum<wire::Needed>(after.needed));
  }
}

inline std::vector<core::Dependency> dependencies_back(capnp::List<wire::Dependency>::Reader from) {
  std::vector<core::Dependency> to;
  for (auto one : from)
    to.push_back(
        {one.getJob(), {core_enum(one.getNeeded(), core::Needed::each), text_back(one.getName())}});
  return to;
}

// An interval is two numbers: the gap of indexes between it and the previous one (or the start),
// and its length minus one.
template <class Init>
void write_set(const core::IndexSet& set, Init init) {
  auto list = init(static_cast<uint32_t>(set.intervals().size() * 2));
  uint32_t at = 0;
  uint64_t next = 0;
  for (const auto& [first, last] : set.intervals()) {
    list.set(at++, static_cast<uint32_t>(first - next));
    list.set(at++, last - first);
    next = uint64_t{last} + 1;
  }
}

inline core::IndexSet set_back(capnp::List<uint32_t>::Reader list) {
  KJ_REQUIRE(list.size() % 2 == 0, "half an interval");
  core::IndexSet set;
  uint64_t next = 0;
  for (uint32_t at = 0; at < list.size(); at += 2) {
    uint64_t first = next + list[at];
    uint64_t last = first + list[at + 1];
    KJ_REQUIRE(last <= UINT32_MAX, "an interval beyond the indexes");
    set.insert_range(static_cast<uint32_t>(first), static_cast<uint32_t>(last));
    next = last + 1;
  }
  return set;
}

inline core::Counted counted_back(wire::Counted value) {
  return core_enum(value, core::Counted::cancelled);
}
inline core::EndCause cause_back(wire::EndCause value) {
  const auto cause = wire::from_wire(value);
  KJ_REQUIRE(cause.has_value(), "unknown enumerant", static_cast<uint16_t>(value));
  return *cause;
}

// Encodes a grace period; 0 stands for the template's (nullopt).
inline uint64_t grace(const std::optional<Millis>& grace_ms) {
  return grace_ms ? static_cast<uint64_t>(*grace_ms) + 1 : 0;
}
inline std::optional<Millis> grace_back(uint64_t code) {
  if (code == 0) return std::nullopt;
  return static_cast<Millis>(code - 1);
}

// A pid; 0 if there is none.
constexpr int32_t kNoPid = 0;
inline std::optional<int32_t> pid_back(int32_t pid) {
  return pid == kNoPid ? std::nullopt : std::optional(pid);
}

// Encodes completions; -1 stands for absent.
inline int32_t completions(const std::optional<int32_t>& number) {
  return number.value_or(-1);
}
inline std::optional<int32_t> completions_back(int32_t code) {
  if (code < 0) return std::nullopt;
  return code;
}

inline void write_condition(const core::PodCondition& condition, Millis base_ms,
                            wire::PodCondition::Builder to) {
  [[maybe_unused]] const auto& [type, status, at_ms, reason, message] = condition;
  to.setType(text(type));
  to.setStatus(text(status));
  to.setAt(instant(at_ms, base_ms));
  to.setReason(text(reason));
  to.setMessage(text(message));
}
template <class Init>
void write_meta(const std::vector<core::PodMetaChange>& changes, Init init) {
  if (changes.empty()) return;
  auto list = init(static_cast<uint32_t>(changes.size()));
  for (uint32_t i = 0; i < changes.size(); ++i) {
    list[i].setLabel(changes[i].label);
    list[i].setKey(text(changes[i].key));
    list[i].setRemoved(!changes[i].value);
    if (changes[i].value) list[i].setValue(text(*changes[i].value));
  }
}

inline std::vector<core::PodMetaChange> meta_back(capnp::List<wire::PodMetaChange>::Reader list) {
  std::vector<core::PodMetaChange> changes;
  for (auto one : list) {
    core::PodMetaChange& change = changes.emplace_back();
    change.label = one.getLabel();
    change.key = text_back(one.getKey());
    if (!one.getRemoved()) change.value = text_back(one.getValue());
  }
  return changes;
}

// Condition types and reasons are stored under their Kubernetes names.
inline core::ConditionType type_back(capnp::Text::Reader t) {
  const auto type = core::condition_type(text_back(t));
  KJ_REQUIRE(type.has_value(), "unknown type of a condition", t);
  return *type;
}
inline core::ConditionReason reason_back(capnp::Text::Reader t) {
  const auto reason = core::condition_reason(text_back(t));
  KJ_REQUIRE(reason.has_value(), "unknown reason of a condition", t);
  return *reason;
}
inline core::PodCondition condition_back(wire::PodCondition::Reader in, Millis base_ms) {
  return {text_back(in.getType()), text_back(in.getStatus()), instant_back(in.getAt(), base_ms),
          text_back(in.getReason()), text_back(in.getMessage())};
}

// Writes the containers of an end or of a pod to the list that `init(size)` returns.
template <class Init>
void write_containers(const std::vector<core::ContainerEnd>& ends, Millis base_ms, Init init) {
  wire::write_containers(ends, init, [base_ms](Millis at) { return instant(at, base_ms); });
}
inline std::vector<core::ContainerEnd> containers_back(capnp::List<wire::ContainerEnd>::Reader list,
                                                       Millis base_ms) {
  std::vector<core::ContainerEnd> ends;
  ends.reserve(list.size());
  for (auto one : list)
    ends.push_back(wire::read_container<Millis>(
        one, [base_ms](uint64_t code) { return instant_back(code, base_ms); }, cause_back));
  return ends;
}

template <class Init>
void write_runs(const std::vector<core::RunEnd>& runs, Millis base_ms, Init init) {
  wire::write_runs(runs, init, [base_ms](Millis at) { return instant(at, base_ms); });
}
inline std::vector<core::RunEnd> runs_back(capnp::List<wire::RunEnd>::Reader list, Millis base_ms) {
  std::vector<core::RunEnd> runs;
  runs.reserve(list.size());
  for (auto one : list)
    runs.push_back(wire::read_run<Millis>(
        one, [base_ms](uint64_t code) { return instant_back(code, base_ms); }, cause_back));
  return runs;
}

template <class Init>
void write_containers_now(const std::vector<core::ContainerNow>& all, Millis base_ms, Init init) {
  wire::write_containers_now(all, init, [base_ms](Millis at) { return instant(at, base_ms); });
}
inline std::vector<core::ContainerNow> containers_now_back(
    capnp::List<wire::ContainerNow>::Reader list, Millis base_ms) {
  std::vector<core::ContainerNow> all;
  all.reserve(list.size());
  for (auto one : list)
    all.push_back(wire::read_container_now<Millis>(
        one, [base_ms](uint64_t code) { return instant_back(code, base_ms); }, cause_back));
  return all;
}

}  // namespace muster::storage::codec
