#include "api/view/query/seen_namespaces.hpp"

#include "api/kube/objects/kept_object.hpp"

#include <tuple>

namespace muster::api {
namespace {

// Calls f with the namespace of each object that the viewer sees. `ns`: only objects in it; empty:
// all.
template <class F>
void each_seen(const View& view, const Viewer& viewer, const std::string& ns, F f) {
  if (viewer.summaries) {  // every job; jumps from namespace to namespace
    View::Place after{ns, "", 0};
    while (const auto job = view.next_job(ns, after)) {
      f(std::get<0>(*job));
      after = {std::get<0>(*job), "\xff", UINT64_MAX};
    }
  } else {
    view.each(Kind::job, ns, nullptr, [&](const Shown& shown) {
      if (viewer.owns(shown)) f(shown.job->object().meta.ns);
    });
  }
  view.each_kept(core::KeptKind::cron_job, ns, [&](const Shown& shown) {
    if (viewer.sight(shown) != Sight::nothing) f(shown.kept->kept->ns);
  });
  view.each_kept(core::KeptKind::config_map, ns, [&](const Shown& shown) {
    // Each namespace in use has the one that muster provides, whoever uses it.
    const core::Kept& kept = *shown.kept->kept;
    if (kept.name != kRootCaName && viewer.sight(shown) != Sight::nothing) f(kept.ns);
  });
}

}  // namespace

std::set<std::string> seen_namespaces(const View& view, const Viewer& viewer) {
  if (!viewer.uid) return view.namespaces_in_use();
  std::set<std::string> names = {"default"};
  each_seen(view, viewer, "", [&](const std::string& name) { names.insert(name); });
  view.each_kept(core::KeptKind::name_space, "", [&](const Shown& shown) {
    if (viewer.sight(shown) != Sight::nothing) names.insert(shown.kept->kept->name);
  });
  return names;
}

bool sees_namespace(const View& view, const Viewer& viewer, const std::string& name) {
  if (!viewer.uid) return view.in_use(name);
  if (name == "default") return true;
  const auto object = view.kept(core::KeptKind::name_space, "", name);
  if (object && viewer.sight(*object) != Sight::nothing) return true;
  bool seen = false;
  each_seen(view, viewer, name, [&](const std::string&) { seen = true; });
  return seen;
}

}  // namespace muster::api
