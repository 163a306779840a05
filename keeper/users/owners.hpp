// Owners: processes of several users, started by a keeper that runs as root.
//
// The environment of such a keeper says whose orders it takes (MUSTER_KEEPER_AGENT, a uid), whose
// permits it accepts (MUSTER_KEEPER_PERMIT_KEY, the coordinator's public key), and its node's name
// (MUSTER_KEEPER_NODE); rlimits.hpp and pam.hpp add more. It starts nothing without a permit:
// command line, environment, working directory and file names come from there
// (trust/permit/permit.hpp), and only numbers from the agent. The programs before and after each
// pod (MUSTER_KEEPER_PROLOG, MUSTER_KEEPER_EPILOG) are named there, too: the agent, which is not
// root, orders that they run, and not what they are. They run as root unless MUSTER_KEEPER_HOOKS_AS
// is `owner`.
//
// Invariant: nothing else runs as root or, unless MUSTER_KEEPER_UID_MIN allows it, a uid below
// 1000.
#pragma once

#include "core/ids.hpp"
#include "core/node/command.hpp"
#include "keeper/kernel/rlimits.hpp"
#include "keeper/protocol.hpp"
#include "keeper/users/pam.hpp"
#include "trust/permit/permit.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace muster::keeper {

// The command of a process. `home`: its directory is a default, so "/" is used if it is missing.
struct OwnerCommand : core::node::Command {
  bool home = false;
};

// What an order adds to a permit.
struct PermitOrder {
  PermitPtr permit;  // null: the order names none that was accepted
  core::node::DeviceMap devices;
  std::string run{};  // name of the pod's run directory; empty: none
  core::node::MpiFacts mpi{};
  bool private_tmp = false;  // the agent wants it for all pods
};

class Owners {
 public:
  struct Settings {
    uid_t agent_uid = 0;
    gid_t agent_gid = 0;  // may read what pods write, if the agent is of an earlier version
    gid_t mark_gid = 0;   // the group of outputs
    uid_t uid_min = 1000;
    std::string key;                      // public, in hexadecimal
    std::string node;                     // name
    int work_fd = -1;                     // the work-dir
    std::string work_dir{};               // its path
    std::vector<ResourceLimit> limits{};  // of what it starts, besides its own
    PamSettings pam{};
    std::string scratch{};           // where pods' directories are; empty: nowhere
    std::string prolog{}, epilog{};  // absolute paths; empty: none
    bool hooks_as_root = true;
  };
  // From the environment. nullopt: this keeper runs processes as its own user. An error: it should
  // not, but a setting is missing or wrong.
  static Result<std::optional<Settings>> settings(int work_fd);

  explicit Owners(Settings settings) : settings_(std::move(settings)) {}

  uid_t agent_uid() const { return settings_.agent_uid; }
  const std::vector<ResourceLimit>& limits() const { return settings_.limits; }
  const PamSettings& pam() const { return settings_.pam; }
  // Verifies and reads a permit; the error says why it is not accepted. `job`: its template, if
  // that is not part of it.
  Result<PermitPtr> accept(std::string_view bytes, std::string_view signature,
                           std::string_view job = {}) const;
  // Why the permit is not valid at this time, by the wall clock; nullopt if it is.
  std::optional<std::string> refuses(const Permit& permit, Millis wall_ms) const;
  Result<OwnerCommand> command(const PermitOrder& order, PodId pod, size_t container) const;
  // The pod's prolog or epilog (core::node::is_hook()).
  Result<OwnerCommand> hook(const PermitOrder& order, PodId pod, uint16_t which) const;
  bool hooks_as_root() const { return settings_.hooks_as_root; }
  // Opens a pod's output for appending (if `session` is not 0, the output of that session). It is
  // created for the owner, with mode 0600 and root's group, which marks it as an output: only root
  // can give a user's file that group. For an agent that reads outputs itself, with mode 0640 and
  // the agent's group. No link is followed, and no other file is opened. `unavailable`: no process
  // here would get its output; `conflict`: what is there is not this owner's output.
  Result<int> open_output(const Permit& permit, PodId pod, size_t container, bool err,
                          bool agent_reads, uint16_t session = 0) const;
  // The path of that file, within the work-dir.
  std::string output_path(const Permit& permit, PodId pod, size_t container, bool err,
                          uint16_t session) const;
  int work_fd() const { return settings_.work_fd; }
  // Opens such a file again, for writing; -1: it is not a user's output.
  int reopen_output(const std::string& path) const;
  // Opens an output for reading; -1: there is none. Opens no other file, whatever the agent put in
  // its place.
  Result<int> read_output(const OutputName& name) const;

 private:
  Settings settings_;
};

}  // namespace muster::keeper
