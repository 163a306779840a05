// muster: the executable; its verbs are in cli/verbs/. In the pods of MPI jobs it is also called
// muster-rsh (or ssh), muster-mpi-entry (agent/pod_programs/rsh.hpp) and muster-pmi
// (agent/pod_programs/pmi.hpp).
#include "agent/pod_programs/pmi.hpp"
#include "agent/pod_programs/rsh.hpp"
#include "base/files/standard_fds.hpp"
#include "cli/grammar/app.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/safe_output.hpp"
#include "client/terminal/starved.hpp"
#include "drill/hand.hpp"
#include "drill/proof/witness.hpp"

#include <algorithm>
#include <csignal>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

// The name by which this executable was called.
std::string called_as(const char* name) {
  const std::string path = name == nullptr ? "" : name;
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

int main(int argc, char** argv) {
  muster::open_standard_fds();
  const std::string program = called_as(argc > 0 ? argv[0] : nullptr);
  if (program == "muster-rsh" || program == "ssh" || program == "rsh")
    return muster::agent::run_rsh({argv + 1, argv + argc});
  if (program == "scp") return muster::agent::refuse_scp();
  if (program == "muster-pmi") return muster::agent::run_pmi({argv + 1, argv + argc});
  if (program == "muster-mpi-entry") return muster::agent::run_mpi_entry({argv + 1, argv + argc});
  // Runs in the pods of a drill's canary; not a verb for users.
  if (argc > 2 && std::string_view(argv[1]) == "drill" && std::string_view(argv[2]) == "witness")
    return muster::cli::drill::run_witness({argv + 3, argv + argc});
  // The part of a drill that runs on nodes; likewise.
  if (argc > 2 && std::string_view(argv[1]) == "drill" && std::string_view(argv[2]) == "hand")
    return muster::cli::drill::run_hand({argv + 3, argv + argc});
  muster::cli::report_uncaught();
  // Daemons and verbs that wait handle signals themselves; for all others Ctrl-C exits with
  // kInterrupted.
  std::signal(SIGINT, [](int) { _exit(muster::cli::kInterrupted); });
  std::signal(SIGPIPE, SIG_DFL);
  const muster::cli::SafeOutput safe;
  const muster::cli::Parsed parsed =
      muster::cli::parse(argc, argv, muster::cli::Config::of_process());
  const int code = parsed.call ? parsed.call->run() : parsed.exit_code;
  const auto lost = muster::cli::lost_output();
  if (muster::cli::reader_left()) muster::cli::end_by_sigpipe();
  return lost ? muster::cli::fail(std::max(code, int{muster::cli::kFailed}), *lost) : code;
}
