#include "drill/process/mark.hpp"

#include "base/files/whole_write.hpp"
#include "client/terminal/json.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster::cli::drill {
namespace {

constexpr char kMarkName[] = "/.muster-drill";
constexpr size_t kMarkMax = 16'384;  // bytes

}  // namespace

Result<Mark> Mark::take(const std::string& dir) {
  const std::string path = dir + kMarkName;
  for (;;) {
    Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
    if (!file)
      return invalid("--witness-dir " + dir + ": cannot write there: " + std::strerror(errno));
    struct stat st {};
    if (fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
      return invalid("--witness-dir " + dir + " is that of another user's drill");
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0)
      return Error{Errc::conflict,
                   "another drill works with --witness-dir " + dir + "; give this one another",
                   {}};
    if (fstat(file.get(), &st) != 0 || st.st_nlink == 0) continue;  // that drill has just ended
    Mark mark(std::move(file), path);
    std::string text(kMarkMax, '\0');
    const ssize_t n = pread(mark.file_.get(), text.data(), text.size(), 0);
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    const Json json = read_json(text);
    mark.left_ = {text_at(json, {"drill"}), text_at(json, {"binary"})};
    return mark;
  }
}

Status Mark::write(const Undone& what) {
  const std::string text = dumped(Json{{"drill", what.drill}, {"binary", what.binary}});
  if (ftruncate(file_.get(), 0) == 0 && write_whole_at(file_.get(), text, 0) &&
      fsync(file_.get()) == 0)
    return Nothing{};
  return Error{Errc::unavailable, "cannot write " + path_ + ": " + std::strerror(errno), {}};
}

void Mark::remove() {
  unlink(path_.c_str());
  file_ = Fd();
}

}  // namespace muster::cli::drill
