#include "api/routes/not_served.hpp"

#include <string>
#include <vector>

namespace muster::api {
namespace {

struct Answer {
  std::string_view sub;  // of a pod
  std::string_view message;
};
constexpr Answer kOfPod[] = {
    {"attach", "a pod's standard input is empty; follow its output with kubectl logs -f"},
    {"portforward",
     "a pod has no network of its own: its processes listen on the addresses of its node"},
    {"proxy", "a pod has no network of its own: its processes listen on the addresses of its node"},
    {"ephemeralcontainers", "nothing can be added to a pod: its processes are on its node"},
    {"binding", "pods are placed by muster"},
    {"resize", "a pod keeps the resources that it was created with"},
};

}  // namespace

std::optional<NotServed> not_served(kj::HttpMethod method, const Url& url) {
  const std::vector<std::string>& p = url.path;
  if (p.size() < 3 || p[0] != "api" || p[1] != "v1") return std::nullopt;
  const bool one_namespace = p[2] == "namespaces" && p.size() > 4;
  const size_t at = one_namespace ? 4 : 2;
  const bool made = p.size() == at + 1 && method == kj::HttpMethod::POST;
  if (made && p[at] == "nodes")
    return NotServed{
        "nodes are created by the agents that register: muster agent --coordinator ADDR:PORT",
        "GET"};
  if (made && p[at] == "pods")
    return NotServed{"pods are created by jobs: kubectl create job NAME --image=none -- COMMAND",
                     one_namespace ? "DELETE, GET" : "GET"};
  if (p[at] != "pods" || p.size() < at + 3) return std::nullopt;
  for (const Answer& row : kOfPod)
    if (p[at + 2] == row.sub) return NotServed{row.message, ""};
  return std::nullopt;
}

}  // namespace muster::api
