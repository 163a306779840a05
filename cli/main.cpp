// muster: one executable, a file a verb.
#include "cli/line/app.hpp"
#include "cli/output/exit_codes.hpp"
#include "cli/verbs/verbs.hpp"

#include <csignal>
#include <unistd.h>

int main(int argc, char** argv) {
  // Daemons and `run` take signals in their own way; for all else Ctrl-C has one meaning and one
  // exit code.
  std::signal(SIGINT, [](int) { _exit(muster::cli::kInterrupted); });
  std::signal(SIGPIPE, SIG_DFL);
  const muster::cli::Parsed parsed =
      muster::cli::parse(argc, argv, muster::cli::Config::of_process());
  if (!parsed.options) return parsed.exit_code;
  return std::visit([](const auto& options) { return muster::cli::execute(options); },
                    *parsed.options);
}
