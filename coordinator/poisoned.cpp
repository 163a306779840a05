#include "coordinator/poisoned.hpp"

#include "base/fd.hpp"
#include "base/files/private_files.hpp"
#include "base/last_words.hpp"
#include "base/log.hpp"
#include "storage/journal/text_number.hpp"

#include <algorithm>
#include <deque>
#include <fcntl.h>
#include <optional>
#include <utility>

namespace muster::coordinator {
namespace {

constexpr const char* kFile = "crashes";

struct PastStart {
  std::string version;
  bool served = false;
  std::set<JobId> aside;
  std::optional<JobId> crashed_at;
};

// The next word of a line; empty: there is none.
std::string_view take_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// Malformed lines, such as one torn by a power cut, are ignored.
std::deque<PastStart> starts_of(std::string_view text) {
  std::deque<PastStart> starts;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view kind = take_word(line);
    if (kind == "start") {
      starts.push_back({std::string(line), true, {}, {}});
      continue;
    }
    const auto job = storage::parse_number(take_word(line));
    if (!job) continue;
    if (kind == "aside" && !starts.empty() && !starts.back().crashed_at) {
      starts.back().aside.insert(*job);
    } else if (kind == "crash") {
      if (starts.empty() || starts.back().crashed_at || starts.back().version != line)
        starts.push_back({std::string(line), false, {}, {}});  // it never served
      starts.back().crashed_at = *job;
    }
  }
  return starts;
}

std::string lines_of(const PastStart& start) {
  std::string text;
  if (start.served) text += "start " + start.version + "\n";
  for (const JobId job : start.aside) text += "aside " + std::to_string(job) + "\n";
  if (start.crashed_at)
    text += "crash " + std::to_string(*start.crashed_at) + " " + start.version + "\n";
  return text;
}

// Opens the file for appending; none: it does not exist.
Fd open_to_append(int dir_fd) {
  return open_private_file(dir_fd, kFile, O_WRONLY | O_APPEND);
}

}  // namespace

CrashHistory read_crashes(std::string_view text, std::string_view version) {
  std::deque<PastStart> starts = starts_of(text);
  CrashHistory history;
  // Jobs that the last start that served set aside stay so in the next start of the same version.
  const auto served = std::find_if(starts.rbegin(), starts.rend(),
                                   [](const PastStart& start) { return start.served; });
  if (served != starts.rend() && served->version == version) history.aside = served->aside;
  while (starts.size() > kCrashesMax) starts.pop_front();
  for (const PastStart& start : starts) history.kept += lines_of(start);
  if (starts.size() < kCrashesMax) return history;
  const std::optional<JobId> last = starts.back().crashed_at;
  const bool poisoned = last && std::all_of(starts.begin(), starts.end(), [&](const auto& start) {
                          return start.version == version && start.crashed_at == last;
                        });
  if (poisoned) history.aside.insert(*last);
  return history;
}

CrashHistory begin_start(const std::string& data_dir, std::string_view version) {
  auto dir = open_private_dir(data_dir, "data-dir");
  if (!dir) return {};
  note_crashes(open_to_append(dir->get()).release(), version);
  return read_crashes(read_private_file(dir->get(), kFile).value_or(""), version);
}

void note_start(const std::string& data_dir, std::string_view version,
                const CrashHistory& history) {
  auto warn = [&data_dir](const std::string& why) {
    log::warn("{}/{}: {}; a crash of this coordinator will not be noted", data_dir, kFile, why);
  };
  note_crashes(-1, version);
  auto dir = open_private_dir(data_dir, "data-dir");
  if (!dir) return warn(dir.error().message);
  const PastStart start{std::string(version), true, history.aside, {}};
  const Status written = replace_private_file(dir->get(), kFile, history.kept + lines_of(start));
  if (!written) return warn(written.error().message);
  note_crashes(open_to_append(dir->get()).release(), version);
}

}  // namespace muster::coordinator
