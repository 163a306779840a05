// muster delete: deletes jobs in the background: the name is free at once (unless a finalizer holds
// the job), and the pods get SIGTERM and their grace period.
#include "cli/client/discovery.hpp"
#include "cli/client/objects.hpp"
#include "cli/output/exit_codes.hpp"
#include "cli/verbs/verbs.hpp"

#include <iostream>

namespace muster::cli {

int execute(const DeleteOptions& options) {
  const auto client = connect(options.target);
  int code = kDone;
  for (const std::string& job : options.jobs) {
    auto response = client->remove(
        object_path(Kind::job, options.target.ns, job),
        R"({"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"})");
    if (!response) return fail(response.error());
    if (response->ok()) {
      std::cout << "job.batch/" << job << " deleted" << std::endl;
    } else {
      code = fail(refusal(*response));
    }
  }
  return code;
}

}  // namespace muster::cli
