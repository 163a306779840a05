// A valid job for the tests of core/spec, in the form in which admission passes it to validation.
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/spec/rules/defaults.hpp"
#include "core/spec/values/violations.hpp"

#include <set>
#include <string>

namespace muster::core {

struct SampleJob {
  JobMeta meta;
  JobSpec spec;

  static SampleJob bare(bool indexed = false) {
    SampleJob job;
    job.meta.name = "v";
    job.meta.ns = "default";
    job.meta.uid = "2f6b7c1e-8f6e-4c1a-9b1e-0c9d8e7f6a5b";
    job.spec.pod.restart_policy = "Never";
    Container main;
    main.name = "main";
    job.spec.pod.containers.push_back(main);
    if (indexed) {
      job.spec.completion_mode = "Indexed";
      job.spec.completions = 5;
      job.spec.parallelism = 2;
    }
    return job;
  }

  void admit() {
    apply_defaults(meta, spec);
    generate_selector(meta, spec);
  }
};

// {"PATH Kind", …}
inline std::multiset<std::string> summary(const Violations& found) {
  constexpr const char* kKinds[] = {"Required", "Invalid", "NotSupported", "Duplicate",
                                    "NotFound", "TooMany", "TooLong",      "Forbidden"};
  std::multiset<std::string> all;
  for (const Violation& violation : found.list())
    all.insert(violation.path + " " + kKinds[static_cast<int>(violation.kind)]);
  return all;
}

}  // namespace muster::core
