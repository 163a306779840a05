#include "core/spec/fields/limit_signal.hpp"

#include "core/spec/values/duration.hpp"

#include <charconv>
#include <csignal>
#include <string>
#include <utility>

namespace muster::core {
namespace {

// Those that a process can handle and that mean nothing else to muster or to a shell.
constexpr std::pair<std::string_view, int> kSignals[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT},   {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
    {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"CONT", SIGCONT},   {"URG", SIGURG},   {"XCPU", SIGXCPU},
    {"PROF", SIGPROF}, {"POLL", SIGPOLL}, {"WINCH", SIGWINCH}, {"PWR", SIGPWR}};

std::optional<int64_t> whole(std::string_view text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

// 0: there is no such signal.
int signal_named(std::string_view name) {
  if (name.starts_with("SIG")) name.remove_prefix(3);
  const auto number = whole(name);
  for (const auto& [known, value] : kSignals)
    if (name == known || number == value) return value;
  return 0;
}

}  // namespace

Result<LimitSignal> parse_limit_signal(std::string_view text) {
  LimitSignal out;
  std::string_view rest = text;
  if (rest.starts_with("B:")) {
    out.first_only = true;
    rest.remove_prefix(2);
  }
  const size_t at = rest.find('@');
  const int number = signal_named(rest.substr(0, at));
  if (number == 0) {
    std::string names;
    for (const auto& [name, value] : kSignals)
      names += (names.empty() ? "" : ", ") + std::string(name);
    return invalid("`" + std::string(text) +
                   "`: must be SIGNAL@TIME, such as USR1@2m, with one of " + names);
  }
  out.number = static_cast<uint8_t>(number);
  if (at == std::string_view::npos) return out;
  const std::string_view time = rest.substr(at + 1);
  const bool seconds = time.find_first_not_of("0123456789.") == std::string_view::npos;
  const auto before = parse_duration(std::string(time) + (seconds ? "s" : ""));
  if (!before || *before <= 0)
    return invalid("`" + std::string(text) +
                   "`: the time before the limit must be a duration such as "
                   "2m or a number of seconds");
  out.before_ms = *before;
  return out;
}

std::optional<LimitSignal> limit_signal_of(const StringMap& annotations) {
  const auto found = annotations.find(std::string(kSignalKey));
  if (found == annotations.end()) return std::nullopt;
  auto parsed = parse_limit_signal(found->second);
  return parsed ? std::optional(*parsed) : std::nullopt;
}

void validate_limit_signal(const StringMap& annotations, const JobSpec& spec, Violations& found) {
  const auto it = annotations.find(std::string(kSignalKey));
  if (it == annotations.end()) return;
  const std::string path = "metadata.annotations[" + it->first + "]";
  if (auto parsed = parse_limit_signal(it->second); !parsed)
    found.invalid(path, it->second, parsed.error().message);
  else if (!spec.pod.active_deadline_s)
    found.invalid(path, it->second,
                  "needs a time limit of the pod, spec.template.spec.activeDeadlineSeconds");
  else if ((parsed->before_ms + 999) / 1000 >= *spec.pod.active_deadline_s)
    found.invalid(path, it->second,
                  "must come later than the start: the pod's time limit is " +
                      std::to_string(*spec.pod.active_deadline_s) + "s");
}

}  // namespace muster::core
