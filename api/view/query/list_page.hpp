// ListPage: the page of a list that a request asks for, and where the next page begins.
//
// A list in pages is not a snapshot: each page shows the objects as they are when it is rendered.
// But all pages carry the version of the first, and a watch from that version reports every change
// since, or is refused, so a client that lists and then watches misses nothing. A continue token
// therefore holds that version and the last object sent. It is valid for as long as the coordinator
// runs, however much changes: a list of many objects that change all the time must come to an end.
// A token of an earlier run is refused with one for the rest as of now, as in Kubernetes.
#pragma once

#include "api/http/url.hpp"
#include "api/view/model/view.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>

namespace muster::api {

// A position in the order of a list: by namespace and name (for pods and events, their job's), then
// by job; a job's pods by index and attempt, its events by number.
struct Position {
  std::string ns, name;
  JobId job = 0;
  PodKey pod;
  uint64_t nr = 0;
  auto operator<=>(const Position&) const = default;
};
// Position::job of a kept object: kept objects come after those of jobs.
constexpr JobId kAfterJobs = UINT64_MAX;
Position position_of(const Shown& shown);

struct ListPage {
  uint64_t limit = 0;    // 0: all
  bool resumed = false;  // `after` and `version` come from a token
  Position after;
  uint64_t version = 0;  // of the list; 0 in a token: that of the next page
  uint64_t passed = 0;   // pods of the job of `after` on earlier pages
};

// `invalid` if a parameter cannot be parsed.
Result<ListPage> page_of(const Url& url);

std::string continue_token(const ListPage& page, const Position& last);

}  // namespace muster::api
