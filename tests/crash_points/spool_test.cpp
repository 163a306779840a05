// Crash points of the keeper's spool: cut at every system call.
//
// Several keepers in turn record intents, starts and ends, report them once they are written, and
// forget acknowledged ends, in segments so small that they are often replaced. At every call, a
// killed keeper must leave each end that was reported and not forgotten, once and unchanged; a
// power loss must leave each such end that was on the disk. The next keeper then takes over the
// spool. Some keepers exit orderly, which leaves one segment of version 1.
#include "keeper/files/spool.hpp"

#include "tests/crash_points/disk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace muster::crash {
namespace {

namespace fs = std::filesystem;
using keeper::Record;
using keeper::Spool;

constexpr size_t kSegmentBytes = 6'000;
constexpr int kLost = 137;  // the exit code of a process whose keeper died

struct Dir {
  explicit Dir(const fs::path& path) : fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  ~Dir() { close(fd); }
  Dir(const Dir&) = delete;
  Dir& operator=(const Dir&) = delete;
  int fd;
};

// A keeper reduced to its use of the spool.
class Keeper {
 public:
  Keeper(const fs::path& dir, const std::string& boot, uint64_t number)
      : dir_(dir), spool_(boot, number, kSegmentBytes) {
    Spool::Found found = spool_.open(dir_.fd, "c1");
    why = found.why;
    fine = found.opened == Spool::Opened::fine;
    this->found = std::move(found.records);
  }

  // The first step of a keeper: processes without an end died with its predecessor.
  void adopt() {
    for (const Record& one : found) {
      Record& record = add(one);
      spool_.adopt(record);
      if (record.ended) continue;
      record.lost = true;
      end(record.key.index, kLost);
    }
    spool_.adopted_all();
    report();
  }
  void begin(uint32_t index, size_t note_bytes) {
    Record record;
    record.key = {.job = 7, .index = index};
    // Without anything in common with others, which would be written in fewer bytes.
    for (size_t i = 0; i < note_bytes; ++i)
      record.note += static_cast<char>('!' + (index * 31 + i * i * 7 + i) % 90);
    Record& added = add(record);
    ASSERT_EQ(spool_.reserve(added), "");
    mark("intending " + std::to_string(index));
    ASSERT_TRUE(spool_.begin(added));
    mark("intended " + std::to_string(index));
    added.start = keeper::Start{.pid = 4711, .at_ns = 1, .ticks = 1};
    spool_.started(added);
  }
  void end(uint32_t index, int code) {
    Record& record = *records_.at(index);
    record.ended = true;
    record.exit_code = code;
    mark("ending " + std::to_string(index) + " " + std::to_string(code));
    spool_.ended(record);
    ended_.push_back(index);
  }
  void forget(uint32_t index) {
    mark("forgetting " + std::to_string(index));
    spool_.forget(*records_.at(index));
    forgotten_.push_back(index);
  }
  // One turn of the loop: reports what has been written.
  void report() {
    ASSERT_TRUE(spool_.flush());
    for (uint32_t index : ended_) mark("ended " + std::to_string(index));
    for (uint32_t index : forgotten_) {
      mark("forgotten " + std::to_string(index));
      records_.erase(index);
    }
    ended_.clear();
    forgotten_.clear();
  }
  void settle() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!settled("spool.lengths")) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "the spool is not synced";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    mark("settled");
  }
  void set_cluster(const std::string& cluster) { spool_.set_cluster(cluster); }
  void leave() {
    spool_.leave();
    mark("settled");
  }

  bool fine = false;
  std::string why;
  std::vector<Record> found;

 private:
  Record& add(const Record& record) {
    return *(records_[record.key.index] = std::make_unique<Record>(record));
  }

  const Dir dir_;
  Spool spool_;
  std::map<uint32_t, std::unique_ptr<Record>> records_;
  std::vector<uint32_t> ended_, forgotten_;
};

struct Recorded {
  std::vector<Op> ops;
  bool whole = false;  // replaying the ops gives the directory
};

const Recorded& recorded() {
  static const Recorded one = [] {
    Recorded made;
    Scratch scratch;
    (void)start(scratch.path());
    for (uint64_t life = 1; life <= 3; ++life) {
      Keeper keeper(scratch.path(), "boot", life);
      EXPECT_TRUE(keeper.fine) << keeper.why;
      keeper.adopt();
      const auto first = static_cast<uint32_t>(100 * life);
      keeper.begin(first, 300);  // runs until its keeper dies
      for (uint32_t i = first + 1; i <= first + 90; ++i) {
        keeper.begin(i, i % 5 == 0 ? 700 : 8);
        if (i > first + 2) keeper.end(i - 2, static_cast<int>(i % 100));
        if (i % 3 != 0) keeper.report();
        if (i > first + 6) keeper.forget(i - 6);
        if (i == first + 45 || i == first + 90) {
          keeper.report();
          keeper.settle();
        }
        if (life == 2 && i == first + 30) keeper.set_cluster("c2");
      }
      if (life != 1) keeper.leave();
    }
    made.ops = stop().ops;
    made.whole = whole(made.ops, scratch.path());
    return made;
  }();
  return one;
}

// What is known from the marks so far.
struct Known {
  std::set<uint32_t> intending, intended, ended, durable, forgetting, forgotten;
  std::map<uint32_t, std::set<int>> codes;  // that the keeper wrote or began to write
  std::map<uint32_t, int> reported, settled;

  void take(const std::string& mark) {
    std::istringstream in(mark);
    std::string word;
    uint32_t index = 0;
    in >> word >> index;
    if (word == "intending") intending.insert(index);
    if (word == "intended") intended.insert(index);
    if (word == "ending") {
      int code = 0;
      in >> code;
      codes[index].insert(code);
      last_[index] = code;
    }
    if (word == "ended") reported[index] = last_.at(index);
    if (word == "forgetting") forgetting.insert(index);
    if (word == "forgotten") forgotten.insert(index);
    if (word == "settled") settled = reported;
  }

 private:
  std::map<uint32_t, int> last_;
};

// Opens what is left. Returns what is wrong with it.
std::string judge(const fs::path& dir, const Known& known, bool power_lost) {
  const std::string boot = power_lost ? "next boot" : "boot";
  Keeper next(dir, boot, 77);
  if (!next.fine) return next.why;
  std::map<uint32_t, Record> found;
  for (const Record& record : next.found)
    if (!found.emplace(record.key.index, record).second)
      return "process " + std::to_string(record.key.index) + " is there twice";
  for (const auto& [index, record] : found) {
    const std::string process = "process " + std::to_string(index);
    if (!known.intending.contains(index)) return process + " was never started";
    if (!power_lost && known.forgotten.contains(index)) return process + " was forgotten";
    auto codes = known.codes.find(index);
    if (record.ended && (codes == known.codes.end() || !codes->second.contains(record.exit_code)))
      return process + " ended otherwise";
  }
  for (const auto& [index, code] : power_lost ? known.settled : known.reported) {
    if (known.forgetting.contains(index)) continue;
    auto it = found.find(index);
    if (it == found.end() || !it->second.ended || it->second.exit_code != code)
      return "the end of process " + std::to_string(index) + " was reported and is lost";
  }
  for (uint32_t index : known.intended)
    if (!power_lost && !known.forgetting.contains(index) && !found.contains(index))
      return "the intent of process " + std::to_string(index) + " is lost";
  // The next keeper takes over; the one after it finds everything ended.
  next.adopt();
  Keeper last(dir, boot, 78);
  if (!last.fine) return "after it was taken over: " + last.why;
  if (last.found.size() != found.size()) return "after takeover, the records differ";
  for (const Record& record : last.found) {
    const Record& before = found.at(record.key.index);
    if (!record.ended || record.exit_code != (before.ended ? before.exit_code : kLost))
      return "after it was taken over, process " + std::to_string(record.key.index) +
             " ended otherwise";
  }
  return "";
}

std::string cut_everywhere(const std::vector<Op>& ops, uint64_t& points) {
  Scratch scratch;
  Disk disk;
  Known known;
  std::map<Loss, Image> before;
  for (size_t n = 0; n < ops.size(); ++n) {
    disk.apply(ops[n]);
    if (ops[n].kind == Op::Kind::mark) known.take(ops[n].bytes);
    // Between system calls only marks are added, so check after the last one.
    if (n + 1 < ops.size() && ops[n + 1].kind == Op::Kind::mark) continue;
    for (Loss loss : kLosses) {
      ++points;
      const fs::path root = scratch.path() / "left";
      disk.after(loss).put(root);
      const std::string problem = judge(root, known, loss != Loss::nothing);
      fs::remove_all(root);
      if (!problem.empty())
        return "after system call " + std::to_string(n) + " (" + to_string(ops[n]) + "), " +
               name(loss) + ": " + problem;
    }
  }
  return "";
}

TEST(SpoolCrashPoints, CrashNeitherLosesNorDuplicatesReportedEnd) {
  ASSERT_TRUE(recorded().whole) << "a system call that changes files was missed";
  uint64_t points = 0;
  EXPECT_EQ(cut_everywhere(recorded().ops, points), "");
  std::printf("crash points cut in the spool: %llu\n", static_cast<unsigned long long>(points));
  if (!::testing::Test::HasFailure())
    std::printf("proof %llu crash points cut in files\n", static_cast<unsigned long long>(points));
}

// ---- planted faults

struct Planted {
  const char* name;
  void (*plant)(std::vector<Op>& ops);
  const char* noticed;
};

const Planted kPlanted[] = {
    {"SegmentsAreNotSynced",
     [](std::vector<Op>& ops) {
       std::erase_if(ops, [](const Op& op) { return op.kind == Op::Kind::sync && op.file != 0; });
     },
     "is damaged"},
    {"DirectoriesAreNotSynced",
     [](std::vector<Op>& ops) {
       std::erase_if(ops, [](const Op& op) { return op.kind == Op::Kind::sync && op.file == 0; });
     },
     "is lost"},
    {"ReportedBeforeTheyAreWritten",
     [](std::vector<Op>& ops) {
       for (size_t n = 1; n < ops.size(); ++n)
         if (ops[n].kind == Op::Kind::write && ops[n + 1].bytes.starts_with("ended"))
           std::swap(ops[n], ops[n + 1]);
     },
     "was reported and is lost"},
    {"ASegmentGoesBeforeItsRestIsWritten",
     [](std::vector<Op>& ops) {
       for (size_t n = 2; n < ops.size(); ++n)
         if (ops[n].kind == Op::Kind::remove && ops[n - 1].kind == Op::Kind::sync)
           for (size_t m = n; ops[m + 1].kind != Op::Kind::write; --m)
             std::swap(ops[m], ops[m - 1]);
     },
     "is lost"},
};

struct SpoolPlantedTest : testing::TestWithParam<Planted> {};

TEST_P(SpoolPlantedTest, PlantedSpoolFaultIsNoticed) {
  std::vector<Op> ops = recorded().ops;
  // The notes of its lengths would only be in the way of what is planted.
  const auto notes = std::find_if(ops.begin(), ops.end(), [](const Op& op) {
    return op.kind == Op::Kind::make_file && op.path.ends_with("spool.lengths");
  });
  ASSERT_NE(notes, ops.end());
  std::erase_if(ops, [file = notes->file](const Op& op) {
    return op.kind == Op::Kind::write && op.file == file;
  });
  GetParam().plant(ops);
  uint64_t points = 0;
  const std::string problem = cut_everywhere(ops, points);
  EXPECT_NE(problem.find(GetParam().noticed), std::string::npos) << problem;
  EXPECT_NE(problem, "");
  if (!HasFailure()) std::printf("proof 1 planted faults noticed\n");
}

INSTANTIATE_TEST_SUITE_P(Each, SpoolPlantedTest, testing::ValuesIn(kPlanted),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace muster::crash
