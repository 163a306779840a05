// Viewer: how much of each object a caller sees.
#pragma once

#include "api/view/model/shown.hpp"
#include "core/spec/fields/owner.hpp"

#include <cstdint>
#include <optional>

namespace muster::api {

enum class Sight : uint8_t {
  nothing,
  summary,  // of a job: name, owner, size, counts
  whole,
};

struct Viewer {
  std::optional<uint32_t> uid{};  // nothing: sees everything
  bool summaries = false;         // sees summaries of other users' jobs

  bool owns(const core::JobMeta& meta) const {
    return !uid || core::owner_uid(meta.annotations) == uid;
  }
  // Nodes, queues and priority classes belong to everyone; leases and events that clients stored
  // belong to no user.
  bool owns(const Shown& shown) const {
    if (!uid || shown.kind == Kind::node || shown.kind == Kind::queue ||
        shown.kind == Kind::priority_class)
      return true;
    if (shown.kept) return shown.kept->kept->owner == uid;
    return shown.job != nullptr && owns(shown.job->object().meta);
  }
  Sight sight(const Shown& shown) const {
    if (owns(shown) || (shown.kept && shown.kept->facts.shared)) return Sight::whole;
    if (shown.kind == Kind::name_space && summaries) return Sight::whole;
    return summaries && shown.kind == Kind::job ? Sight::summary : Sight::nothing;
  }
  Shown as_seen(Shown shown) const {
    shown.summary = sight(shown) == Sight::summary;
    return shown;
  }
  // Whether the viewer sees objects of this kind that belong to the job.
  bool sees(Kind kind, const core::Job& job) const {
    return owns(job.object().meta) || (summaries && kind == Kind::job);
  }
};

}  // namespace muster::api
