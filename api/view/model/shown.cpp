#include "api/view/model/shown.hpp"

namespace muster::api {

Kind kind_of(core::KeptKind kind) {
  switch (kind) {
    case core::KeptKind::lease:
      return Kind::lease;
    case core::KeptKind::event:
      return Kind::event;
    case core::KeptKind::config_map:
      return Kind::config_map;
    case core::KeptKind::name_space:
      return Kind::name_space;
    case core::KeptKind::cron_job:
      return Kind::cron_job;
    case core::KeptKind::queue:
      return Kind::queue;
    case core::KeptKind::priority_class:
      return Kind::priority_class;
  }
  return Kind::event;
}

std::optional<core::KeptKind> kept_kind_of(Kind kind) {
  switch (kind) {
    case Kind::lease:
      return core::KeptKind::lease;
    case Kind::config_map:
      return core::KeptKind::config_map;
    case Kind::name_space:
      return core::KeptKind::name_space;
    case Kind::cron_job:
      return core::KeptKind::cron_job;
    case Kind::queue:
      return core::KeptKind::queue;
    case Kind::priority_class:
      return core::KeptKind::priority_class;
    case Kind::job:
    case Kind::pod:
    case Kind::node:
    case Kind::event:
      break;
  }
  return std::nullopt;
}

Key key_of(const Shown& s) {
  switch (s.kind) {
    case Kind::job:
      return {Kind::job, s.job->id(), 0, {}};
    case Kind::pod:
      return {Kind::pod, s.job->id(), 0, s.pod->key};
    case Kind::node:
      return {Kind::node, 0, s.node_key, {}};
    case Kind::event:
      if (s.kept) return {Kind::event, 0, s.kept->kept->id, {}};
      return {Kind::event, s.job->id(), s.event->nr, {}};
    case Kind::lease:
    case Kind::config_map:
    case Kind::name_space:
    case Kind::cron_job:
    case Kind::queue:
    case Kind::priority_class:
      return {s.kind, 0, s.kept->kept->id, {}};
  }
  return {};
}

bool shows(const core::Job& job, const core::Pod& pod) {
  if (!pod.ended) return true;
  if (job.hidden() && !job.state().orphaned) return false;
  return !pod.stopping_at || pod.counted == core::Counted::not_yet;
}

}  // namespace muster::api
