// Proc: facts about processes from /proc.
//
// Every process the keeper starts has MUSTER_PROCESS=<keeper>-<entry> first in its environment: the
// keeper's own random number and the process's entry in the spool, in hex. Its descendants inherit
// that, even through setsid, so one that has left its session can still be attributed, even among
// several processes of a pod.
//
// A session (protocol.hpp) also has MUSTER_SESSION_<keeper>_<entry>=1: MPICH's launcher overwrites
// variables of the ranks that it starts there with those of the leader's pod, MUSTER_PROCESS too.
//
// One that is started as another user is called unborn_name() until its exec.
//
// A pid alone identifies nothing; it takes the start time too (clock ticks since boot).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace muster::keeper {

constexpr char kTokenName[] = "MUSTER_PROCESS=";
constexpr char kSessionName[] = "MUSTER_SESSION_";

struct ProcStat {
  char state = 0;  // 'Z': a zombie, which its parent has not reaped yet
  int ppid = 0, pgrp = 0, session = 0;
  uint64_t start_ticks = 0;
};

// Whose process it is. keeper 0: not one of ours.
struct Token {
  uint64_t keeper = 0, entry = 0;
  std::string text() const;          // "MUSTER_PROCESS=…"
  std::string session_text() const;  // "MUSTER_SESSION_…=1", a name that shells pass on
};

bool read_stat(int pid, ProcStat& stat);  // false: no such process
std::optional<uid_t> user_of(int pid);    // its real uid
// Tokens of sessions come first, newest first. False: its environment is empty or unreadable, as it
// also is during an exec, so try again.
bool read_tokens(int pid, std::vector<Token>& tokens);
// The name (comm) of a process that this keeper is starting.
std::string unborn_name(uint64_t keeper);
// Whether the process has such a name, of one of these keepers.
bool is_unborn_of(int pid, const std::vector<uint64_t>& keepers);
std::vector<int> all_pids();
// The children of our main thread, which are adopted ones: workers start all others. They are in
// /proc/self/task/PID/children.
std::vector<int> adopted_pids();
// Whether that file is empty (one system call); false if it cannot be read. Any thread.
bool none_adopted();
// Sends SIGKILL if pid is still the process that started then.
void kill_process(int pid, uint64_t start_ticks);
std::string path_of_fd(int fd);  // empty: unknown
std::string boot_id();
uint64_t random_number();  // never 0
uint64_t boot_ns();        // CLOCK_BOOTTIME

}  // namespace muster::keeper
