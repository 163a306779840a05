// Owners: processes of several users, started by a keeper that runs as root.
//
// Such a keeper is told by its environment whose orders it takes (MUSTER_KEEPER_AGENT, a uid),
// whose permits it honours (MUSTER_KEEPER_PERMIT_KEY, the coordinator's public key), and what its
// node is called (MUSTER_KEEPER_NODE); rlimits.hpp and pam.hpp add more. It then starts
// nothing without a permit: command line, environment, working directory and file names come from
// there (permit/permit.hpp), and only numbers from the agent.
//
// Always holds: nothing runs as root or, unless MUSTER_KEEPER_UID_MIN says otherwise, as a user
// below 1000.
#pragma once

#include "core/ids.hpp"
#include "core/node/command.hpp"
#include "keeper/pam.hpp"
#include "keeper/protocol.hpp"
#include "keeper/rlimits.hpp"
#include "permit/permit.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace muster::keeper {

// The command of a process. `home`: nobody chose its directory, so "/" does if it is missing.
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
    gid_t agent_gid = 0;  // gets to read what pods write, if the agent is of an earlier version
    gid_t mark_gid = 0;   // the group of outputs
    uid_t uid_min = 1000;
    std::string key;                      // public, in hexadecimal
    std::string node;                     // name
    int work_fd = -1;                     // the work-dir
    std::string work_dir{};               // its path
    std::vector<ResourceLimit> limits{};  // of what it starts, beside those it has itself
    PamSettings pam{};
    std::string scratch{};  // directory of pods' directories; empty: none
  };
  // From the environment. Nothing: this keeper runs processes as its own user. An error: it should
  // not, and something is missing.
  static Result<std::optional<Settings>> settings(int work_fd);

  explicit Owners(Settings settings) : settings_(std::move(settings)) {}

  uid_t agent_uid() const { return settings_.agent_uid; }
  const std::vector<ResourceLimit>& limits() const { return settings_.limits; }
  const PamSettings& pam() const { return settings_.pam; }
  // Verifies and reads it; the error says why it is not honoured.
  Result<PermitPtr> accept(std::string_view bytes, std::string_view signature) const;
  // Why it does not hold at this time, by the wall clock; nothing if it does.
  std::optional<std::string> refuses(const Permit& permit, Millis wall_ms) const;
  Result<OwnerCommand> command(const PermitOrder& order, PodId pod, size_t container) const;
  // Opens a pod's output for appending (`session`: of that session of its container, if not 0). It
  // is created for the owner, mode 0600 and of root's group, which marks it as an output: nobody
  // but root can give a user's file that group. For an agent that reads outputs itself, mode 0640
  // and its group. No link is followed, and no other file is opened.
  Result<int> open_output(const Permit& permit, PodId pod, size_t container, bool err,
                          bool agent_reads, uint16_t session = 0) const;
  // Opens an output for reading; -1: there is none. Opens no other file, whatever the agent put in
  // its place.
  Result<int> read_output(const OutputName& name) const;

 private:
  Settings settings_;
};

}  // namespace muster::keeper
