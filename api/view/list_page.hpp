// ListPage: which part of a list a request asks for, and where the next part begins.
//
// A list in parts is not a snapshot: each part shows the objects as they are then. But all parts
// carry the version of the first one, and a watch from there tells what has changed since, so that
// whoever lists and then watches misses nothing. A continue token therefore holds that version and
// the last object that was told; once a watch from the version is too old, so is the token.
#pragma once

#include "api/http/url.hpp"
#include "api/view/view.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>

namespace muster::api {

// A place in the order of a list: namespace, name (of pods and events: their job's), then job by
// job the pods by index and attempt, the events by number.
struct Position {
  std::string ns, name;
  JobId job = 0;
  PodKey pod;
  uint64_t nr = 0;
  auto operator<=>(const Position&) const = default;
};
// As the job of what is kept for clients: told after what belongs to jobs.
constexpr JobId kAfterJobs = UINT64_MAX;
Position position_of(const Shown& shown);

struct ListPage {
  uint64_t limit = 0;    // 0: all
  bool resumed = false;  // `after` and `version` are those of a token
  Position after;
  uint64_t version = 0;  // of the list
};

// `invalid`: a parameter can't be read.
Result<ListPage> page_of(const Url& url);

std::string continue_token(const ListPage& page, const Position& last);

}  // namespace muster::api
