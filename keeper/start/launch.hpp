// Launch: what a process is to be, whatever ordered it: the agent, on a node of one user, or a
// permit, where processes run as their owners.
#pragma once

#include "base/fd.hpp"
#include "core/node/cpus.hpp"
#include "core/node/space.hpp"
#include "core/spec/fields/process_settings.hpp"
#include "keeper/kernel/cgroup.hpp"
#include "keeper/kernel/proc.hpp"
#include "keeper/start/last_step.hpp"
#include "keeper/start/search_path.hpp"
#include "keeper/start/space_main.hpp"
#include "keeper/users/owners.hpp"
#include "keeper/users/secrets.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::keeper {

struct Launch {
  // Null-terminated once end() is called. They point into the order or into `command`, and below.
  std::vector<char*> argv, envp;
  LastStep last{};
  std::string_view path = kDefaultPath;
  std::vector<core::node::SecretFile> secret_files;
  core::node::Space space;
  core::ProcessSettings settings{};
  Limits limits{};
  uint32_t cpus = 0;       // how many it gets for itself
  bool contained = false;  // gets a cgroup
  bool input = false;
  bool terminal = false;
  std::string_view out, err;  // the files that it writes to; with a permit, the pod's
  OwnerCommand command{};     // of a permit

  Launch() = default;
  Launch(const Launch&) = delete;  // since pointers point into it
  Launch& operator=(const Launch&) = delete;

  // Begins the environment with what a process is recognized by.
  void name(const Token& token, bool session);
  // Says in the environment which CPUs it is bound to.
  void bind(const core::node::CpuList& cpus);
  // Reads an agent's order, the frame `spawn` after its note (protocol.hpp); `order` must outlive
  // this. False: it is malformed.
  bool read(std::string_view order);
  // Takes over a command that was built from a permit.
  void take(OwnerCommand built);
  // What muster-space does for it, without its space. `report`: where failures are written.
  SpacePlan space_plan(int report) const;
  // Puts muster-space and muster-terminal before the command, if it needs them. They look it up and
  // take its last step. `plan`: what muster-space reads; none: no mounts are needed.
  void wrap(const Fd& plan);
  // What to execute, in this order: where execvp would look for the command. `own`: as our own
  // user, so that we may look first.
  std::vector<std::string> programs(bool own) const;
  // Adds the secrets' variables and ends both lists.
  void end(Secrets& secrets);

 private:
  void add_variable(std::string_view variable);
  std::string token_, session_, plan_fd_, cpus_;
  bool wrapped_ = false;
};

}  // namespace muster::keeper
