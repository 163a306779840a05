// Manifest: a batch/v1 Job between its JSON text and the values that core judges.
//
//   parse_job   text -> values; what is not decodable at all is refused here (HTTP 400)
//   admit_job   a new job: name, defaults, generated labels, all rules (HTTP 422), and the text
//   that is stored update_job  the same for a changed one, against the job that is there load_job
//   the stored text back into values, without judging it again
//
// An Error with violations is a 422; one without is a 400 whose message names the field.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "core/spec/gates.hpp"
#include "core/spec/job_spec.hpp"
#include "core/spec/update.hpp"
#include "text/json_text.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

// What becomes of unknown and repeated fields: refused, named in warnings, or dropped in silence.
enum class FieldValidation { strict, warn, ignore };

// What is to be said of these fields: warnings, or the error of a strict request.
Result<std::vector<std::string>> field_complaints(const std::vector<std::string>& unknown,
                                                  const std::vector<std::string>& duplicates,
                                                  FieldValidation validation);

struct ParsedJob {
  core::JobMeta meta;
  core::JobSpec spec;
  std::string resource_version;  // as written; empty if it was not
  nlohmann::json document;       // known fields only, without nulls and status
  std::vector<std::string> warnings;
};

Result<ParsedJob> parse_job(std::string_view json_text, FieldValidation unknown_fields);
// The same of what was parsed before.
Result<ParsedJob> parse_job(JsonText text, FieldValidation unknown_fields);

// What the server gives to a new job.
struct Admission {
  std::string ns;   // of the request's path
  std::string uid;  // RFC 4122 text
  Millis now_ms = 0;
  std::string name_suffix;  // five characters, used with generateName
  core::Gates gates{};
};

Result<core::JobObjectPtr> admit_job(ParsedJob job, const Admission& admission);

// `generation` rises if the spec changed. The uid, if written, has to be the old one (conflict).
Result<core::JobObjectPtr> update_job(ParsedJob job, const core::JobObject& old_job,
                                      const core::ObservedStatus& observed,
                                      const core::Gates& gates = {});

// Of a text that admit_job or update_job wrote.
core::JobObjectPtr load_job(std::string_view json_text);

}  // namespace muster::api
