// The subresource `scale` of a job: its parallelism as an autoscaling/v1 Scale.
#pragma once

#include "api/routes/jobs/job_writer.hpp"

namespace muster::api {

class ScaleRoutes final : public JobWriter {
 public:
  explicit ScaleRoutes(const RouteContext& context) : JobWriter(context) {}
  Promise get(Exchange& exchange, const Target& target);
  Promise write(Exchange& exchange, const Target& target, const std::string& body);
};

}  // namespace muster::api
