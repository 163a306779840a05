// Options of muster get.
#pragma once

#include "cli/verbs/jobs/job_filter.hpp"
#include "cli/verbs/verb.hpp"

namespace muster::cli {

struct GetOptions {
  Target target;
  bool all_namespaces = false;
  Kind kind = Kind::job;
  std::vector<Kind> more;          // kinds to show after it
  std::vector<std::string> names;  // empty: all
  std::string selector;
  Output output = Output::table;
  bool watch = false;
  bool headers = true;
  JobFilter filter{};  // of jobs
  JobOrder order = JobOrder::usual;
};

// get attempts
struct AttemptsOptions {
  Target target;
  std::string job;
  std::string index;   // "3,7-9"; empty: all
  std::string task{};  // in place of `index`, by the numbers of --array
  bool failed = false;
  Output output = Output::table;
  bool headers = true;
};

int execute(const GetOptions& options);
int execute(const AttemptsOptions& options);  // attempts.cpp

}  // namespace muster::cli
