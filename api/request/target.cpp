#include "api/request/target.hpp"

#include <string_view>
#include <vector>

namespace muster::api {
namespace {

// A resource without namespaces, in a group of its own.
struct ClusterWide {
  std::string_view group, resource;
  Kind kind;
};
constexpr ClusterWide kClusterWide[] = {
    {"muster.dev", "queues", Kind::queue},
    {"scheduling.k8s.io", "priorityclasses", Kind::priority_class}};

std::optional<Target> cluster_wide(const std::vector<std::string>& p) {
  if (p.size() < 4 || p.size() > 5 || p[0] != "apis" || p[2] != "v1") return std::nullopt;
  for (const ClusterWide& one : kClusterWide) {
    if (p[1] != one.group || p[3] != one.resource) continue;
    Target target{.kind = one.kind, .ns = "", .name = "", .sub = ""};
    if (p.size() == 5) target.name = p[4];
    return target;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Target> Target::of(const Url& url) {
  const std::vector<std::string>& p = url.path;
  if (auto target = cluster_wide(p)) return target;
  size_t at = 0;
  bool batch = false;
  std::string_view only;  // the resource, for a group that has only one
  if (p.size() >= 3 && p[0] == "api" && p[1] == "v1") {
    at = 2;
  } else if (p.size() >= 4 && p[0] == "apis" && p[1] == "batch" && p[2] == "v1") {
    at = 3;
    batch = true;
  } else if (p.size() >= 4 && p[0] == "apis" && p[2] == "v1" &&
             (p[1] == "coordination.k8s.io" || p[1] == "events.k8s.io")) {
    at = 3;
    only = p[1] == "events.k8s.io" ? "events" : "leases";
  } else {
    return std::nullopt;
  }
  Target target;
  if (p[at] == "namespaces" && !batch && only.empty() && p.size() <= at + 2) {
    target.kind = Kind::name_space;
    if (p.size() == at + 2) target.name = p[at + 1];
    return target;
  }
  if (p[at] == "namespaces" && !batch && only.empty() && p.size() == at + 3 &&
      is_namespace_part(p[at + 2])) {
    target.kind = Kind::name_space;
    target.name = p[at + 1];
    target.sub = p[at + 2];
    return target;
  }
  if (p[at] == "namespaces") {
    if (p.size() < at + 3) return std::nullopt;
    target.ns = p[at + 1];
    at += 2;
  }
  const std::string& resource = p[at++];
  if (!only.empty() && resource != only) return std::nullopt;
  if (resource == "leases" && !only.empty())
    target.kind = Kind::lease;
  else if (batch && resource == "jobs")
    target.kind = Kind::job;
  else if (batch && resource == "cronjobs")
    target.kind = Kind::cron_job;
  else if (!batch && resource == "pods")
    target.kind = Kind::pod;
  else if (!batch && resource == "events")
    target.kind = Kind::event;
  else if (!batch && resource == "configmaps")
    target.kind = Kind::config_map;
  else if (!batch && resource == "nodes" && target.ns.empty())
    target.kind = Kind::node;
  else
    return std::nullopt;
  if (at == p.size()) return target;
  if (target.ns.empty() && target.kind != Kind::node) return std::nullopt;
  target.name = p[at++];
  if (at == p.size()) return target;
  target.sub = p[at++];
  if (at != p.size()) return std::nullopt;
  const bool known =
      target.sub == "log" || target.sub == "eviction" || target.sub == "exec"
          ? target.kind == Kind::pod
      : target.sub == "scale"
          ? target.kind == Kind::job
          : target.sub == "status" && (target.kind == Kind::cron_job || !target.is_kept());
  if (!known) return std::nullopt;
  return target;
}

std::string allowed(const Target& target) {
  const bool job = target.kind == Kind::job, pod = target.kind == Kind::pod;
  if (target.sub == "log") return "GET";
  if (target.sub == "eviction") return "POST";
  if (target.sub == "finalize") return "PUT";
  if (target.sub == "exec") return "GET, POST";
  if (target.sub == "status" && target.kind == Kind::node) return "GET";
  if (!target.sub.empty()) return "GET, PATCH, PUT";
  if (!target.name.empty()) return "DELETE, GET, PATCH, PUT";
  if (target.is_cluster_wide())
    return target.kind == Kind::name_space ? "GET, POST" : "DELETE, GET, POST";
  if (target.ns.empty()) return "GET";
  return job || target.is_kept() ? "DELETE, GET, POST" : pod ? "DELETE, GET" : "GET";
}

std::optional<MusterTarget> MusterTarget::of(const Url& url) {
  const std::vector<std::string>& p = url.path;
  if (p.size() < 4 || p[0] != "apis" || p[1] != "muster.dev" || p[2] != "v1") return std::nullopt;
  MusterTarget target;
  target.what = p.back();
  for (const char* what :
       {"nodes", "demand", "shares", "backups", "verification", "history", "report"})
    if (p.size() == 4 && target.what == what) return target;
  if (p.size() == 6 && p[3] == "namespaces" && (p[5] == "history" || p[5] == "report")) {
    target.ns = p[4];
    return target;
  }
  for (const char* what : {"tokens", "links", "coordinators"})
    if (p.size() == 4 && target.what == what) return target;
  if (p.size() == 5 && (p[3] == "tokens" || p[3] == "coordinators")) {
    target.name = p[4];
    target.what = p[3];
    return target;
  }
  if (p.size() == 6 && !p[4].empty()) {
    target.name = p[4];
    target.what = p[3] + "/" + p[5];
    for (const char* what :
         {"users/token", "nodes/token", "nodes/claims", "nodes/revocation", "nodes/unknownpods",
          "pools/token", "coordinators/token", "coordinators/promotion", "coordinators/demotion"})
      if (target.what == what) return target;
    return std::nullopt;
  }
  if (p.size() != 8 || p[3] != "namespaces") return std::nullopt;
  target.ns = p[4];
  if (p[5] == "pods" && target.what == "exec" && !p[6].empty()) {
    target.pod = p[6];
    return target;
  }
  if (p[5] == "history" && target.what == "attempts") {
    target.name = p[6];
    target.what = "history/attempts";
    return target;
  }
  if (p[5] != "jobs") return std::nullopt;
  target.job = p[6];
  for (const char* what :
       {"indexes", "attempts", "log", "why", "usage", "hold", "overrides", "cancel"})
    if (target.what == what) return target;
  return std::nullopt;
}

}  // namespace muster::api
