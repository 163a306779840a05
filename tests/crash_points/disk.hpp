// Disk: what a crash leaves of a directory, at each of the system calls that changed it.
//
// The test program defines the system calls that change files (open, write, fsync, rename, unlink
// and so on; disk.cpp), so that those of RocksDB, of muster's own files and of the keeper's spool
// all pass through here. Between start() and stop(), each one below the watched directory becomes
// an Op. Ops replayed up to the n-th give the directory as of that call: as the page cache has it,
// and what of it is on the disk. An Image is one of the directories that a crash there may leave.
//
// Nothing is really synced, in this program: the model decides what a sync was worth.
// Not seen: what libc itself writes through a FILE, and stores through a mapping. Whether anything
// was missed shows when all ops are replayed: they must give the directory as it is.
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
    mark,       // bytes: a note of the test, no system call
  };
  Kind kind{};
  std::string path{}, other_path{};  // relative to the watched directory; "" is itself
  File file = 0;
  size_t offset = 0;
  std::string bytes{};
};
std::string to_string(const Op& op);

// The n-th system call that would change something (1: the first) fails with this error and changes
// nothing; with `for_good`, so do all later ones.
struct Failure {
  uint64_t nth = 0;  // 0: none
  int error = 0;
  bool for_good = false;
};

// Watches `root` until stop(). Returns the ops that make what is there now, all of it synced.
std::vector<Op> start(const std::filesystem::path& root, Failure failure = {});
struct Watched {
  std::vector<Op> ops;
  uint64_t failed = 0;  // system calls
};
Watched stop();
// Notes an event of the test among the system calls.
void mark(const std::string& what);
// Whether the file of the last write was synced since, and after it a directory.
bool settled();

// A directory that ends with the test. A child process makes its own below the one that this
// variable names, since its destructors do not run if an assertion ends it.
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

// What becomes of that which was not synced.
enum class Loss {
  nothing,  // kept: a process was killed
  all,      // the power is gone
  torn,     // of each file, the first half of it is written
  holes,    // of each file, the pages of the second half are written, and zeros before them
  data,     // names are there, data is not: each file has its length, with zeros
  names,    // data is there, names are not: created files are gone, removed ones are back
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
// Whether these ops, all that were watched, give the directory as it is.
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
    bool cut = false;  // of a truncation: the new size is `offset`
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
