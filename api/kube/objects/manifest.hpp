// Manifest: converts a batch/v1 Job between its JSON text and the values that core checks.
//
//   parse_job     text to values; refuses what cannot be decoded (HTTP 400)
//   complete_job  a new job: name, defaults, generated labels, all rules (HTTP 422)
//   seal_job      its stored text
//   update_job    both for a changed job, checked against the current one
//   load_job      stored text back to values, without checking it again
//
// An Error with violations is a 422; one without is a 400 whose message names the field.
#pragma once

#include "api/kube/schema/fields.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/text/json_text.hpp"
#include "core/queue/rights.hpp"
#include "core/spec/fields/image_runtime.hpp"
#include "core/spec/fields/job_spec.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/rules/update.hpp"
#include "core/spec/values/gates.hpp"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

// Unknown and repeated fields are refused, reported in warnings, or silently dropped. Unknown
// annotations of muster's own (muster.dev/…) are kept; strict and warn report them in warnings.
enum class FieldValidation { strict, warn, ignore };

// The warnings for these fields, or the error of a strict request.
Result<std::vector<std::string>> field_complaints(const std::vector<UnknownField>& unknown,
                                                  const std::vector<std::string>& duplicates,
                                                  FieldValidation validation);

struct ParsedJob {
  core::JobMeta meta;
  core::JobSpec spec;
  std::string resource_version;  // as written, or empty
  nlohmann::json document;       // known fields only, without nulls and status
  std::vector<std::string> warnings;
};

Result<ParsedJob> parse_job(std::string_view json_text, FieldValidation unknown_fields);
// The same, for parsed text.
Result<ParsedJob> parse_job(JsonText text, FieldValidation unknown_fields);

// What the server sets on a new job.
struct Admission {
  std::string ns;   // of the request's path
  std::string uid;  // RFC 4122 text
  Millis now_ms = 0;
  std::string name_suffix;  // five characters, used with generateName
  core::Gates gates{};
  std::optional<core::Owner> owner{};                 // set where users have roles
  std::optional<core::ImageRuntime> image_runtime{};  // null: containers need no command
  std::shared_ptr<const core::QueueSet> queues{};     // null: there are none
};

// Checks a new job and completes it: name, defaults, generated labels. Its document then agrees
// with its values.
Result<ParsedJob> complete_job(ParsedJob job, const Admission& admission);
// Makes the object of a complete job.
core::JobObjectPtr seal_job(ParsedJob job);

// Increments `generation` if the spec changed. A uid, if sent, must be the old one (else
// `conflict`).
Result<core::JobObjectPtr> update_job(ParsedJob job, const core::JobObject& old_job,
                                      const core::ObservedStatus& observed,
                                      const core::Gates& gates = {});

// Reads a text that seal_job or update_job wrote; nullptr if it cannot be read.
core::JobObjectPtr load_job(std::string_view json_text);

}  // namespace muster::api
