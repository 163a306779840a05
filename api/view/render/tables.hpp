// Tables: the responses of kind Table (Accept: …;as=Table) that `kubectl get` prints.
#pragma once

#include "api/view/model/view.hpp"
#include "api/view/query/object_json.hpp"
#include "api/view/render/pod_json.hpp"

#include <string>

namespace muster::api {

// The columns of a kind; those with priority 1 are shown by `-o wide`.
OrderedJson table_columns(Kind kind);
// The cells of one object, in the order of the columns. Ages are as of `now_ms`.
OrderedJson table_cells(const View& view, const Shown& shown, Millis now_ms);
// A duration as kubectl prints it: "3d4h".
std::string span_text(Millis span_ms);
// "begins at 2027-01-31 08:00:00 CET", in this machine's time zone; empty: the job may start.
std::string begins_text(const core::Job& job, Millis now_ms);

}  // namespace muster::api
