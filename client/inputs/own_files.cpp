#include "client/inputs/own_files.hpp"

#include "base/fd.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/owner_file.hpp"
#include "client/terminal/text.hpp"
#include "core/pod_name.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr off_t kTailMax = 4 << 20;  // bytes in which the last lines are looked for

core::StringMap annotations_of(const Json& job) {
  core::StringMap out;
  for (const auto& [key, value] : at(job, {"metadata", "annotations"}).items())
    if (value.is_string()) out[key] = value.get<std::string>();
  return out;
}

Error unreadable(const std::string& path, const std::string& why) {
  return invalid("the output is in " + path + " on its node, which cannot be read here: " + why);
}

// Opens a regular file of this user.
Result<Fd> open_of(uid_t user, const std::string& path) {
  auto file = open_for_owner(path, user, true);
  if (!file) return unreadable(path, file.error().message);
  if (Status own = belongs_to(*file, user); !own) return unreadable(path, own.error().message);
  return file;
}

Status each_part_of(int fd, const std::string& path,
                    const std::function<bool(std::string_view)>& write) {
  std::array<char, 64 << 10> bytes;
  for (;;) {
    const ssize_t size = read(fd, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return unreadable(path, std::strerror(errno));
    if (size == 0 || !write({bytes.data(), static_cast<size_t>(size)})) return Nothing{};
  }
}

}  // namespace

OwnFiles::OwnFiles(const Json& job)
    : settings_(core::read_process_settings(annotations_of(job))),
      user_(pods_user(job)),
      name_(text_at(job, {"metadata", "name"})),
      uid_(text_at(job, {"metadata", "uid"})),
      indexed_(is_indexed(job)),
      inputs_(job) {}

bool OwnFiles::on_node() const {
  for (const std::string* text : {&settings_.out, &settings_.err})
    if (auto pattern = core::OutputPattern::parse(*text); pattern.ok() && pattern->has('n'))
      return true;
  return false;
}

std::vector<std::string> OwnFiles::paths(int64_t index, int64_t attempt, const std::string& node,
                                         std::optional<bool> err) const {
  const PodKey key{static_cast<uint32_t>(index), static_cast<uint32_t>(attempt)};
  const core::ProcessSettings of_pod =
      core::for_pod(settings_, {.job = name_,
                                .pod = core::pod_name(name_, uid_, indexed_, key),
                                .node = node,
                                .index = index,
                                .attempt = attempt,
                                .task = inputs_.of(index).value_or("")});
  std::vector<std::string> out;
  const bool apart = !of_pod.err.empty();
  for (const std::string* file : {&of_pod.out, &of_pod.err}) {
    const bool wanted = !err || !apart || *err == (file == &of_pod.err);
    if (wanted && !file->empty() && *file != "/dev/null" &&
        std::ranges::find(out, *file) == out.end())
      out.push_back(*file);
  }
  return out;
}

Status OwnFiles::read(const std::string& path, std::optional<int64_t> lines,
                      const std::function<bool(std::string_view)>& write) const {
  const auto file = open_of(user_, path);
  if (!file) return file.error();
  const int fd = file->get();
  if (lines) {
    const off_t size = lseek(fd, 0, SEEK_END);
    lseek(fd, size > kTailMax ? size - kTailMax : 0, SEEK_SET);
    std::string text;
    if (Status read = each_part_of(fd, path,
                                   [&text](std::string_view part) {
                                     text += part;
                                     return true;
                                   });
        !read)
      return read;
    for (const std::string& line : last_lines(text, static_cast<size_t>(*lines)))
      if (!write(line + "\n")) break;
    return Nothing{};
  }
  return each_part_of(fd, path, write);
}

}  // namespace muster::cli
