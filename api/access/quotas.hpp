// Quotas: how much of the coordinator each user may take. Operators and admins have
// none, except that of pods, which placement applies to every owner. Pure.
#pragma once

#include "api/access/caller.hpp"
#include "base/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <map>

namespace muster::api {

struct QuotaLimits {
  uint64_t jobs_max = 0;      // jobs of a user that are not over; 0: no limit
  uint64_t pods_max = 0;      // pods of an owner on nodes at a time (core/cluster/slots.hpp)
  uint64_t requests_max = 0;  // requests of a user per second, on average; 0: no limit
};

class Quotas {
 public:
  explicit Quotas(QuotaLimits limits) : limits_(limits) {}

  const QuotaLimits& limits() const { return limits_; }
  // Takes one request out of the user's allowance, which is never more than two seconds' worth.
  // False: there is none left. `now_ms`: of a clock that does not jump.
  bool take_request(const Caller& caller, Millis now_ms);

  // Whether the user may create one more job beside `unfinished` that are there and those that are
  // on their way. If so, it is on its way until arrived().
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
