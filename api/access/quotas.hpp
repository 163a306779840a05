// Quotas: how much of the coordinator each user may use. Operators and admins have none, except the
// pod quota, which placement applies to every owner. Pure.
#pragma once

#include "api/access/caller.hpp"
#include "base/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <map>

namespace muster::api {

struct QuotaLimits {
  uint64_t jobs_max = 0;      // unfinished jobs of a user; 0: no limit
  uint64_t pods_max = 0;      // pods of an owner on nodes at a time (core/cluster/slots/slots.hpp)
  uint64_t requests_max = 0;  // requests of a user per second, on average; 0: no limit
};

class Quotas {
 public:
  explicit Quotas(QuotaLimits limits) : limits_(limits) {}

  const QuotaLimits& limits() const { return limits_; }
  void change(QuotaLimits limits) { limits_ = limits; }
  // Takes one request from the user's allowance, which never exceeds two seconds' worth. Returns
  // false if none is left. `now_ms` is from a clock that does not jump.
  bool take_request(const Caller& caller, Millis now_ms);

  // Whether the user may create one more job, given `unfinished` existing ones and those on their
  // way. If so, the new job is on its way until arrived().
  bool take_job(const Caller& caller, size_t unfinished);
  void arrived(const Caller& caller);

 private:
  struct Allowance {
    double requests = 0;
    Millis at_ms = 0;
  };
  QuotaLimits limits_;
  std::map<uint32_t, Allowance> allowances_;      // by uid
  std::map<uint32_t, size_t> jobs_on_their_way_;  // by uid
};

}  // namespace muster::api
