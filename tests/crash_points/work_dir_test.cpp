// Crash points of the agent's work-dir: cut at every system call.
//
// Several agents in turn open it and learn the terms, keys and commits of two clusters, and one of
// them gives up its node because the spool is damaged. At every call, the next agent must be able
// to open what a crash leaves, as the same node, with everything learned and durable, and nothing
// that was never learned. A killed agent must also leave the highest commit. A node never keeps its
// identity without its keeper's folder.
#include "agent/files/work_dir.hpp"

#include "tests/crash_points/disk.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace muster::crash {
namespace {

namespace fs = std::filesystem;
using agent::WorkDir;

std::string seal_of(core::node::Term term, uint64_t commit) {
  std::string seal;
  for (uint64_t i = 0; seal.size() < agent::kSealDigits; ++i) {
    char word[17];
    std::snprintf(word, sizeof word, "%016zx",
                  std::hash<std::string>{}(std::to_string(term.epoch * 31 + term.nonce) + " " +
                                           std::to_string(commit) + " " + std::to_string(i)));
    seal += word;
  }
  return seal;
}

// What a coordinator tells an agent when it registers.
struct Learned {
  std::string cluster, key;
  core::node::Term term;
  auto operator<=>(const Learned& other) const = default;
  std::string text() const {
    return cluster + " " + key + " " + std::to_string(term.epoch) + " " +
           std::to_string(term.nonce);
  }
};

void tell(WorkDir& dir, const Learned& learned, uint64_t commit) {
  mark("telling " + learned.text());
  ASSERT_TRUE(
      dir.learn(learned.cluster, learned.term, learned.key, commit, seal_of(learned.term, commit))
          .ok());
  mark("learned");
}

void tell_commits(WorkDir& dir, uint64_t first, uint64_t last) {
  for (uint64_t commit = first; commit <= last; ++commit) {
    mark("committing " + std::to_string(commit));
    dir.learn_commit(commit, seal_of(dir.term(), commit));
    mark("committed " + std::to_string(commit));
  }
}

void make_keeper(const fs::path& root) {
  ASSERT_EQ(mkdir((root / "keeper").c_str(), 0700), 0);
  const int fd = open((root / "keeper/spool").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(write(fd, "spool", 5), 5);
  ASSERT_EQ(fsync(fd), 0);
  close(fd);
  for (const fs::path& path : {root / "keeper", root}) {
    const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(fsync(folder), 0);
    close(folder);
  }
  mark("spooled");
}

struct Recorded {
  std::vector<Op> ops;
  bool whole = false;
};

const Recorded& recorded() {
  static const Recorded one = [] {
    Recorded made;
    Scratch scratch;
    (void)start(scratch.path());
    for (uint64_t life = 1; life <= 4; ++life) {
      auto dir = WorkDir::open(scratch.path().string(), life == 1 ? "n1" : "");
      EXPECT_TRUE(dir.ok());
      mark("opened " + dir->id() + " " + dir->secret());
      if (life == 1) make_keeper(scratch.path());
      if (life == 3) {
        mark("renewing");
        EXPECT_TRUE(dir->renew_id().ok());
        mark("opened " + dir->id() + " " + dir->secret());
        make_keeper(scratch.path());
      }
      const std::string cluster = life < 4 ? "c1" : "c2";
      const uint64_t from = 100 * life;
      tell(*dir, {cluster, "key" + cluster, {2 * life, 7}}, from);
      tell_commits(*dir, from + 1, from + 20);
      tell(*dir, {cluster, "key" + cluster, {2 * life + 1, 8}}, from + 20);
      tell_commits(*dir, from + 21, from + 25);
      EXPECT_TRUE(dir->replace("credentials", "secret " + std::to_string(life)).ok());
      if (life == 2) dir->remove("credentials");
    }
    made.ops = stop().ops;
    made.whole = whole(made.ops, scratch.path());
    return made;
  }();
  return one;
}

// What is known from the marks so far.
struct Known {
  std::string id, secret;  // durable; empty if no agent has opened it
  bool renewing = false, spooled = false;
  Learned learned{}, telling{};
  uint64_t committed = 0, committing = 0;

  void take(const std::string& mark) {
    std::istringstream in(mark);
    std::string word;
    in >> word;
    if (word == "opened") {
      in >> id >> secret;
      renewing = false;
    }
    if (word == "renewing") {
      renewing = true;
      spooled = false;
    }
    if (word == "spooled") spooled = true;
    if (word == "telling") {
      in >> telling.cluster >> telling.key >> telling.term.epoch >> telling.term.nonce;
    }
    if (word == "learned") learned = telling;
    if (word == "committing") in >> committing;
    if (word == "committed") in >> committed;
  }
};

// Records the directory's own inode, so that it does not count as a copy.
void give_inode(const fs::path& root) {
  std::ifstream in(root / "identity");
  if (!in) return;
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t at = text.find("\ninode ");
  if (at == std::string::npos) return;
  struct statx st {};
  ASSERT_EQ(statx(AT_FDCWD, root.c_str(), 0, STATX_INO | STATX_BTIME, &st), 0);
  text.replace(at + 7, text.find('\n', at + 1) - at - 7,
               std::to_string(st.stx_ino) + ":" +
                   ((st.stx_mask & STATX_BTIME) == 0 ? "0"
                                                     : std::to_string(st.stx_btime.tv_sec) + "." +
                                                           std::to_string(st.stx_btime.tv_nsec)));
  std::ofstream(root / "identity") << text;
}

// Opens what is left. Returns what is wrong with it.
std::string judge(const fs::path& root, const Known& known, bool power_lost) {
  give_inode(root);
  const bool spool = fs::exists(root / "keeper/spool");
  auto dir = WorkDir::open(root.string(), known.id.empty() ? "n1" : "");
  if (!dir.ok()) return dir.error().message;
  if (dir->node_name() != "n1" && !known.id.empty()) return "it has another name";
  if (known.id.empty()) return "";
  const bool same = dir->id() == known.id;
  if (!same && !known.renewing) return "it is another node";
  if (same && dir->secret() != known.secret) return "it has another secret";
  if (same && !spool && (known.spooled || known.renewing)) return "it has lost its keeper's folder";
  const Learned now{dir->cluster_id(), dir->cluster_key(), dir->term()};
  if (now != known.learned && now != known.telling) return "it was told otherwise: " + now.text();
  if (dir->commit() > known.committing) return "it has a commit it never learned";
  const bool first = now == known.learned;
  if (!power_lost && first && known.learned == known.telling && dir->commit() < known.committed &&
      dir->commit() != 0)
    return "the commit " + std::to_string(known.committed) + " is lost";
  const agent::SealedHistory& sealed = dir->sealed();
  if (!sealed.seal.empty() && sealed.seal != seal_of(sealed.term, sealed.commit))
    return "an unknown seal";
  if (sealed.seal.empty() && now.term.epoch != 0) return "its seal is lost";
  return "";
}

std::string cut_everywhere(const std::vector<Op>& ops, uint64_t& points) {
  Scratch scratch;
  Disk disk;
  Known known;
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

TEST(WorkDirCrashPoints, CrashKeepsNodeIdentityAndLearnedState) {
  ASSERT_TRUE(recorded().whole) << "a system call that changes files was missed";
  uint64_t points = 0;
  EXPECT_EQ(cut_everywhere(recorded().ops, points), "");
  std::printf("crash points cut in the work-dir: %llu\n", static_cast<unsigned long long>(points));
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
    {"TheIdentityIsNotSynced",
     [](std::vector<Op>& ops) {
       std::erase_if(ops, [](const Op& op) { return op.kind == Op::Kind::sync && op.file != 0; });
     },
     ""},
    {"TheFolderIsNotSynced",
     [](std::vector<Op>& ops) {
       std::erase_if(ops, [](const Op& op) { return op.kind == Op::Kind::sync && op.file == 0; });
     },
     "it has another name"},
    {"TheKeeperGoesBeforeTheId",
     [](std::vector<Op>& ops) {
       for (size_t n = 0; n < ops.size(); ++n)
         if (ops[n].kind == Op::Kind::rename && ops[n].path == "keeper")
           for (size_t m = n; ops[m - 1].bytes != "renewing"; --m) std::swap(ops[m], ops[m - 1]);
     },
     "lost its keeper's folder"},
    {"ATermIsObeyedBeforeItIsWritten",
     [](std::vector<Op>& ops) {
       for (size_t n = 1; n < ops.size(); ++n)
         if (ops[n].bytes == "learned")
           for (size_t m = n; !ops[m - 1].bytes.starts_with("telling"); --m)
             std::swap(ops[m], ops[m - 1]);
     },
     "it was told otherwise"},
};

struct WorkDirPlantedTest : testing::TestWithParam<Planted> {};

TEST_P(WorkDirPlantedTest, PlantedWorkDirFaultIsNoticed) {
  std::vector<Op> ops = recorded().ops;
  GetParam().plant(ops);
  uint64_t points = 0;
  const std::string problem = cut_everywhere(ops, points);
  EXPECT_NE(problem.find(GetParam().noticed), std::string::npos) << problem;
  EXPECT_NE(problem, "");
  if (!HasFailure()) std::printf("proof 1 planted faults noticed\n");
}

INSTANTIATE_TEST_SUITE_P(Each, WorkDirPlantedTest, testing::ValuesIn(kPlanted),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace muster::crash
