#include "coordinator/poisoned.hpp"

#include "base/fd.hpp"
#include "base/last_words.hpp"
#include "base/log.hpp"
#include "base/private_files.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <optional>
#include <utility>

namespace muster::coordinator {
namespace {

constexpr const char* kFile = "crashes";

struct PastStart {
  std::string version;
  std::set<JobId> aside;
  std::optional<JobId> crashed_at;
};

// The job of a line "<word> <job>".
std::optional<JobId> job_of(std::string_view line, std::string_view word) {
  if (!line.starts_with(word)) return std::nullopt;
  line.remove_prefix(word.size());
  JobId job = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), job);
  return error == std::errc{} && end == line.data() + line.size() ? std::optional(job)
                                                                  : std::nullopt;
}

// Lines that make no sense are ignored: a torn one after a power cut, say.
std::deque<PastStart> starts_of(std::string_view text) {
  constexpr std::string_view kStart = "start ";
  std::deque<PastStart> starts;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with(kStart))
      starts.push_back({std::string(line.substr(kStart.size())), {}, {}});
    else if (starts.empty())
      continue;
    else if (const auto aside = job_of(line, "aside "))
      starts.back().aside.insert(*aside);
    else if (const auto job = job_of(line, "job "))
      starts.back().crashed_at = *job;  // the last one: several threads may crash
  }
  return starts;
}

std::string lines_of(const PastStart& start) {
  std::string text = "start " + start.version + "\n";
  for (const JobId job : start.aside) text += "aside " + std::to_string(job) + "\n";
  if (start.crashed_at) text += "job " + std::to_string(*start.crashed_at) + "\n";
  return text;
}

}  // namespace

CrashHistory read_crashes(std::string_view text, std::string_view version) {
  std::deque<PastStart> starts = starts_of(text);
  CrashHistory history;
  if (starts.empty() || starts.back().version != version) return history;
  history.aside = starts.back().aside;
  while (starts.size() > kCrashesMax) starts.pop_front();
  const std::optional<JobId> last = starts.back().crashed_at;
  bool poisoned = last && starts.size() == kCrashesMax;
  for (const PastStart& start : starts)
    poisoned = poisoned && start.version == version && start.crashed_at == last;
  if (poisoned) history.aside.insert(*last);
  for (const PastStart& start : starts) history.kept += lines_of(start);
  return history;
}

std::set<JobId> begin_start(const std::string& data_dir, std::string_view version) {
  auto warn = [&data_dir](const std::string& why) {
    log::warn("{}/{}: {}; a crash of this coordinator will not be noted", data_dir, kFile, why);
  };
  auto dir = open_private_dir(data_dir, "data-dir");
  if (!dir) {
    warn(dir.error().message);
    return {};
  }
  CrashHistory history = read_crashes(read_private_file(dir->get(), kFile).value_or(""), version);
  const PastStart start{std::string(version), history.aside, {}};
  Status written = replace_private_file(dir->get(), kFile, history.kept + lines_of(start));
  Fd file = open_private_file(dir->get(), kFile, O_WRONLY | O_APPEND);
  if (!written)
    warn(written.error().message);
  else if (!file)
    warn(std::strerror(errno));
  else
    note_crashes(file.release());
  return std::move(history.aside);
}

}  // namespace muster::coordinator
