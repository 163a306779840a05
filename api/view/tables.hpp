// Tables: what `kubectl get` prints, as an answer of kind Table (Accept: …;as=Table).
#pragma once

#include "api/view/object_json.hpp"
#include "api/view/pod_json.hpp"
#include "api/view/view.hpp"

#include <string>

namespace muster::api {

// The columns of a kind; those of priority 1 show with `-o wide`.
OrderedJson table_columns(Kind kind);
// The cells of one object, in that order. `now_ms` gives the ages.
OrderedJson table_cells(const View& view, const Shown& shown, Millis now_ms);
// "3d4h", as kubectl writes a span.
std::string span_text(Millis span_ms);

}  // namespace muster::api
