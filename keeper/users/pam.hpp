// Pam: a PAM session around each process that a keeper starts as its owner, where MUSTER_KEEPER_PAM
// names a service.
//
//   keeper ── fork ──▶ child, still root ── fork, exec ──▶ helper: muster-keeper --pam-session …
//                        │ waits, with a deadline            │ pam_acct_mgmt … pam_open_session
//                        │ ◀────────── answer (a pipe) ───── │
//                        │ becomes its owner, exec           │ waits for the child's end (a pidfd)
//                        ▼                                   ▼ pam_close_session … pam_end
//
// Modules run arbitrary code and may wait for a directory server, so they run in a separate
// process, and the child waits for them, not the keeper. The helper is a child of the keeper, not
// of the pod's process, which might wait for all its children. It outlives the keeper, so a session
// ends with its process whatever else dies.
//
//   answer  := length:u32 opened:u8 payload               length counts opened and payload
//   payload := why                                        if not opened
//            | limits:rlimit[kAnswerLimits] (NAME=value NUL)*
//
// Resource limits and variables that modules set in the helper are passed on to the process, except
// limits that MUSTER_KEEPER_LIMITS names and variables that the pod already has.
#pragma once

#include "keeper/kernel/rlimits.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

namespace muster::keeper {

constexpr const char* kPamVariable = "MUSTER_KEEPER_PAM";
constexpr const char* kPamSecondsVariable = "MUSTER_KEEPER_PAM_SECONDS";
constexpr const char* kPamFlag = "--pam-session";  // SERVICE USER UID SECONDS
constexpr size_t kAnswerMax = 64u << 10;
constexpr size_t kAnswerLimits = RLIM_NLIMITS;
constexpr size_t kPamVariablesMax = 256;
// A helper that hangs is killed after this many times the deadline. Until then it may still undo
// what it has begun.
constexpr unsigned kPamPatience = 3;

struct PamSettings {
  std::string service;    // empty: none
  unsigned seconds = 15;  // below the lease of a node, 20 s by default
};
// From the environment. A service that has no file is an error: PAM would use `other` instead.
Result<PamSettings> pam_settings();

// The session of one process, made before the fork; the child fills in the rest, in its own memory.
class PamStart {
 public:
  // `envp` ends with a null, followed by kPamVariablesMax more.
  // `files`: the limit of open files that the session starts with; `named`: limits that the session
  // does not change.
  PamStart(const PamSettings& settings, const std::string& user, uid_t uid,
           std::vector<char*>& envp, const rlimit& files, const std::vector<ResourceLimit>& named);

  // Called in the child, before it has its own limits and cgroup. System calls only. Returns null,
  // or why there is no session.
  const char* open();
  // Likewise, after open(): takes over the session's limits.
  bool set_limits() const;

 private:
  const char* say(const char* what, int error);
  const char* listen(int fd, int64_t deadline_ms);
  bool take_variables(char* begin, const char* end);

  const pid_t keeper_;
  const unsigned seconds_;
  std::vector<std::string> words_;
  std::vector<char*> argv_;
  std::vector<char*>& envp_;
  size_t variables_;  // in envp_
  const rlimit& files_;
  const std::vector<ResourceLimit>& named_;
  rlimit granted_[kAnswerLimits] = {};
  std::vector<char> answer_;
  char why_[400] = {};
};

// The helper's main program.
int pam_session_main(int argc, char** argv);

}  // namespace muster::keeper
