// Compares with files of the checkout. The checkout is found from the executable, not from
// `__FILE__`: a compiler cache shared by several checkouts may return an object compiled in another
// one.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace muster {

// The root of the checkout that this test was built in. Throws if the executable is not below one.
inline std::filesystem::path checkout() {
  const auto executable = std::filesystem::read_symlink("/proc/self/exe");
  for (auto folder = executable.parent_path(); folder != folder.root_path();
       folder = folder.parent_path())
    if (std::filesystem::exists(folder / "tests/unit/checked_in.hpp")) return folder;
  throw std::runtime_error("no checkout above " + executable.string());
}

// The text of the file `name`, relative to the checkout. Fails the test if it cannot be read.
inline std::string read_checked_in(const std::string& name) {
  std::ifstream file(checkout() / name);
  EXPECT_TRUE(file.good()) << name << " is not in " << checkout();
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Expects the file `name`, relative to the checkout, to contain `text`. With MUSTER_GOLDEN_WRITE,
// writes it instead.
inline void expect_checked_in(const std::string& name, const std::string& text) {
  const auto path = checkout() / name;
  if (std::getenv("MUSTER_GOLDEN_WRITE") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return;
  }
  EXPECT_EQ(text, read_checked_in(name)) << name << ": `./dev golden` rewrites it";
}

}  // namespace muster
