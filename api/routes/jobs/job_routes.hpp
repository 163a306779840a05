// Jobs: create, replace, patch, delete.
#pragma once

#include "api/routes/jobs/job_writer.hpp"

namespace muster::api {

// Kubernetes' warning when a deletion leaves the fate of the pods to the default of batch/v1.
inline constexpr const char* kOrphansByDefault =
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them or set propagationPolicy=Orphan to suppress this warning";

class JobRoutes final : public JobWriter {
 public:
  explicit JobRoutes(const RouteContext& context) : JobWriter(context) {}
  Promise create(Exchange& exchange, const Target& target, const std::string& body);
  Promise write(Exchange& exchange, const Target& target, const std::string& body);
  Promise remove(Exchange& exchange, const Target& target, const std::string& body);

 private:
  Promise removed(Exchange& exchange, const Target& target, const std::string& uid);
};

}  // namespace muster::api
