// Proc: what /proc tells of a process.
//
// Every process the keeper starts has MUSTER_PROCESS=<keeper>-<entry> first in its environment: the
// keeper's own random number and the process's entry in the spool, in hex. What it forks inherits
// it, through setsid too, so what has escaped a session is still told apart, for each of several
// processes of a pod.
//
// Always holds: a pid alone identifies nothing; it goes together with the start time (clock ticks
// since boot).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::keeper {

constexpr char kTokenName[] = "MUSTER_PROCESS=";

struct ProcStat {
  char state = 0;  // 'Z': a zombie, which its parent has not reaped yet
  int ppid = 0, pgrp = 0, session = 0;
  uint64_t start_ticks = 0;
};

// Whose process is it? keeper 0: nobody's of ours.
struct Token {
  uint64_t keeper = 0, entry = 0;
  std::string text() const;  // "MUSTER_PROCESS=…"
};

bool read_stat(int pid, ProcStat& stat);  // false: there is no such process
// False: there is nothing to read. So it is in the middle of an exec, too: ask again.
bool read_token(int pid, Token& token);
std::vector<int> all_pids();
// The children of this process's main thread: what was adopted. Workers start all others.
std::vector<int> adopted_pids();
// SIGKILL, if pid still is the process that started then.
void kill_process(int pid, uint64_t start_ticks);
std::string boot_id();
uint64_t random_number();  // never 0
uint64_t boot_ns();        // CLOCK_BOOTTIME

}  // namespace muster::keeper
