// Renderer: renders an object in the form that the client asked for, plain or as a table row.
#pragma once

#include "api/view/model/view.hpp"
#include "api/view/render/misfits.hpp"
#include "api/view/render/pod_json.hpp"
#include "base/clock.hpp"

#include <string>

namespace muster::api {

// metadata: kind PartialObjectMetadata. events_v1: plain, but events with the field names of
// events.k8s.io/v1. cells: a table whose rows have no objects (includeObject=None).
enum class Form { plain, table, metadata, events_v1, cells };
inline bool is_table(Form form) {
  return form == Form::table || form == Form::cells;
}
// How that is encoded. YAML includes JSON, so it is the same text.
enum class Encoding { json, yaml, protobuf };

class Renderer {
 public:
  Renderer(const View& view, WallClock now)
      : view_(view), now_(std::move(now)), scheduling_(view) {}

  // In any form but table.
  void object(std::string& out, const Shown& shown, Form form = Form::plain);
  // A row of a table of this form: the cells and perhaps the object's metadata.
  void row(std::string& out, const Shown& shown, Form form);
  // The object in this form: plain, or a table of one row. `columns`: include the column
  // definitions.
  void whole(std::string& out, const Shown& shown, Form form, bool columns = true);
  // The text before and after the items (rows) of a list.
  struct ListMeta {
    uint64_t version = 0;
    std::string token;       // of the next page; empty: none
    uint64_t remaining = 0;  // objects after this page; 0: left out
  };
  std::string list_head(Kind kind, Form form) const;
  std::string list_tail(const ListMeta& meta) const;
  std::string list_meta(const ListMeta& meta) const;  // a JSON object
  // An object of this kind with nothing but a version, for a bookmark.
  std::string bookmark(Kind kind, Form form, uint64_t version) const;
  // Why a pod that has waited for a while has no node, in the words of Kubernetes' scheduler;
  // empty: it has one, or may get one. Valid until the next call.
  std::string_view unplaced(const Shown& shown);

 private:
  void metadata(std::string& out, const Shown& shown);

  const View& view_;
  WallClock now_;
  PodWriters writers_;
  SchedulingTexts scheduling_;
};

const char* kind_name(Kind kind);                             // "Job"
const char* kind_in(Kind kind, Form form);                    // "Job", "PartialObjectMetadata"
const char* api_version(Kind kind, Form form = Form::plain);  // "batch/v1"
const char* resource_name(Kind kind);                         // "jobs"

}  // namespace muster::api
