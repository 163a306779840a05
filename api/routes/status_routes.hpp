// Writing the status of a job, and the metadata that is sent along with it.
//
// Of a job that names another controller that one writes the status, and the rules of job-semantics
// 1.5 are held against it. Of its own jobs muster keeps the status; conditions of other types are
// whose they are.
#pragma once

#include "api/routes/job_writer.hpp"

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
