// Options of muster delete.
#pragma once

#include "cli/verbs/jobs/job_filter.hpp"
#include "cli/verbs/verb.hpp"

namespace muster::cli {

struct DeleteOptions {
  Target target;
  bool ns_given = false;  // false: use each manifest's own
  Kind kind = Kind::job;  // job, pod or node
  std::vector<std::string> names;
  std::vector<std::string> files;  // manifests of what to delete, in place of names
  std::string selector;            // in place of names
  bool all = false;                // likewise
  JobFilter filter{};              // likewise, of jobs
  bool ignore_missing = false;     // missing objects are no error
};

int execute(const DeleteOptions& options);

}  // namespace muster::cli
