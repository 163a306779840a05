// StartWatch: which pods a node could not start since a pod last started there.
//
// One job's failed starts are usually the job's doing, and the job keeps away from the node
// (Slots::avoid). Those of several users, or many in a row, are the node's: a home that is not
// mounted, a full disk. Such a node is idle, so it would be offered whatever comes next; it is
// closed instead. Whether it has recovered can only be seen by a start, so one pod at a time is let
// through, less and less often.
//
// What a job that no node can start says is forgiven. Nodes are judged at ticks, by which time such
// a job has usually failed everywhere.
//
// In memory only: a restarted coordinator finds out again.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace muster::core {

struct StartWatch {
  static constexpr size_t kUsers = 2;           // whose starts failed, or
  static constexpr uint32_t kStarts = 10;       // starts of one user that failed, close the node
  static constexpr Millis kForgetMs = 600'000;  // what failed longer ago says nothing about now
  static constexpr Millis kProbeMinMs = 60'000, kProbeMaxMs = 900'000;
  static constexpr size_t kJobsMax = 64;  // further ones would say the same

  struct OfJob {
    std::optional<uint32_t> user;
    uint32_t starts = 0;  // that failed
    Millis last_ms = 0;
  };
  std::map<JobId, OfJob> failed;
  std::string why;                  // the last of them
  std::optional<uint64_t> started;  // Heartbeat::started of this session; absent: unknown
  Millis wait_ms = 0;               // between the last probe and the next; 0: not closed
  Millis probe_up_ms = 0;           // when that is due

  bool closed() const { return wait_ms > 0; }
  void note(JobId job, std::optional<uint32_t> user, uint32_t starts, const std::string& reason,
            Millis up_ms);
  // Why the node is to be closed; empty: it is not. Everybody may read it, so where jobs have
  // owners it has only the public part of the cause.
  std::string verdict() const;
  bool owned() const;  // pods of jobs with owners are among them
  // After a probe: until the next one. It does not grow while only one owner's pods have failed,
  // so that nobody can keep a node closed for others.
  Millis next_wait_ms() const;
  void clear();

 private:
  // What failed and the system's reason for it, without paths or whatever else is the pod's own;
  // empty: unknown.
  std::string public_cause() const;
  std::map<std::optional<uint32_t>, uint32_t> by_user() const;  // starts that failed
};

}  // namespace muster::core
