#include "api/kube/objects/manifest.hpp"

#include "api/kube/objects/canonical.hpp"
#include "api/kube/objects/job_values.hpp"
#include "api/kube/objects/owner_refs.hpp"
#include "api/kube/objects/refused_fields.hpp"
#include "api/kube/schema/fields.hpp"
#include "base/text/json.hpp"
#include "base/text/json_text.hpp"
#include "base/text/nearest.hpp"
#include "core/cluster/slots/allowance.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/gate_fields.hpp"
#include "core/spec/rules/defaults.hpp"
#include "core/spec/rules/validation.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr size_t kJobBaseMax = 58;  // a DNS label, minus five characters for the suffix

void drop_fields(ParsedJob& job, const core::Gates& gates, const core::JobSpec* old) {
  json& spec = job.document["spec"];
  for (const std::string& name : core::drop_gated(gates, job.spec, old)) {
    if (name != core::kFailIndexRules) {
      spec.erase(name);
      continue;
    }
    json kept = json::array();
    for (json& rule : spec["podFailurePolicy"]["rules"])
      if (rule.value("action", "") != "FailIndex") kept.push_back(std::move(rule));
    spec["podFailurePolicy"]["rules"] = std::move(kept);
  }
}

// Makes the document of a job that has passed all checks agree with its values.
ParsedJob completed(ParsedJob job) {
  // A job without labels gets the generated ones (job-semantics 1.2, step 4).
  core::apply_defaults(job.meta, job.spec);
  write_values(job.meta, job.spec, job.document);
  return job;
}

void make_job_canonical(json& document) {
  make_metadata_canonical(document);
  if (auto spec = document.find("spec"); spec != document.end() && spec->contains("template"))
    make_canonical((*spec)["template"]);
}

// Brings the template into its stored form, values included.
void settle(ParsedJob& job) {
  make_job_canonical(job.document);
  job.meta = {};
  job.spec = {};
  read_values(job.document, job.meta, job.spec);
}

// Clients look for Kubernetes' exact wording, `unknown field "PATH"`; the suggestion follows it.
std::string suggested(const std::string& word) {
  return word.empty() ? "" : ", did you mean \"" + word + "\"?";
}

// Warns of unknown muster.dev/ annotations.
void warn_of_annotations(const core::StringMap& annotations, std::vector<std::string>& warnings) {
  const std::string prefix(core::kOwnPrefix);
  const std::vector<std::string> known = core::known_annotations();
  for (auto it = annotations.lower_bound(prefix);
       it != annotations.end() && it->first.starts_with(prefix); ++it) {
    if (warnings.size() >= kDuplicatesMax) return;
    const std::string name = it->first.substr(prefix.size());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string meant = nearest(name, known);
    warnings.push_back("metadata.annotations[" + it->first + "]: unknown annotation" +
                       (meant.empty() ? "" : "; did you mean " + prefix + meant + "?"));
  }
}

// An absent field gets its default, but an empty string is a value, and an unsupported one.
void refuse_empty(const ParsedJob& job, core::Violations& found) {
  auto written = [&job](const char* name) {
    const json* spec = job.document.contains("spec") ? &job.document["spec"] : nullptr;
    return spec && spec->contains(name) && (*spec)[name] == "";
  };
  if (written("completionMode"))
    found.not_supported("spec.completionMode", "", {"Indexed", "NonIndexed"});
  if (!written("podReplacementPolicy")) return;
  if (job.spec.pod_failure_policy)
    found.not_supported("spec.podReplacementPolicy", "", {"Failed"});
  else
    found.not_supported("spec.podReplacementPolicy", "", {"Failed", "TerminatingOrFailed"});
}

std::optional<Error> refusal(core::Violations found, const ParsedJob& job) {
  refuse_empty(job, found);
  check_owner_refs(job.meta.owners, found);
  found.append(refused_fields(job.document, core::owner_of(job.meta.annotations)));
  if (found.empty()) return std::nullopt;
  return Error{Errc::invalid, "the job is invalid", found.take()};
}

}  // namespace

Result<std::vector<std::string>> field_complaints(const std::vector<UnknownField>& unknown,
                                                  const std::vector<std::string>& duplicates,
                                                  FieldValidation validation) {
  std::vector<std::string> complaints;
  if (validation == FieldValidation::ignore) return complaints;
  for (const UnknownField& field : unknown)
    complaints.push_back("unknown field \"" + field.path + "\"" + suggested(field.meant));
  for (const std::string& path : duplicates)
    complaints.push_back("duplicate field \"" + path + "\"");
  if (validation == FieldValidation::warn || complaints.empty()) return complaints;
  std::string message = "strict decoding error: ";
  for (size_t i = 0; i < complaints.size(); ++i) {
    if (i > 0) message += message.ends_with('?') ? " " : ", ";
    message += complaints[i];
  }
  return invalid(std::move(message));
}

Result<ParsedJob> parse_job(std::string_view json_text, FieldValidation unknown_fields) {
  auto text = parse_json(json_text);
  if (!text) return text.error();
  return parse_job(std::move(*text), unknown_fields);
}

Result<ParsedJob> parse_job(JsonText text, FieldValidation unknown_fields) {
  ParsedJob job;
  job.document = std::move(text.value);
  auto unknown = conform(job.document, "Job");
  if (!unknown) {
    std::string problems = unknown.error().message;
    for (const std::string& path : text.duplicates)
      problems += "; duplicate field \"" + path + "\"";
    return invalid(std::move(problems));
  }

  auto complaints = field_complaints(*unknown, text.duplicates, unknown_fields);
  if (!complaints) return complaints.error();
  job.warnings = std::move(*complaints);

  std::string kind = job.document.value("kind", "Job");
  std::string version = job.document.value("apiVersion", "batch/v1");
  if (kind != "Job" || version != "batch/v1")
    return invalid("apiVersion and kind: found " + version + " " + kind +
                   ", expected batch/v1 Job");
  job.document["kind"] = kind;
  job.document["apiVersion"] = version;
  job.document.erase("status");
  if (const json* version = find_path(job.document, {"metadata", "resourceVersion"}))
    job.resource_version = version->get<std::string>();
  read_values(job.document, job.meta, job.spec);
  if (unknown_fields != FieldValidation::ignore)
    warn_of_annotations(job.meta.annotations, job.warnings);
  return job;
}

Result<ParsedJob> complete_job(ParsedJob job, const Admission& admission) {
  if (!job.meta.ns.empty() && job.meta.ns != admission.ns)
    return invalid("metadata.namespace: the namespace of the object (" + job.meta.ns +
                   ") does not match the namespace of the request (" + admission.ns + ")");
  if (!job.resource_version.empty())
    return invalid(
        "metadata.resourceVersion: resourceVersion should not be set on objects to be created");
  settle(job);
  job.meta.ns = admission.ns;
  job.meta.uid = admission.uid;
  job.meta.generation = 1;
  // Whole seconds, as in the document.
  job.meta.created_ms = admission.now_ms - admission.now_ms % 1000;
  if (job.meta.name.empty() && !job.meta.generate_name.empty())
    job.meta.name = job.meta.generate_name.substr(0, kJobBaseMax) + admission.name_suffix;

  drop_fields(job, admission.gates, nullptr);
  core::apply_defaults(job.meta, job.spec);
  core::generate_selector(job.meta, job.spec);
  core::Violations found;
  core::keep_owner(admission.owner, job.meta.annotations, found);
  job.meta.annotations.erase(std::string(core::kNotifiedKey));  // copied from another job
  const core::QueueSet none;
  const core::QueueSet& queues = admission.queues ? *admission.queues : none;
  core::take_time_limit(job.meta, job.spec, queues);
  core::enter_queue(job.meta, job.spec, queues, found);
  core::fit_limits(job.meta, job.spec, queues, found);
  found.append(core::validate_create(job.meta, job.spec));
  if (admission.image_runtime) admission.image_runtime->validate(job.spec.pod, found);
  if (auto error = refusal(std::move(found), job)) return *std::move(error);
  return completed(std::move(job));
}

core::JobObjectPtr seal_job(ParsedJob job) {
  auto object = std::make_shared<core::JobObject>();
  object->meta = std::move(job.meta);
  object->spec = std::move(job.spec);
  object->json = job.document.dump();
  return object;
}

Result<core::JobObjectPtr> update_job(ParsedJob job, const core::JobObject& old_job,
                                      const core::ObservedStatus& observed,
                                      const core::Gates& gates) {
  const core::JobMeta& old_meta = old_job.meta;
  settle(job);
  if (job.meta.name.empty()) job.meta.name = old_meta.name;
  if (job.meta.ns.empty()) job.meta.ns = old_meta.ns;
  if (job.meta.name != old_meta.name || job.meta.ns != old_meta.ns)
    return invalid("metadata: the object (" + job.meta.ns + "/" + job.meta.name +
                   ") does not match the request (" + old_meta.ns + "/" + old_meta.name + ")");
  if (!job.meta.uid.empty() && job.meta.uid != old_meta.uid)
    return Error{Errc::conflict,
                 "metadata.uid: the uid in the precondition (" + job.meta.uid +
                     ") is not the stored one (" + old_meta.uid + ")",
                 {}};
  job.meta.uid = old_meta.uid;
  job.meta.generate_name = old_meta.generate_name;
  job.meta.created_ms = old_meta.created_ms;
  job.meta.generation = old_meta.generation;

  drop_fields(job, gates, &old_job.spec);
  core::apply_defaults(job.meta, job.spec);
  // It may be the queue's (core::enter_queue), which the owner's manifest does not have.
  if (!job.spec.pod.active_deadline_s)
    job.spec.pod.active_deadline_s = old_job.spec.pod.active_deadline_s;
  core::Violations found;
  core::keep_owner(core::owner_of(old_meta.annotations), job.meta.annotations, found);
  found.append(core::validate_update(old_meta, old_job.spec, job.meta, job.spec, observed));
  if (!gates.elastic_indexed && job.spec.indexed() &&
      job.spec.completions != old_job.spec.completions && job.spec.completions)
    found.invalid("spec.completions", int64_t{*job.spec.completions}, "field is immutable");
  if (auto error = refusal(std::move(found), job)) return *std::move(error);
  write_values(job.meta, job.spec, job.document);
  json before = json::parse(old_job.json);
  make_job_canonical(before);  // an earlier version may have stored it otherwise
  if (job.document["spec"] != before["spec"]) ++job.meta.generation;
  return seal_job(completed(std::move(job)));
}

core::JobObjectPtr load_job(std::string_view json_text) {
  auto text = parse_json(json_text, kNoLimits);
  if (!text.ok()) return nullptr;
  auto object = std::make_shared<core::JobObject>();
  json document = std::move(text->value);
  auto unknown = conform(document, "Job");
  if (!unknown.ok()) return nullptr;
  make_job_canonical(document);
  read_values(document, object->meta, object->spec);
  object->json = json_text;
  return object;
}

}  // namespace muster::api
