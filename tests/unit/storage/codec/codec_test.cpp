// Codec: values read back as they were written, stay small, and corrupt input is refused.
#include "storage/codec/codec.hpp"

#include "schema/journal.capnp.h"
#include "storage/codec/codec_util.hpp"
#include "tests/unit/storage/now.hpp"

#include <capnp/message.h>
#include <capnp/serialize-packed.h>
#include <gtest/gtest.h>
#include <kj/io.h>

#include <random>

namespace muster::storage {
namespace {

using namespace core;

// Random values: mostly small, sometimes extreme.
class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}
  uint64_t below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }
  bool flip() { return below(2) == 0; }
  uint32_t u32() { return below(10) == 0 ? UINT32_MAX : static_cast<uint32_t>(below(5000)); }
  uint64_t u64() { return below(10) == 0 ? UINT64_MAX : below(1'000'000); }
  int32_t i32() {
    if (below(10) == 0) return flip() ? INT32_MIN : INT32_MAX;
    return static_cast<int32_t>(below(300)) - 20;
  }
  // An instant that may be absent; the epoch itself is encoded as absent.
  std::optional<Millis> maybe_at() {
    const Millis instant = at();
    if (instant == 0) return std::nullopt;
    return instant;
  }
  Millis at() {
    if (below(8) == 0) return 0;
    if (below(20) == 0) return flip() ? 1 : INT64_MAX / 4;
    return kNow - static_cast<Millis>(below(100'000)) + 500;
  }
  std::string text() {
    std::string s;
    uint64_t length = below(5) == 0 ? below(300) : below(3);
    for (uint64_t i = 0; i < length; ++i) s.push_back(static_cast<char>(below(256)));
    return s;
  }
  Counted counted() { return static_cast<Counted>(below(5)); }
  EndCause cause() { return static_cast<EndCause>(below(kEndCauses)); }
  PodKey pod() { return {u32(), u32()}; }
  FailureAction action() { return static_cast<FailureAction>(below(5)); }
  Readiness readiness() { return static_cast<Readiness>(below(3)); }
  std::optional<Millis> grace() {
    if (flip()) return std::nullopt;
    return static_cast<Millis>(below(100'000));
  }
  PodCondition condition() { return {text(), flip() ? "True" : "False", at(), text(), text()}; }
  PodEnd end() {
    PodEnd end{cause(), i32(), i32(), at(), text()};
    if (below(4) == 0)
      for (uint64_t i = below(4); i > 0; --i)
        end.containers.push_back(
            {cause(), i32(), i32(), i32(), flip() ? std::optional(at() | 1) : std::nullopt, at()});
    if (flip()) end.used = {u64(), u64(), u64()};
    return end;
  }
  std::string cpus() { return flip() ? "" : "0-" + std::to_string(below(300)); }
  std::vector<RunEnd> runs() {
    std::vector<RunEnd> runs;
    if (below(4) != 0) return runs;
    for (uint64_t i = below(4); i > 0; --i) {
      RunEnd& run = runs.emplace_back(RunEnd{static_cast<uint16_t>(below(300))});
      run.end = {cause(), i32(), i32(), i32(), flip() ? std::optional(at() | 1) : std::nullopt,
                 at()};
      if (flip()) run.used = {u64(), u64(), u64()};
    }
    return runs;
  }
  std::optional<int32_t> pid() { return flip() ? std::optional(i32() | 1) : std::nullopt; }
  std::optional<StartOf<Millis>> start() {
    const auto one = pid();
    return one ? std::optional(StartOf<Millis>{*one, at() | 1}) : std::nullopt;
  }
  PodMetaChange meta() { return {flip(), text(), flip() ? std::optional(text()) : std::nullopt}; }
  Steps steps() {
    if (below(3) != 0) return {};
    return {static_cast<uint8_t>(below(kRetryStepsMax + 1)),
            static_cast<uint8_t>(below(kRetryStepsMax + 1))};
  }
  Pod whole_pod(PodKey key) {
    Pod pod{
        .key = key, .created_ms = at(), .node = u32(), .bound_ms = at(), .started_at = maybe_at()};
    pod.pid = pid();
    pod.restarts = i32();
    pod.runs = runs();
    pod.cpus = cpus();
    pod.failures = i32();
    pod.ignored = i32();
    pod.disruptions = i32();
    pod.steps = steps();
    pod.stopping_at = maybe_at();
    pod.counted = counted();
    pod.readiness = readiness();
    pod.grace_ms = grace();
    pod.action = action();
    if (below(4) == 0) pod.conditions = {condition(), condition()};
    if (below(4) == 0) pod.meta = {meta(), meta()};
    pod.ended = flip();
    pod.end = end();
    return pod;
  }
  IndexSet set() {
    IndexSet set;
    for (uint64_t i = below(20); i > 0; --i) {
      uint32_t first = u32();
      set.insert_range(first,
                       first + static_cast<uint32_t>(below(uint64_t{UINT32_MAX} - first + 1) % 50));
    }
    return set;
  }

  GangBreak broken() { return {pod(), flip(), flip(), text()}; }
  Record record() {
    const Millis now = below(20) == 0 ? 0 : kNow;
    // Some lists have consecutive pods, as real ones do.
    const uint32_t from = below(5) == 0 ? UINT32_MAX - 5 : static_cast<uint32_t>(below(1000));
    const bool running_on = flip();
    auto next_pod = [&](uint64_t i) {
      if (running_on && from + i <= UINT32_MAX)
        return PodKey{static_cast<uint32_t>(from + i), below(9) == 0 ? 1u : 0u};
      return pod();
    };
    const uint64_t n = below(4) == 0 ? 0 : below(12);
    switch (below(std::variant_size_v<Record>)) {
      case 0: {
        auto object = std::make_shared<JobObject>();
        object->meta.generation = i32();
        object->spec.parallelism = i32();
        if (flip()) object->spec.completions = static_cast<int32_t>(below(INT32_MAX));
        return JobAdmitted{now, object, dependencies()};
      }
      case 1:
        return JobSpecChanged{now, static_cast<int64_t>(u64()), i32(),
                              u64() % 2 == 0 ? std::nullopt : std::optional(i32() & 0x7fffffff),
                              nullptr};
      case 2:
        return JobStarted{now};
      case 3: {
        PodsCreated r{.at_ms = now};
        for (uint64_t i = 0; i < n; ++i)
          r.runs.push_back({u32(), u32(), u32(), i32(), i32(), counted(), i32()});
        return r;
      }
      case 4: {
        PodsBound r{.at_ms = now};
        for (uint64_t i = 0; i < n; ++i)
          r.bindings.push_back({next_pod(i), below(4) == 0 ? u32() : 7});
        return r;
      }
      case 5: {
        PodsStarted r{.at_ms = now};
        for (uint64_t i = 0; i < n; ++i)
          r.starts.push_back({next_pod(i), pid(), i32(), at(), readiness(), {}, cpus()});
        return r;
      }
      case 6: {
        PodsEnded r{.at_ms = now, .backoff_failures = u32(), .backoff_last_ms = at()};
        for (uint64_t i = 0; i < n; ++i) {
          r.ends.push_back(
              {next_pod(i), end(), start(), i32(), runs(), counted(), flip(), action(), steps()});
        }
        return r;
      }
      case 7: {
        PodsStopping r{.at_ms = now, .by_job = flip()};
        r.backoff_failures = u32();
        r.backoff_last_ms = at();
        for (uint64_t i = 0; i < n; ++i)
          r.pods.push_back({next_pod(i), below(4) == 0 ? counted() : Counted::released,
                            below(9) == 0, below(9) == 0 ? grace() : std::nullopt});
        return r;
      }
      case 8:
        return FinishDecided{now, flip(), static_cast<ConditionReason>(below(12)), text()};
      case 9:
        return JobFinished{now};
      case 10:
        return JobDeleted{now, flip(), flip(), flip()};
      case 11:
        return PodConditionSet{now, pod(), condition()};
      case 12: {
        PodsRemoved r{.at_ms = now};
        for (uint64_t i = 0; i < n; ++i) r.pods.push_back(next_pod(i));
        return r;
      }
      case 13:
        return JobSuspended{now, flip()};
      case 14:
        return StatusWritten{now, text()};
      case 15:
        return IndexLimitsSet{now, flip()};
      case 16:
        return ConditionsWritten{now, text()};
      case 17:
        return PodMetaSet{now, pod(), {meta(), meta()}};
      case 18:
        return GangBroken{now, broken()};
      case 19:
        return DependencyEnded{now, u64(), static_cast<DependencyEnd>(below(4))};
      case 20:
        return DependencyAdvanced{now, u64(), {set(), set()}};
      case 21:
        return IndexesFailed{now, set()};
      case 22:
        return held(now);
      case 23:
        return JobReleased{now, text()};
      case 24:
        return overridden(now);
      case 25:
        return JobCancelled{now, text()};
      case 26:
        return IndexesCancelled{now, text(), set()};
      default:
        return JobForgotten{now};
    }
  }

  JobHeld held(Millis at_ms) { return {at_ms, text(), flip(), text()}; }
  OverridesSet overridden(Millis at_ms) {
    Overrides overrides;
    if (flip()) overrides.priority = i32();
    if (flip()) overrides.queue = text();
    if (flip()) overrides.time_limit_s = std::abs(int64_t{i32()});
    return {at_ms, std::move(overrides), text()};
  }

  std::vector<Dependency> dependencies() {
    std::vector<Dependency> all;
    for (uint64_t n = below(3); n > 0; --n)
      all.push_back({u64(), {static_cast<Needed>(below(4)), text()}});
    return all;
  }
  std::vector<Followed> followed() {
    std::vector<Followed> all;
    for (uint64_t n = below(3); n > 0; --n) all.push_back({u64(), text(), {set(), set()}, flip()});
    return all;
  }

 private:
  std::mt19937_64 random_;
};

struct Same {
  const Record& other;
  template <class R>
  const R& as() const {
    return std::get<R>(other);
  }
  bool operator()(const JobAdmitted& r) const {
    const auto& a = *r.object;
    const auto& b = *as<JobAdmitted>().object;
    return a.meta.generation == b.meta.generation && a.spec.parallelism == b.spec.parallelism &&
           a.spec.completions == b.spec.completions && r.after == as<JobAdmitted>().after;
  }
  bool operator()(const JobSpecChanged& r) const {
    const auto& o = as<JobSpecChanged>();
    return r.generation == o.generation && r.parallelism == o.parallelism &&
           r.completions == o.completions;
  }
  bool operator()(const PodsCreated& r) const { return r.runs == as<PodsCreated>().runs; }
  bool operator()(const PodsBound& r) const { return r.bindings == as<PodsBound>().bindings; }
  bool operator()(const PodsStarted& r) const { return r.starts == as<PodsStarted>().starts; }
  bool operator()(const PodsEnded& r) const {
    const auto& o = as<PodsEnded>();
    return r.ends == o.ends && r.backoff_failures == o.backoff_failures &&
           r.backoff_last_ms == o.backoff_last_ms;
  }
  bool operator()(const PodsStopping& r) const {
    const auto& o = as<PodsStopping>();
    return r.pods == o.pods && r.by_job == o.by_job && r.backoff_failures == o.backoff_failures &&
           r.backoff_last_ms == o.backoff_last_ms;
  }
  bool operator()(const PodConditionSet& r) const {
    const auto& o = as<PodConditionSet>();
    return r.pod == o.pod && r.condition == o.condition;
  }
  bool operator()(const PodsRemoved& r) const { return r.pods == as<PodsRemoved>().pods; }
  bool operator()(const JobSuspended& r) const {
    return r.suspended == as<JobSuspended>().suspended;
  }
  bool operator()(const StatusWritten& r) const { return r.json == as<StatusWritten>().json; }
  bool operator()(const ConditionsWritten& r) const {
    return r.json == as<ConditionsWritten>().json;
  }
  bool operator()(const PodMetaSet& r) const {
    const auto& o = as<PodMetaSet>();
    return r.pod == o.pod && r.changes == o.changes;
  }
  bool operator()(const FinishDecided& r) const {
    const auto& o = as<FinishDecided>();
    return r.success == o.success && r.reason == o.reason && r.message == o.message;
  }
  bool operator()(const JobDeleted& r) const {
    const auto& o = as<JobDeleted>();
    return r.background == o.background && r.orphan == o.orphan && r.waits == o.waits;
  }
  bool operator()(const GangBroken& r) const { return r.how == as<GangBroken>().how; }
  bool operator()(const DependencyEnded& r) const {
    const auto& o = as<DependencyEnded>();
    return r.job == o.job && r.how == o.how;
  }
  bool operator()(const DependencyAdvanced& r) const {
    const auto& o = as<DependencyAdvanced>();
    return r.job == o.job && r.more == o.more;
  }
  bool operator()(const IndexesFailed& r) const { return r.indexes == as<IndexesFailed>().indexes; }
  bool operator()(const JobHeld& r) const { return r == as<JobHeld>(); }
  bool operator()(const JobReleased& r) const { return r.by == as<JobReleased>().by; }
  bool operator()(const OverridesSet& r) const { return r == as<OverridesSet>(); }
  bool operator()(const JobCancelled& r) const { return r == as<JobCancelled>(); }
  bool operator()(const IndexesCancelled& r) const { return r == as<IndexesCancelled>(); }
  bool operator()(const JobStarted&) const { return true; }
  bool operator()(const JobFinished&) const { return true; }
  bool operator()(const JobForgotten&) const { return true; }
  bool operator()(const IndexLimitsSet& r) const { return r.on == as<IndexLimitsSet>().on; }
};

bool same(const Record& a, const Record& b) {
  return a.index() == b.index() && at(a) == at(b) && std::visit(Same{b}, a);
}

void expect_round_trip(const std::vector<Record>& records) {
  auto back = decode_records(encode_records(records));
  ASSERT_TRUE(back.ok()) << back.error().message;
  ASSERT_EQ(back->size(), records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_TRUE(same(records[i], (*back)[i]))
        << "record " << i << " of kind " << records[i].index();
  }
}

PodsEnded typical_ends(uint32_t n) {
  Chance chance(1);
  PodsEnded r{.at_ms = kNow, .backoff_failures = 3, .backoff_last_ms = kNow - 4000};
  for (uint32_t i = 0; i < n; ++i) {
    r.ends.push_back(
        {.pod = {100'000 + i * 3, i % 5 == 0 ? 1u : 0u},
         .end = {.cause = EndCause::exited,
                 .exit_code = i % 10 == 0 ? 1 : 0,
                 .ended_at = kNow - static_cast<Millis>(chance.below(100)),
                 .used = {chance.below(9'000), chance.below(9'000), 4096 * chance.below(9'000)}},
         .start = {{static_cast<int32_t>(1000 + chance.below(4'000'000)),
                    kNow - 100 - static_cast<Millis>(chance.below(60'000))}},
         .counted = i % 10 == 0 ? Counted::failed : Counted::succeeded});
  }
  return r;
}

TEST(Codec, RandomRecordsRoundTrip) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Chance chance(seed);
    std::vector<Record> records;
    for (uint64_t i = chance.below(20); i > 0; --i) records.push_back(chance.record());
    expect_round_trip(records);
  }
}

TEST(Codec, EmptyAndHugeRecordListsRoundTrip) {
  expect_round_trip({});
  PodsBound bound{.at_ms = kNow};
  PodsStopping stopping{.at_ms = kNow};
  for (uint32_t i = 0; i < 200'000; ++i) {
    bound.bindings.push_back({{i, i % 7 == 0 ? 1u : 0u}, i % 3 == 0 ? 1u : 2u});
    stopping.pods.push_back({{i, 0}, Counted::released});
  }
  expect_round_trip({bound, stopping, typical_ends(50'000)});
}

TEST(Codec, RecordsAreSmall) {
  size_t ends = encode_records({typical_ends(500)}).size();
  EXPECT_LT(ends, 500 * 40) << "bytes of 500 ends";  // tens of bytes each
  PodsBound bound{.at_ms = kNow};
  for (uint32_t i = 0; i < 500; ++i) bound.bindings.push_back({{i, 0}, i / 250 + 1});
  EXPECT_LT(encode_records({bound}).size(), 64u) << "500 bindings on two nodes are two runs";
}

TEST(Codec, RunsKeepTheOrderAndNeverPassTheLastIndex) {
  PodsBound bound{.at_ms = kNow};
  bound.bindings = {{{5, 0}, 1}, {{4, 0}, 1}, {{5, 1}, 1},          {{6, 1}, 1},
                    {{6, 1}, 1}, {{7, 1}, 2}, {{UINT32_MAX, 0}, 1}, {{0, 0}, 1}};
  expect_round_trip({bound});
}

TEST(Codec, AnUnknownVersionIsRefused) {
  capnp::MallocMessageBuilder message;
  message.initRoot<wire::RecordList>().setVersion(7);
  kj::VectorOutputStream out;
  capnp::writePackedMessage(out, message);
  std::string bytes(reinterpret_cast<const char*>(out.getArray().begin()), out.getArray().size());
  auto records = decode_records(bytes);
  ASSERT_FALSE(records.ok());
  EXPECT_EQ(records.error().message, "records of version 7; this muster knows 1");
  auto snapshot = decode_state(bytes);
  ASSERT_FALSE(snapshot.ok());
  EXPECT_EQ(snapshot.error().message, "a snapshot of version 7; this muster knows 1");
  auto node = decode_node(bytes);
  ASSERT_FALSE(node.ok());
  EXPECT_EQ(node.error().message, "a node of version 7; this muster knows 1");
}

TEST(Codec, DamagedBytesAreRefusedNotGuessed) {
  EXPECT_FALSE(decode_records("").ok());
  EXPECT_FALSE(decode_records("no such thing").ok());
  const std::string good = encode_records({typical_ends(20)});
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(decode_records(good.substr(0, length)).ok()) << "cut to " << length;
  }
  EXPECT_FALSE(decode_records(good + "x").ok());
  // A flipped bit is refused or read as something else: no crash, and bounded memory.
  Chance chance(5);
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    bad[chance.below(bad.size())] ^= static_cast<char>(1 << chance.below(8));
    auto read = decode_records(bad);
    EXPECT_TRUE(!read.ok() || read->size() < 100'000);
  }
}

// Found by fuzzing: the reader's destructor threw while the refusal was being returned, and the
// refusal leaked (the leak sanitizer reports it when this program exits).
TEST(Codec, TruncatedRowOfOtherVersionIsRefusedWithoutLeak) {
  constexpr char kRow[] =
      "\x11\x02\x29\x10\x50\x0a\x01\x01\x01\x04\x00\x02\x11\x25\x1a\x11\x25\x0a\x11\x25"
      "\x0a\x11\x25\x07\x11\x71\x0a\x11\x4d\x1f\x11\x1d\x17\x11\x2d\x07\x11\x2d\x17\x11"
      "\x61\x0a\x03\x6e\x31\x00\x01\x40\x02\x41\x04\x02\x11\x77\x77\x77\x77\x77\x77\x77"
      "\x77\x77\x77\x77\x77\x77\x05\x2a\x11\x05\x22\x0f\x64\x69\x73\x6b\x07\x73\x73\x64"
      "\x40\x02\x51\x04\x01\x01\x01\x02\x11\x01\x7a\xff\x6e\x76\x69\x64\x69\x61\x2e\x63"
      "\x00\x3f\x6f\x6d\x2f\x67\x70\x75\x41\x04\x03\x11\x09\x22\x11\x09\x32\x11\x09\xdd"
      "\x07\x01\x00\x60\x60\x00\x07\x9c\x75\x65\xff\x4e\x6f\x53\x63\x68\x65\x64\x75\x00"
      "\x03\x6c\x65\x00\x01";
  EXPECT_FALSE(decode_node({kRow, sizeof kRow - 1}).ok());
}

// In the journal, pid 0 means that no process has started.
TEST(Codec, PidZeroMeansNotStarted) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::RecordList>();
  root.setVersion(wire::RECORDS_VERSION);
  auto records = root.initRecords(2);
  records[0].setAtMs(kNow);
  auto ends = records[0].initPodsEnded().initEnds(3);
  ends[0].setStarted(codec::instant(kNow - 5, kNow));  // ignored without a pid
  ends[1].setPid(7);
  ends[1].setStarted(codec::instant(kNow - 5, kNow));
  ends[2].setPid(8);
  ends[2].setEnded(codec::instant(kNow - 1, kNow));
  auto starts = records[1].initPodsStarted(2);
  starts[1].setPid(9);
  kj::VectorOutputStream out;
  capnp::writePackedMessage(out, message);
  auto back = decode_records(
      {reinterpret_cast<const char*>(out.getArray().begin()), out.getArray().size()});
  ASSERT_TRUE(back.ok()) << back.error().message;
  const auto& ended = std::get<PodsEnded>((*back)[0]).ends;
  EXPECT_EQ(ended[0].start, std::nullopt);
  EXPECT_EQ(ended[1].start, (StartOf<Millis>{7, kNow - 5}));
  EXPECT_EQ(ended[2].start, (StartOf<Millis>{8, kNow - 1}));
  const auto& started = std::get<PodsStarted>((*back)[1]).starts;
  EXPECT_EQ(started[0].pid, std::nullopt);
  EXPECT_EQ(started[1].pid, 9);
}

TEST(Codec, EnumerantOfLaterVersionIsRefused) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::RecordList>();
  root.setVersion(wire::RECORDS_VERSION);
  root.initRecords(1)[0].initPodsEnded().initEnds(1)[0].setCause(static_cast<wire::EndCause>(99));
  kj::VectorOutputStream out;
  capnp::writePackedMessage(out, message);
  auto records = decode_records(
      {reinterpret_cast<const char*>(out.getArray().begin()), out.getArray().size()});
  ASSERT_FALSE(records.ok());
  EXPECT_NE(records.error().message.find("unknown enumerant"), std::string::npos)
      << records.error().message;
}

TEST(Codec, RandomStatesRoundTrip) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Chance chance(seed);
    JobState s;
    s.generation = static_cast<int64_t>(chance.below(100));
    s.parallelism = chance.i32();
    if (chance.flip()) s.completions = static_cast<int32_t>(chance.below(INT32_MAX));
    s.admitted_ms = chance.at();
    s.started_at = chance.maybe_at();
    s.completed_at = chance.maybe_at();
    s.deleted_at = chance.maybe_at();
    s.last_record_ms = chance.at();
    s.usage = {.used = {chance.u64(), chance.u64(), chance.u64()},
               .ran_ms = chance.i32(),
               .attempts = chance.u64(),
               .first_start = chance.maybe_at(),
               .waited_ms = chance.i32(),
               .queue = chance.text()};
    s.background_deleted = chance.flip();
    s.forgotten = chance.flip();
    s.synced = chance.flip();
    s.orphaned = chance.flip();
    s.deletion_waits = chance.flip();
    s.index_limits_off = chance.flip();
    if (chance.flip()) s.external_status = chance.text();
    if (chance.flip()) s.own_conditions = chance.text();
    s.dependencies = chance.dependencies();
    s.followed = chance.followed();
    if (chance.flip()) s.broken = chance.broken();
    if (chance.flip()) s.hold = chance.held(chance.at());
    if (chance.flip()) s.owner_hold = chance.held(chance.at());
    if (chance.flip()) s.overrides = chance.overridden(chance.at());
    if (chance.flip()) s.cancelled = {chance.at(), chance.text()};
    s.cancelled_indexes = chance.set();
    for (uint64_t i = chance.below(4); i > 0; --i) {
      s.cancellations.push_back({chance.at(), chance.text(), chance.set()});
      s.start_trouble[chance.u32()] = {chance.at(), chance.text()};
    }
    for (uint64_t i = chance.below(4); i > 0; --i) s.notes[chance.u64()] = chance.text();
    for (uint64_t i = chance.below(4); i > 0; --i)
      s.inherited[chance.u32()] = {chance.i32(), chance.i32(), chance.at(), chance.i32()};
    for (uint64_t i = chance.below(4); i > 0; --i) {
      s.conditions.push_back({static_cast<ConditionType>(chance.below(6)), chance.flip(),
                              chance.at(), static_cast<ConditionReason>(chance.below(13)),
                              chance.text()});
    }
    s.completed = chance.set();
    s.failed_indexes = chance.set();
    s.succeeded = chance.u64();
    s.failed = chance.u64();
    s.backoff_failures = chance.u32();
    s.backoff_last_ms = chance.at();
    s.attempt_floor = chance.u32();
    s.attempt_max = chance.u32();
    s.next_number = chance.u32();
    for (uint64_t i = chance.below(50); i > 0; --i) {
      s.attempts[chance.u32()] = static_cast<uint32_t>(chance.below(3));
      s.attempts[static_cast<uint32_t>(chance.below(30))] = 2;
      s.steps[chance.u32()] = {1, 2};
      s.steps[static_cast<uint32_t>(chance.below(30))] = {kRetryStepsMax, 0};
    }
    for (uint64_t i = chance.below(30); i > 0; --i) {
      PodKey key = chance.pod();
      s.open[key] = chance.whole_pod(key);
      key = chance.pod();
      s.deferred[key.index] = chance.whole_pod(key);
      s.finished.push_back(chance.whole_pod(chance.pod()));
      s.events.push_back(
          {static_cast<JobEvent::Kind>(chance.below(12)), chance.at(), chance.pod(), chance.u64()});
    }
    s.events_total = chance.u64();
    s.pods_created = chance.u64();
    auto back = decode_state(encode_state(s, seed * 1000));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(back->sequence, seed * 1000);
    EXPECT_TRUE(back->state == s) << "seed " << seed;
  }
}

TEST(Codec, LargeStateIsCompact) {
  JobState s;
  s.last_record_ms = kNow;
  s.completed.insert_range(0, UINT32_MAX);
  EXPECT_TRUE(decode_state(encode_state(s, 1))->state == s);
  s.completed.clear();
  for (uint32_t i = 0; i < 300'000; i += 3) s.completed.insert_range(i, i + 1);  // 10^5 intervals
  for (uint32_t i = 2; i < 300'000; i += 3) s.attempts[i] = 1;
  std::string bytes = encode_state(s, 1);
  EXPECT_LT(bytes.size(), 1'100'000u);
  EXPECT_TRUE(decode_state(bytes)->state == s);
}

TEST(Codec, NodesRoundTripWithoutVolatileState) {
  NodeInfo node{.id = 9,
                .name = "node-a",
                .work_dir_id = "w1",
                .boot_id = "b1",
                .secret = "5ec2e7",
                .slots = 8,
                .cpu_millis = 8000};
  node.memory_bytes = uint64_t{1} << 40;
  node.labels = {{"a", "1"}, {"b/c", ""}};
  node.address = "10.0.0.1:5";
  node.ip = "10.0.0.1";
  node.created_ms = kNow;
  node.left_ms = kNow + 7;
  node.spec.unschedulable = node.gone = node.deleted = true;
  node.spec.taints = {{"a/b", "c", "NoSchedule"}, {"d", "", "NoExecute"}};
  node.spec.labels = {{"zone", "1"}};
  node.spec.annotations = {{"note", "x"}};
  node.spec.managers = R"([{"manager":"me"}])";
  node.spec.reasons = {{"cordon", "olga", kNow, "replace DIMM"}, {"d:NoExecute", "olga", 7, ""}};
  node.resources = {{"nvidia.com/gpu", 4}};
  NodeInfo seen = node;
  seen.health = NodeInfo::Health::ready;
  seen.draining = true;
  seen.heartbeat_ms = seen.changed_ms = kNow;
  auto back = decode_node(encode_node(seen));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_TRUE(*back == node);
}

TEST(Codec, KeptObjectsRoundTrip) {
  for (const KeptKind kind : kKeptKinds) {
    Kept kept{.kind = kind, .id = 7, .ns = "blue", .name = "a", .uid = "u", .json = R"({"a":1})"};
    kept.written_ms = kNow;
    kept.version = 42;
    for (const std::optional<uint32_t> owner : {std::optional<uint32_t>(), {0u}, {1001u}}) {
      kept.owner = owner;
      auto back = decode_kept(encode_kept(kept));
      ASSERT_TRUE(back.ok()) << back.error().message;
      EXPECT_TRUE(*back == kept);
    }
  }
}

}  // namespace
}  // namespace muster::storage
