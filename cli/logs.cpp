// muster logs: what a pod wrote, stdout and then stderr (with -f both as they come).
#include "cli/discovery.hpp"
#include "cli/exit_codes.hpp"
#include "cli/objects.hpp"
#include "cli/text.hpp"
#include "cli/verbs.hpp"
#include "core/pod_name.hpp"

#include <algorithm>
#include <iostream>

namespace muster::cli {
namespace {

// The pod that the options mean.
Result<std::string> find_pod(ApiClient& client, const LogsOptions& options) {
  if (!options.pod.empty()) return options.pod;
  const std::string& ns = options.target.ns;
  auto job = object(client, object_path(Kind::job, ns, options.job));
  if (!job) return job.error();
  const std::string uid = text_at(*job, {"metadata", "uid"});
  if (options.index && text_at(*job, {"spec", "completionMode"}) != "Indexed") {
    return Error{Errc::invalid,
                 "--index: job/" + options.job +
                     " is NonIndexed; name a pod instead (muster get pods -l " +
                     "batch.kubernetes.io/job-name=" + options.job + ")",
                 {}};
  }
  if (options.index && options.attempt) {
    return core::pod_name(
        options.job, uid, true,
        {static_cast<uint32_t>(*options.index), static_cast<uint32_t>(*options.attempt)});
  }
  auto pods = pods_of(
      client, ns, options.job,
      options.index ? "batch.kubernetes.io/job-completion-index=" + std::to_string(*options.index)
                    : "",
      "");
  if (!pods) return pods.error();
  if (pods->empty()) {
    return Error{Errc::not_found,
                 "job/" + options.job +
                     (options.index ? " index " + std::to_string(*options.index) : "") +
                     " has no pod yet",
                 {}};
  }
  if (!options.index && pods->size() > 1) {
    return Error{Errc::invalid,
                 "job/" + options.job + " has " + std::to_string(pods->size()) +
                     " pods: say which with --index I, or name one (muster get pods)",
                 {}};
  }
  const auto newest =
      std::max_element(pods->begin(), pods->end(),
                       [](const Json& a, const Json& b) { return attempt_of(a) < attempt_of(b); });
  return text_at(*newest, {"metadata", "name"});
}

}  // namespace

int execute(const LogsOptions& options) {
  const auto client = connect(options.target);
  auto pod = find_pod(*client, options);
  if (!pod) return fail(pod.error());
  std::string path = object_path(Kind::pod, options.target.ns, *pod) + "/log?stream=All";
  if (options.follow) path += "&follow=true";
  if (options.tail >= 0) path += "&tailLines=" + std::to_string(options.tail);
  auto response = client->stream(path, "*/*", [](std::string_view part) {
    std::cout.write(part.data(), static_cast<std::streamsize>(part.size())).flush();
    return static_cast<bool>(std::cout);
  });
  if (!response) return fail(response.error());
  return response->ok() ? static_cast<int>(kDone) : fail(refusal(*response));
}

}  // namespace muster::cli
