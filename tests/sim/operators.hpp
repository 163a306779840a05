// Operators: what the operators of a simulated site do at any moment. They write queues, override
// jobs' priorities, queues and time limits, hold and release jobs. In the calm, they let everything
// go on.
//
// Queues "fast" and "deep" are ones whose pods no queue may preempt.
#pragma once

#include "base/text/json.hpp"
#include "core/job/facts/overrides.hpp"
#include "tests/sim/world.hpp"

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace muster::sim {

class Operators {
 public:
  // `slots`: of a node. In the calm, limits leave room for that many pods of a user, and for gangs
  // of them.
  Operators(World& world, uint64_t seed, uint32_t slots)
      : world_(world), random_(seed * 7'368'787), slots_(slots) {}

  static const std::vector<std::string> kQueues;

  // Does something to a queue or to one of these jobs (NAMESPACE/NAME).
  void act(const std::vector<std::string>& jobs);
  // Called repeatedly: repeats what is missing, and in the calm sets what keeps jobs from starting.
  void look(const std::vector<std::string>& jobs);
  // Answered changes that are gone.
  std::vector<std::string> check() const;

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  Json random_limits(uint32_t least);
  Json random_spec(const std::string& queue);
  void write(const std::string& queue);
  void write_class();
  void override_job(const std::string& job);

  World& world_;
  std::mt19937_64 random_;
  const uint32_t slots_;
  struct Changes {
    int sent = 0, answered = 0;
    std::set<int> deletions{};  // those of them
  };
  std::map<std::string, Changes> queues_;
  struct Given {
    std::vector<core::Overrides> sent;
    size_t answered = 0;  // how many of them have been answered, with those before
  };
  std::map<std::string, Given> overrides_;
};

}  // namespace muster::sim
