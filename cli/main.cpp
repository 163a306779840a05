// muster: the executable; each verb has a file in cli/verbs/.
#include "cli/line/app.hpp"
#include "cli/output/exit_codes.hpp"
#include "cli/verbs/verbs.hpp"

#include <csignal>
#include <unistd.h>

int main(int argc, char** argv) {
  // Daemons and verbs that wait handle signals themselves; for all others Ctrl-C exits with
  // kInterrupted.
  std::signal(SIGINT, [](int) { _exit(muster::cli::kInterrupted); });
  std::signal(SIGPIPE, SIG_DFL);
  const muster::cli::Parsed parsed =
      muster::cli::parse(argc, argv, muster::cli::Config::of_process());
  if (!parsed.options) return parsed.exit_code;
  return std::visit([](const auto& options) { return muster::cli::execute(options); },
                    *parsed.options);
}
