// Batch: what one commit made durable, as the journal passes it to the read model.
#pragma once

#include "core/cluster/nodes/node_info.hpp"
#include "core/job/facts/record.hpp"
#include "core/job/fold/job.hpp"
#include "core/kept.hpp"

#include <memory>
#include <vector>

namespace muster::core {

// The records of one job, in order. A job's first batch begins with JobAdmitted, which carries the
// object.
struct JobRecords {
  JobId job = 0;
  std::vector<Record> records;
  std::shared_ptr<const Job> before;  // the job before these records, if it had finished
};

struct Committed {
  uint64_t commit = 0;  // rises by one per batch, also across restarts; the API's resourceVersion
  std::vector<std::shared_ptr<const JobRecords>> jobs;  // in order; a job may occur more than once
  std::vector<NodeInfo> nodes;                          // nodes whose durable part changed
  std::vector<KeptChange> kept;
};

}  // namespace muster::core
