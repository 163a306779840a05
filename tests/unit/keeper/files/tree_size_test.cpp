// The size of trees that are deep, wide, or change while they are measured.
#include "keeper/files/tree_size.hpp"

#include "tests/unit/agent/temp_dir.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

namespace trees = std::filesystem;

Fd open_tree(const std::string& path) {
  return Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

void write_bytes(const std::string& path, size_t bytes) {
  std::ofstream(path) << std::string(bytes, 'x');
}

struct Measured {
  uint64_t bytes = 0;
  size_t steps = 0;
};

Measured measured(const std::string& path, size_t entries) {
  TreeSize size(open_tree(path));
  Measured result;
  do ++result.steps;
  while (!size.step(entries) && result.steps < 1'000'000);
  result.bytes = size.bytes();
  return result;
}

TEST(TreeSizeTest, IsTheSameInStepsOfAnySize) {
  agent::TempDir dir;
  for (const char* name : {"a", "a/b", "a/b/c", "d", "e"}) {
    trees::create_directory(dir / name);
    write_bytes(dir / (std::string(name) + "/file"), 10'000);
  }
  trees::create_symlink("/usr", dir / "e/link");
  const Measured whole = measured(dir.path(), 1'000'000);
  EXPECT_EQ(whole.steps, 1u);
  EXPECT_GE(whole.bytes, 5u * 10'000);
  EXPECT_LT(whole.bytes, 1'000'000u) << "it does not follow the link";
  for (const size_t entries : {1u, 2u, 3u, 7u}) {
    EXPECT_EQ(measured(dir.path(), entries).bytes, whole.bytes) << entries;
  }
}

TEST(TreeSizeTest, ADeepTreeTakesStepsInProportion) {
  agent::TempDir dir;
  constexpr size_t kDepth = 20'000;
  Fd at = open_tree(dir.path());
  for (size_t depth = 0; depth < kDepth; ++depth) {
    ASSERT_EQ(mkdirat(at.get(), "d", 0700), 0);
    at = Fd(openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  EXPECT_LE(measured(dir.path(), 1'000).steps, kDepth / 100);
  // std::filesystem would run out of stack.
  Fd top = open_tree(dir.path());
  ASSERT_EQ(renameat(top.get(), "d", top.get(), "0"), 0);
  for (size_t depth = 0;; ++depth) {
    const std::string name = std::to_string(depth), next = std::to_string(depth + 1);
    const Fd one(openat(top.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool last = renameat(one.get(), "d", top.get(), next.c_str()) != 0;
    ASSERT_EQ(unlinkat(top.get(), name.c_str(), AT_REMOVEDIR), 0);
    if (last) break;
  }
}

TEST(TreeSizeTest, DirectoryMovedOutOfTreeIsNotFollowed) {
  agent::TempDir dir, elsewhere;
  trees::create_directories(dir / "a/b");
  trees::create_directories(dir / "z");
  write_bytes(elsewhere / "large", 5'000'000);
  TreeSize size(open_tree(dir.path()));
  bool done = false;
  // While it is somewhere in the tree, its parent is moved out of it.
  for (size_t step = 0; !done && step < 100; ++step) {
    if (step == 3) trees::rename(dir / "a", elsewhere / "a");
    done = size.step(1);
  }
  EXPECT_TRUE(done);
  EXPECT_LT(size.bytes(), 1'000'000u);
}

TEST(TreeSizeTest, MissingDirectoryHasNoSize) {
  TreeSize size{Fd()};
  EXPECT_TRUE(size.step(1));
  EXPECT_EQ(size.bytes(), 0u);
}

}  // namespace
}  // namespace muster::keeper
