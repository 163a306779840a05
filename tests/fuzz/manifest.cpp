// Fuzz target: a manifest, YAML or JSON, from its bytes to a validated job.
//
// An admitted job must keep its meaning: its JSON loads as the same job, and updating the job with
// its own JSON changes nothing.
#include "api/kube/objects/manifest.hpp"

#include "base/text/yaml.hpp"
#include "base/text/yaml_fields.hpp"
#include "tests/unit/api/admit.hpp"

#include <cstddef>
#include <cstdint>

namespace {

using namespace muster;

constexpr Millis kNow = 1'700'000'000'000;

void check(const std::string& json) {
  for (auto strictness :
       {api::FieldValidation::strict, api::FieldValidation::warn, api::FieldValidation::ignore}) {
    auto parsed = api::parse_job(json, strictness);
    if (!parsed.ok()) continue;
    auto job = api::admit_job(std::move(*parsed), {"default", "uid", kNow, "bcdfg"});
    if (!job.ok()) continue;
    const core::JobObjectPtr loaded = api::load_job((*job)->json);
    MUSTER_CHECK(loaded->spec == (*job)->spec, (*job)->json);
    MUSTER_CHECK(loaded->meta == (*job)->meta, (*job)->json);
    auto again = api::parse_job((*job)->json, api::FieldValidation::strict);
    MUSTER_CHECK(again.ok(), (*job)->json);
    auto updated = api::update_job(std::move(*again), **job, {});
    MUSTER_CHECK(updated.ok(), (*job)->json);
    MUSTER_CHECK((*updated)->json == (*job)->json, (*updated)->json, (*job)->json);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const YamlDocument& document : yaml_documents(text)) {
    (void)YamlFields(document).find("spec.template.spec.containers[0].name");
    if (document.problem.empty()) check(document.json);
  }
  check(text);
  return 0;
}
