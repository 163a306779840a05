// Fuzz target: patches to an object: JSON patch, merge patch, strategic merge patch and server-side
// apply.
//
// Input: one byte that selects the kind of patch, the object, a zero byte, the patch. Merge patch
// and apply must be idempotent.
#include "api/kube/patch/patch.hpp"

#include "api/kube/patch/managed_fields.hpp"
#include "api/kube/schema/fields.hpp"
#include "base/text/json_text.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using namespace muster;
using nlohmann::json;

void check_apply(const json& live, const json& wanted, bool force) {
  const api::Writer writer{"me", "batch/v1", "2023-11-14T22:13:20Z", ""};
  auto once = api::applied("Job", live, wanted, writer, force);
  // Without managers, the next apply attributes the existing fields to before-first-apply, and so
  // changes the object.
  if (!once.ok() || !api::read_managers(*once)) return;
  auto twice = api::applied("Job", *once, wanted, writer, false);
  MUSTER_CHECK(twice.ok(), twice.error().message);
  MUSTER_CHECK(*twice == *once, once->dump(), twice->dump());
  json tracked = *once;
  api::track_update("Job", live, tracked, {"other", "batch/v1", "2023-11-14T22:13:21Z", ""});
  if (const auto managers = api::read_managers(tracked))
    for (const api::Manager& one : *managers) MUSTER_CHECK(!one.fields.empty(), one.name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = text.find('\0');
  if (cut == std::string_view::npos) return 0;
  auto base = parse_json(text.substr(0, cut));
  auto patch = parse_json(text.substr(cut + 1));
  if (!base.ok() || !patch.ok() || !base->value.is_object()) return 0;
  switch (data[0] % 5) {
    case 0:
      (void)api::apply_patch(api::PatchType::json, base->value, patch->value);
      break;
    case 1: {
      auto once = api::apply_patch(api::PatchType::merge, base->value, patch->value);
      if (!once.ok()) break;
      auto twice = api::apply_patch(api::PatchType::merge, *once, patch->value);
      MUSTER_CHECK(twice.ok() && *twice == *once, once->dump());
      break;
    }
    case 2:
      (void)api::apply_patch(api::PatchType::strategic, base->value, patch->value);
      break;
    default:
      // applied() expects documents without unknown fields; conform() removes them.
      if (patch->value.is_object() && api::conform(base->value, "Job").ok() &&
          api::conform(patch->value, "Job").ok())
        check_apply(base->value, patch->value, data[0] % 5 == 4);
      break;
  }
  return 0;
}
