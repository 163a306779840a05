// Disk: what a crash leaves of a directory, at each system call that changed it.
//
// The test program defines the system calls that change files (open, write, fsync, rename, unlink
// and so on; disk.cpp), so calls from RocksDB, muster's own files and the keeper's spool all pass
// through here. Between start() and stop(), each call below the watched directory becomes an Op.
// Replaying the first n Ops gives the directory as of the n-th call, both in the page cache and on
// the disk. An Image is one of the directories that a crash at that point may leave.
//
// This program never really syncs: the model decides what a sync makes durable.
// Writes by libc through a FILE and stores through a mapping are not seen. To detect missed
// changes, replay all ops: they must give the actual directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::crash {

using File = uint64_t;  // an inode; its number is never reused

struct Op {
  enum class Kind {
    make_file,  // path, file
    make_dir,   // path, file
    write,      // file, offset, bytes
    truncate,   // file, offset: the new size
    sync,       // file, or a directory by its path
    rename,     // path to other_path
    link,       // path to other_path
    remove,     // path: of a file or a directory
    mark,       // bytes: a note by the test, not a system call
  };
  Kind kind{};
  std::string path{}, other_path{};  // relative to the watched directory; "" is the root
  File file = 0;
  size_t offset = 0;
  std::string bytes{};
};
std::string to_string(const Op& op);

// The n-th system call that would change something (counted from 1) fails with this error and
// changes nothing; with `for_good`, so do all later ones.
struct Failure {
  uint64_t nth = 0;  // 0: none
  int error = 0;
  bool for_good = false;
};

// Watches `root` until stop(). Returns the ops that create its current contents, all synced.
std::vector<Op> start(const std::filesystem::path& root, Failure failure = {});
struct Watched {
  std::vector<Op> ops;
  uint64_t failed = 0;  // system calls
};
Watched stop();
// Records a test event among the system calls.
void mark(const std::string& what);
// Whether the last file written has since been synced, and a directory after it. Not counted: files
// whose path ends with `except`, which need not reach the disk; empty: none.
bool settled(std::string_view except = "");

// A directory that is removed when the test ends. A child process creates its own below the one
// named by this variable, since destructors do not run if an assertion ends the child.
constexpr const char* kScratchVariable = "MUSTER_CRASH_DIR";
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// What happens to unsynced changes.
enum class Loss {
  nothing,  // all kept: a process was killed
  all,      // all lost: the power failed
  torn,     // only the first half is written, in each file
  holes,    // only the pages of the second half are written, with zeros before them
  data,     // names survive, data does not: each file has its length, filled with zeros
  names,    // data survives, names do not: created files are gone, removed ones are back
};
constexpr Loss kLosses[] = {Loss::nothing, Loss::all,  Loss::torn,
                            Loss::holes,   Loss::data, Loss::names};
const char* name(Loss loss);

struct Image {
  std::set<std::string> dirs;
  std::map<std::string, std::string> files;
  bool operator==(const Image&) const = default;
  size_t hash() const;
  // Writes it to `root`, which must be absent.
  void put(const std::filesystem::path& root) const;
};
Image read_image(const std::filesystem::path& root);
// Whether replaying all the watched ops gives the actual directory.
bool whole(const std::vector<Op>& ops, const std::filesystem::path& root);

// Replays ops.
class Disk {
 public:
  Disk();
  void apply(const Op& op);
  Image after(Loss loss) const;

 private:
  struct Change {
    size_t offset = 0;
    std::string bytes;
    bool cut = false;  // a truncation: the new size is `offset`
  };
  struct Node {
    bool dir = false;
    std::string data, synced_data;
    std::vector<Change> unsynced;
    std::map<std::string, File> names, synced_names;  // of a directory
  };
  static void change(std::string& data, const Change& by);
  static std::string left(const Node& node, Loss loss);
  Node& at(File file) { return nodes_.at(file); }
  File find(const std::string& path) const;
  std::map<std::string, File>& folder(const std::string& path);
  void collect(File dir, const std::string& prefix, Loss loss, Image& to) const;

  std::map<File, Node> nodes_;  // the root is 0
};

}  // namespace muster::crash
