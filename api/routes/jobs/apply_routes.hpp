// Server-side apply of a job. For nodes, see node_routes.hpp.
#pragma once

#include "api/routes/jobs/job_writer.hpp"

namespace muster::api {

class ApplyRoutes final : public JobWriter {
 public:
  explicit ApplyRoutes(const RouteContext& context) : JobWriter(context) {}
  Promise apply(Exchange& exchange, const Target& target, const std::string& body);

 private:
  Promise apply_parsed(Exchange& exchange, const Target& target, const std::string& body,
                       const WriteOptions& options, ParsedJob parsed);
};

}  // namespace muster::api
