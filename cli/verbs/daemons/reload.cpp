#include "base/fd.hpp"
#include "base/log.hpp"
#include "cli/verbs/daemons/daemon_options.hpp"

#include <fcntl.h>

namespace muster::cli {

bool reloads_at_hangup() {
  return !Fd(open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
}

std::optional<Settings> read_again(SettingsSource& source,
                                   const std::function<Status(const Settings&)>& valid) {
  auto read = source.read();
  if (read)
    if (const Status ok = valid(*read); !ok) read = ok.error();
  if (!read) {
    log::error("SIGHUP: the configuration stays as it is: {}", read.error().message);
    return std::nullopt;
  }
  Reload found = reload(source.now, *read);
  for (const std::string& one : found.taken) log::info("SIGHUP: {}", one);
  for (const std::string& one : found.later)
    log::warn("SIGHUP: {}: takes effect after a restart", one);
  if (found.taken.empty() && found.later.empty()) log::info("SIGHUP: no setting has changed");
  source.now = found.settings;
  spdlog::set_level(spdlog::level::from_str(source.now.text("log-level")));
  return source.now;
}

}  // namespace muster::cli
