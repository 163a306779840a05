// TempDir: a temporary directory, removed by its destructor.
#pragma once

#include "base/check.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

namespace muster::agent {

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-agent-XXXXXX").string();
    MUSTER_CHECK(mkdtemp(name.data()) != nullptr, name);
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace muster::agent
