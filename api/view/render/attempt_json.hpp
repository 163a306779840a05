// Attempts of the history as JSON (docs/api.md).
#pragma once

#include "api/view/model/view.hpp"
#include "base/text/json.hpp"
#include "core/job/shown/attempt_page.hpp"

#include <optional>
#include <string>

namespace muster::api {

// What an attempt does not know of its job, which need not exist any more.
struct AttemptOf {
  std::string name, uid;
  bool indexed = false;
  const core::PodTemplate* pod = nullptr;  // null: unknown; then runs are not shown
  // Null: unknown; then what the attempt was limited to is not shown.
  const core::JobObject* object = nullptr;
  Millis created_ms = 0;
};

// An AttemptList.
OrderedJson attempt_list(const View& view, const AttemptOf& job, const core::AttemptPage& page);

// A `continue` token of such a list; nothing if it is not one.
std::optional<core::AttemptCursor> attempt_token(const std::string& text);

}  // namespace muster::api
