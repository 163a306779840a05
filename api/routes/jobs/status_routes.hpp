// Writes the status of a job, and the metadata sent with it.
//
// If a job names another controller, that controller writes its status, by the rules of
// job-semantics 1.5. For all other jobs muster sets the status, and clients may set conditions of
// other types.
#pragma once

#include "api/routes/jobs/job_writer.hpp"

namespace muster::api {

class StatusRoutes final : public JobWriter {
 public:
  explicit StatusRoutes(const RouteContext& context) : JobWriter(context) {}
  Promise write(Exchange& exchange, const Target& target, const std::string& body);

 private:
  Promise change(Exchange& exchange, const Target& target, const std::string& body,
                 const WriteOptions& options, int tries);
};

}  // namespace muster::api
