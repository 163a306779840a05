#include "drill/jobs.hpp"

#include "client/connect/objects.hpp"

#include <unistd.h>

namespace muster::cli::drill {
namespace {

constexpr useconds_t kJobsLookUs = 50'000;

}  // namespace

std::string tiny_job(const std::string& name) {
  const Json container = {{"name", "main"}, {"command", {"true"}}};
  const Json pod = {{"restartPolicy", "Never"}, {"containers", Json::array({container})}};
  return dumped(Json{{"apiVersion", "batch/v1"},
                     {"kind", "Job"},
                     {"metadata", {{"name", name}}},
                     {"spec", {{"suspend", true}, {"template", {{"spec", pod}}}}}});
}

Status delete_jobs(ApiClient& client, const std::string& ns, const std::string& prefix,
                   Millis patience_ms) {
  const std::string policy = R"({"propagationPolicy":"Background"})";
  std::string why;
  for (const Millis until = boot_now() + patience_ms;; usleep(kJobsLookUs)) {
    auto list = object(client, object_path(Kind::job, ns));
    size_t left = 0;
    if (list) {
      for (const Json& job : at(*list, {"items"})) {
        const std::string name = text_at(job, {"metadata", "name"});
        if (!name.starts_with(prefix)) continue;
        ++left;
        if (!at(job, {"metadata", "deletionTimestamp"}).is_null()) continue;
        auto answer = client.remove(object_path(Kind::job, ns, name), policy);
        if (!answer) break;
      }
      if (left == 0) return Nothing{};
      why = std::to_string(left) + " jobs still exist";
    } else {
      why = list.error().message;
    }
    if (boot_now() >= until)
      return Error{Errc::unavailable,
                   "cannot delete jobs " + prefix + "* in the namespace " + ns + ": " + why,
                   {}};
  }
}

}  // namespace muster::cli::drill
