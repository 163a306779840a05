#include "keeper/files/spool_format.hpp"

#include "tests/unit/checked_in.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace muster::keeper {
namespace {

constexpr uint64_t kKeeper = 0x1122334455667788;

SegmentHeader header_of(uint32_t version) {
  return {version, "boot", "cluster", kKeeper};
}

std::string text_of(const Record& r) {
  std::string text = std::to_string(r.entry) + ":" + std::to_string(r.key.job) + "." +
                     std::to_string(r.key.index) + "." + std::to_string(r.key.attempt) + "." +
                     std::to_string(r.key.container) + "." + std::to_string(r.key.instance) +
                     " tried " + std::to_string(r.tried_ns) + " by " + std::to_string(r.keeper) +
                     " '" + r.note + "'";
  if (r.start)
    text += " start " + std::to_string(r.start->pid) + " " + std::to_string(r.start->at_ns) + " " +
            std::to_string(r.start->ticks);
  if (r.ended)
    text += " end " + std::to_string(r.end_ns) + " " + std::to_string(r.exit_code) + " " +
            std::to_string(r.signal) + (r.lost ? " lost" : "") + (r.out_of_memory ? " oom" : "") +
            (r.fenced ? " fenced" : "") + " used " + std::to_string(r.used.user_us) + " " +
            std::to_string(r.used.system_us) + " " + std::to_string(r.used.peak_bytes) + " '" +
            r.error + "'";
  return text + (r.this_boot ? "" : " earlier boot");
}

std::vector<std::string> text_of(const Records& records) {
  std::vector<std::string> lines;
  for (const auto& [entry, record] : records) lines.push_back(text_of(record));
  std::sort(lines.begin(), lines.end());
  return lines;
}

// What a reader in this boot finds; `at`: up to where.
Records read_all(std::string_view bytes, size_t* at = nullptr, std::string boot = "boot") {
  Records records;
  SpoolDecoder decoder(bytes, std::move(boot), 7);
  SpoolDecoder::Read last;
  do last = decoder.next(records);
  while (last == SpoolDecoder::Read::header || last == SpoolDecoder::Read::entry);
  if (at != nullptr) *at = last == SpoolDecoder::Read::malformed ? SIZE_MAX : decoder.at();
  return records;
}

// A segment of random entries, and what a reader must find in it.
struct Story {
  Story(uint32_t version, unsigned seed, int entries) : with_usage(version != 2), random(seed) {
    encoder.begin(bytes, header_of(version));
    for (int i = 0; i < entries; ++i) step();
    encoder.seal(bytes);
  }

  uint64_t any(uint64_t most) { return std::uniform_int_distribution<uint64_t>(0, most)(random); }
  // Mostly small, sometimes anything.
  uint64_t number(uint64_t most) { return any(most >> any(9) * 7); }

  void step() {
    const uint64_t what = any(9);
    if (known.empty() || what < 4) {
      Record r;
      r.entry = any(20) == 0 ? number(UINT64_MAX) : ++last_entry;
      while (known.contains(r.entry)) r.entry = ++last_entry;
      r.key = {number(UINT64_MAX), static_cast<uint32_t>(number(UINT32_MAX)),
               static_cast<uint32_t>(number(UINT32_MAX)), static_cast<uint16_t>(number(UINT16_MAX)),
               static_cast<uint16_t>(number(UINT16_MAX))};
      r.tried_ns = number(UINT64_MAX);
      r.keeper = any(1) == 0 ? kKeeper : number(UINT64_MAX);
      r.note =
          std::string(any(8), 'a') + std::to_string(number(999'999)) + std::string(any(8), 'a');
      r.segment = 7;
      encoder.intent(bytes, r);
      known[r.entry] = r;
      return;
    }
    auto at = known.begin();
    std::advance(at, static_cast<ptrdiff_t>(any(known.size() - 1)));
    Record& r = at->second;
    if (what == 9) {
      encoder.forgot(bytes, {r.entry, UINT64_MAX - 3});
      known.erase(at);
      return;
    }
    if (any(5) == 0) {
      r.start.reset();
      r.tried_ns = number(UINT64_MAX);
    } else {
      r.start = Start{static_cast<int32_t>(1 + number(INT32_MAX - 1)), number(UINT64_MAX),
                      what < 6 ? number(UINT64_MAX) : 0};
    }
    if (what < 6 && !r.ended) return encoder.started(bytes, r);
    if (r.start) r.start->ticks = 0;  // not in an end
    r.ended = true;
    r.end_ns = number(UINT64_MAX);
    r.lost = any(1) != 0, r.out_of_memory = any(1) != 0, r.fenced = any(1) != 0;
    r.exit_code = any(1) == 0 ? 0 : static_cast<int>(number(INT32_MAX));
    r.signal = any(1) == 0 ? 0 : static_cast<int>(number(64));
    r.error = std::string(any(3) * 50, 'e');
    r.used = {};
    if (with_usage && any(1) == 0)
      r.used = {number(UINT64_MAX), number(UINT64_MAX), number(UINT64_MAX)};
    encoder.ended(bytes, r);
  }

  const bool with_usage;
  std::mt19937 random;
  SpoolEncoder encoder;
  std::string bytes;
  Records known;
  uint64_t last_entry = 0;
};

class SpoolFormatTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Versions, SpoolFormatTest, testing::Values(1u, 2u, 3u));

TEST_P(SpoolFormatTest, RoundTrips) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Story story(GetParam(), seed, static_cast<int>(seed % 70));
    size_t at = 0;
    const Records found = read_all(story.bytes + std::string(100, '\0'), &at);
    ASSERT_EQ(text_of(found), text_of(story.known)) << "seed " << seed;
    ASSERT_EQ(at, story.bytes.size());
  }
}

TEST_P(SpoolFormatTest, TornEntryEndsSegmentAndNoEntryFollows) {
  Story story(GetParam(), 1, 40);
  size_t before = 0;
  for (size_t size = 0; size < story.bytes.size(); ++size) {
    std::string torn = story.bytes.substr(0, size);
    size_t at = 0;
    read_all(torn, &at);
    ASSERT_LE(at, size);
    ASSERT_GE(at, before);
    before = at;
    torn.resize(story.bytes.size(), '\0');
    ASSERT_FALSE(SpoolDecoder::any_entry(torn, at + 1)) << size;
  }
}

TEST_P(SpoolFormatTest, ChangedByteEndsReadableEntriesAndLaterOnesReveal) {
  const Story story(GetParam(), 2, 40);
  std::vector<size_t> ends = {0};  // of entries
  for (size_t size = 1; size <= story.bytes.size(); ++size) {
    size_t at = 0;
    read_all(std::string_view(story.bytes).substr(0, size), &at);
    if (at != ends.back()) ends.push_back(at);
  }
  for (size_t i = 0; i < story.bytes.size(); ++i) {
    std::string changed = story.bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    size_t at = 0;
    const Records found = read_all(changed, &at);
    const auto end = std::upper_bound(ends.begin(), ends.end(), i);
    if (at > *(end - 1)) {  // padding, which nothing covers
      ASSERT_EQ(text_of(found), text_of(story.known)) << i;
      continue;
    }
    ASSERT_EQ(at, *(end - 1)) << i;
    ASSERT_EQ(SpoolDecoder::any_entry(changed, at + 1), end + 1 != ends.end()) << i;
  }
}

TEST_P(SpoolFormatTest, TimesOfAnEarlierBootAreTheGreatestPossibleAges) {
  const Story story(GetParam(), 3, 60);
  for (const auto& [entry, record] : read_all(story.bytes, nullptr, "another boot")) {
    EXPECT_FALSE(record.this_boot);
    EXPECT_EQ(record.tried_ns + record.end_ns + (record.start ? record.start->at_ns : 0), 0u);
  }
}

TEST(SpoolFormat, MalformedEntryIsAnError) {
  for (const std::string& body : {std::string("\x03\x01"), std::string("\x09"),
                                  std::string("\x02\x00\x02\x02\x02\x02\x05\x00\x00", 9)}) {
    std::string bytes;
    SpoolEncoder().begin(bytes, header_of(2));
    const size_t begin = bytes.size();
    Writer(bytes).num(uint16_t{0x534d}).num(crc32(body)).num(static_cast<uint8_t>(body.size()));
    bytes += body;
    size_t at = 0;
    read_all(bytes, &at);
    EXPECT_EQ(at, SIZE_MAX) << begin;
  }
}

// Written by a keeper that knew only version 1: a process that exited, one that was killed, one
// that is forgotten, one that is running.
TEST(SpoolFormat, ReadsSegmentOfVersion1) {
  const std::string segment = read_checked_in("tests/unit/keeper/files/version-1.seg");
  size_t at = 0;
  const Records found = read_all(segment, &at);
  EXPECT_EQ(at, segment.size());
  ASSERT_EQ(found.size(), 3u);
  const Record &exited = found.at(1), &killed = found.at(2), &running = found.at(4);
  EXPECT_TRUE(exited.ended && exited.exit_code == 4 && exited.signal == 0) << text_of(exited);
  EXPECT_TRUE(killed.ended && killed.exit_code == 137 && killed.signal == 9) << text_of(killed);
  EXPECT_TRUE(!running.ended && running.start && running.start->ticks != 0) << text_of(running);
  for (const Record* one : {&exited, &killed, &running}) {
    EXPECT_EQ(one->key.job, 7u);
    EXPECT_EQ(one->key.index + 1, one->entry);
    EXPECT_EQ(one->note, "note " + std::to_string(one->key.index));
    EXPECT_TRUE(one->this_boot);
  }
}

TEST(SpoolFormat, AShortPodTakesSomeTensOfBytes) {
  std::string bytes;
  SpoolEncoder encoder;
  encoder.begin(bytes, header_of(kSpoolVersion));
  const size_t begin = bytes.size();
  constexpr uint32_t kPods = 300;
  std::vector<Record> records;
  std::vector<uint64_t> entries;
  uint64_t now_ns = 86'400'000'000'000;
  for (uint32_t i = 0; i < kPods; ++i) {
    Record r;
    entries.push_back(r.entry = 1'000 + i);
    r.key = {12, 40'000 + i, 0, 0, 0};
    r.tried_ns = now_ns += 400'000;
    r.keeper = kKeeper;
    r.note = "30000\n2c1a7a0e-59a3-4f8e-8a6b-0d3c5b7f9e11\nhello-" + std::to_string(40'000 + i) +
             "-x7k2p\nmain\n1";
    encoder.intent(bytes, r);
    r.start = Start{static_cast<int32_t>(20'000 + i), now_ns + 50'000, 0};
    r.ended = true;
    r.end_ns = now_ns + 700'000;
    r.used = {400 + i, 900 - i, 2'000'000 + i * 4096};
    records.push_back(r);
  }
  for (const Record& r : records) encoder.ended(bytes, r);
  encoder.forgot(bytes, entries);
  EXPECT_LT((bytes.size() - begin) / kPods, 50u);
}

}  // namespace
}  // namespace muster::keeper
