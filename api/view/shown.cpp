#include "api/view/shown.hpp"

namespace muster::api {

Kind kind_of(core::KeptKind kind) {
  return kind == core::KeptKind::lease ? Kind::lease : Kind::event;
}

Key key_of(const Shown& s) {
  switch (s.kind) {
    case Kind::job:
      return {Kind::job, s.job->id(), 0, {}};
    case Kind::pod:
      return {Kind::pod, s.job->id(), 0, s.pod->key};
    case Kind::node:
      return {Kind::node, 0, s.node->id, {}};
    case Kind::event:
      if (s.kept) return {Kind::event, 0, s.kept->kept->id, {}};
      return {Kind::event, s.job->id(), s.event->nr, {}};
    case Kind::lease:
      return {Kind::lease, 0, s.kept->kept->id, {}};
  }
  return {};
}

bool shows(const core::Job& job, const core::Pod& pod) {
  if (!pod.ended) return true;
  if (job.hidden() && !job.state().orphaned) return false;
  return !pod.stopping_at || pod.counted == core::Counted::not_yet;
}

}  // namespace muster::api
