#include "standby/checkpoint.hpp"

#include "base/fd.hpp"

#include <kj/debug.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace muster::standby {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCopies = "/copies";
constexpr size_t kPiece = 1u << 20;

struct Dir {
  explicit Dir(std::string at) : path(std::move(at)) {}
  ~Dir() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Dir(const Dir&) = delete;
  Dir& operator=(const Dir&) = delete;
  const std::string path;
};

class Copy final : public wire::Checkpoint::Server {
 public:
  Copy(std::unique_ptr<Dir> dir, kj::Own<void> attached)
      : attached_(kj::mv(attached)), dir_(std::move(dir)) {
    for (const auto& entry : fs::directory_iterator(dir_->path))
      files_.push_back({entry.path().filename().string(), entry.file_size()});
  }

  kj::Promise<void> files(FilesContext context) override {
    auto out = context.initResults().initFiles(static_cast<unsigned>(files_.size()));
    for (size_t i = 0; i < files_.size(); ++i) {
      out[static_cast<unsigned>(i)].setName(files_[i].name);
      out[static_cast<unsigned>(i)].setSize(files_[i].size);
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> read(ReadContext context) override {
    const auto params = context.getParams();
    KJ_REQUIRE(params.getFile() < files_.size(), "there is no such file");
    const std::string path = dir_->path + "/" + files_[params.getFile()].name;
    const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    auto bytes = kj::heapArray<kj::byte>(kPiece);
    const ssize_t size =
        fd ? pread(fd.get(), bytes.begin(), kPiece, static_cast<off_t>(params.getOffset())) : -1;
    KJ_REQUIRE(size >= 0, "the copy can't be read", path.c_str(), std::strerror(errno));
    context.initResults().setBytes(bytes.slice(0, static_cast<size_t>(size)));
    return kj::READY_NOW;
  }

 private:
  struct File {
    std::string name;
    uint64_t size;
  };
  kj::Own<void> attached_;
  std::unique_ptr<Dir> dir_;
  std::vector<File> files_;
};

}  // namespace

kj::Promise<Result<wire::Checkpoint::Client>> checkpoint_of(std::shared_ptr<coordinator::Door> door,
                                                            storage::Journal& journal,
                                                            const std::string& data_dir,
                                                            kj::Own<void> attached) {
  static uint64_t made = 0;  // by this thread, the only one that makes copies
  auto dir = std::make_unique<Dir>(data_dir + kCopies + "/" + std::to_string(++made));
  std::error_code failed;
  fs::create_directory(data_dir + kCopies, failed);
  auto paf = kj::newPromiseAndFulfiller<Status>();
  struct Work {
    kj::Own<kj::PromiseFulfiller<Status>> done;
    std::thread thread;
  };
  auto work = std::make_shared<Work>();
  work->done = kj::mv(paf.fulfiller);
  work->thread = std::thread([&journal, door, path = dir->path, work] {
    Status status = journal.checkpoint(path);
    door->post([work, status = std::move(status)]() mutable {
      work->thread.join();
      work->done->fulfill(std::move(status));
    });
  });
  return paf.promise.then([dir = std::move(dir), attached = kj::mv(attached)](
                              Status&& status) mutable -> Result<wire::Checkpoint::Client> {
    if (!status) return status.error();
    return wire::Checkpoint::Client(kj::heap<Copy>(std::move(dir), kj::mv(attached)));
  });
}

void remove_checkpoints(const std::string& data_dir) {
  const Dir copies(data_dir + kCopies);
}

}  // namespace muster::standby
