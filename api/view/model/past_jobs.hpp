// PastJobs: recently restored states of jobs, shared by all watchers, as restoring one costs more
// than sending it. The oldest are dropped first.
#pragma once

#include "api/view/model/shown.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>

namespace muster::api {

class PastJobs {
 public:
  std::shared_ptr<const core::Job> restored(const std::shared_ptr<const PastJob>& past);

 private:
  struct Entry {
    std::shared_ptr<const PastJob> past;  // keeps the key in use
    std::shared_ptr<const core::Job> job;
    size_t weight = 0;
  };
  std::unordered_map<const PastJob*, Entry> jobs_;
  std::deque<const PastJob*> order_;
  size_t weight_ = 0;
};

}  // namespace muster::api
