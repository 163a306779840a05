// Canonical: the one form in which a pod template is stored, compared and shown, whatever the
// client's spelling of it.
//
// It is that of Kubernetes, which decodes a template into types: what is absent has its default
// where there is one (`default` in api/openapi/, and the rules in canonical.cpp), and what is empty
// or zero is absent where the types cannot tell the difference. Quantities are canonical already
// (fields.hpp).
#pragma once

#include "base/text/json.hpp"

namespace muster::api {

// Call after conform(). Anything but an object stays as it is.
void make_canonical(Json& pod_template);
// The same for the metadata of any object, if it has some: an empty list or map is none.
void make_metadata_canonical(Json& object);

}  // namespace muster::api
