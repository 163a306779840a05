// Renderer: an object as the client asked for it, plain or as a row of a table.
#pragma once

#include "api/view/pod_json.hpp"
#include "api/view/view.hpp"
#include "base/clock.hpp"

#include <string>

namespace muster::api {

// events_v1: plain, and events in the words of events.k8s.io/v1.
enum class Form { plain, table, events_v1 };

class Renderer {
 public:
  Renderer(const View& view, WallClock now) : view_(view), now_(std::move(now)) {}

  // The object itself.
  void object(std::string& out, const Shown& shown, Form form = Form::plain);
  // A row of a table: cells and the object's metadata.
  void row(std::string& out, const Shown& shown);
  // The object in this form: itself, or a table of one row. `columns`: with the table's columns.
  void whole(std::string& out, const Shown& shown, Form form, bool columns = true);
  // What stands before and after the items (rows) of a list.
  struct ListMeta {
    uint64_t version = 0;
    std::string token;       // of the next page; empty: there is none
    uint64_t remaining = 0;  // objects after this page; 0: not said
  };
  std::string list_head(Kind kind, Form form) const;
  std::string list_tail(const ListMeta& meta) const;
  // An object of this kind that holds nothing but a version, for a bookmark.
  std::string bookmark(Kind kind, Form form, uint64_t version) const;

 private:
  const View& view_;
  WallClock now_;
  PodWriters writers_;
};

const char* kind_name(Kind kind);                             // "Job"
const char* api_version(Kind kind, Form form = Form::plain);  // "batch/v1"
const char* resource_name(Kind kind);                         // "jobs"

}  // namespace muster::api
