#include "api/kube/objects/cron_object.hpp"

#include "api/kube/objects/canonical.hpp"
#include "api/kube/objects/template_warnings.hpp"
#include "api/kube/objects/time_zones.hpp"
#include "base/text/json_text.hpp"
#include "base/text/time_text.hpp"
#include "core/cron/decide.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace muster::api {
namespace {

constexpr const char* kAllow = "Allow";
constexpr const char* kForbid = "Forbid";
constexpr const char* kReplace = "Replace";
constexpr int32_t kKeepSuccessful = 3, kKeepFailed = 1;  // by default
constexpr size_t kZonePartMax = 14;                      // bytes

// The checks that Kubernetes makes before it looks for the zone.
bool is_zone_name(const std::string& name) {
  size_t length = 0;
  std::string part;
  for (const char c : name + "/") {
    if (c != '/') {
      if (!std::isalnum(static_cast<unsigned char>(c)) &&
          std::string_view("._-+").find(c) == std::string_view::npos)
        return false;
      part += c;
      ++length;
      continue;
    }
    if (length == 0 || length > kZonePartMax || part == "." || part == ".." || part[0] == '-')
      return false;
    part.clear();
    length = 0;
  }
  return true;
}

bool is_word(const std::string& text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         });
}

void check_zone(const std::string& name, core::Violations& found) {
  const std::string path = "spec.timeZone";
  if (name.empty()) return found.invalid(path, "", "timeZone must be nil or non-empty string");
  if (is_word(name, "local"))
    return found.invalid(path, name,
                         "timeZone must be an explicit time zone as defined in "
                         "https://www.iana.org/time-zones");
  if (!is_zone_name(name) || !zone_named(name))
    found.invalid(path, name, "unknown time zone " + name);
}

void check_schedule(const Json& spec, core::Violations& found) {
  const std::string text = member_text(spec, "schedule"), path = "spec.schedule";
  if (text.empty()) return found.required(path);
  if (text.find("TZ") != std::string::npos)
    return found.invalid(path, text,
                         "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
  if (const auto parsed = core::Schedule::parse(text); !parsed.ok())
    found.invalid(path, text, parsed.error().message);
}

void check_numbers(const Json& spec, core::Violations& found) {
  for (const char* name :
       {"startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"})
    if (const auto value = member_number<int64_t>(spec, name))
      found.nonnegative(std::string("spec.") + name, *value);
}

// Where a field of the job is in the cron job.
std::string path_in_template(const std::string& path) {
  if (path == "metadata.name") return path;
  return "spec.jobTemplate." + path;
}

// A job as the template would make it, in the longest form of its name.
Json sample_job(const Json& cron) {
  return cron_child(cron, 0, [](int64_t) { return 0; });
}

void check_template(const Json& cron, const TemplateRules& rules, core::Violations& found,
                    std::vector<std::string>& warnings) {
  Json sample = sample_job(cron);
  sample["metadata"]["name"] = member_text(cron["metadata"], "name") + "-00000000";
  auto parsed = parse_job(JsonText{std::move(sample), {}}, FieldValidation::ignore);
  if (!parsed.ok()) return found.invalid_object("spec.jobTemplate", parsed.error().message);
  auto job = complete_job(std::move(*parsed), rules.admission);
  if (!job.ok()) {
    if (job.error().violations.empty())
      return found.invalid_object("spec.jobTemplate", job.error().message);
    std::vector<Violation> theirs = job.error().violations;
    for (Violation& violation : theirs) violation.path = path_in_template(violation.path);
    return found.append(std::move(theirs));
  }
  if (rules.priority_max)
    if (const auto why =
            core::lacks_rights(job->meta, job->spec,
                               rules.admission.queues ? *rules.admission.queues : core::QueueSet{},
                               *rules.priority_max))
      found.forbidden("spec.jobTemplate", *why);
  for (const std::string& warning : template_warnings(job->document))
    warnings.push_back("spec.jobTemplate." + warning);
}

std::vector<core::JobRef> refs_of(const Json& status) {
  std::vector<core::JobRef> refs;
  for (const Json& one : status.value("active", Json::array()))
    refs.push_back({member_text(one, "name"), member_text(one, "uid")});
  return refs;
}

core::Concurrency concurrency_of(const std::string& word) {
  if (word == kForbid) return core::Concurrency::forbid;
  return word == kReplace ? core::Concurrency::replace : core::Concurrency::allow;
}

}  // namespace

void settle_cron_job(Json& cron, const Json* old, const TemplateRules& rules,
                     core::Violations& found, std::vector<std::string>& warnings) {
  Json& meta = cron["metadata"];
  if (!cron.contains("spec")) cron["spec"] = Json::object();
  Json& spec = cron["spec"];
  if (member_text(spec, "concurrencyPolicy").empty()) spec["concurrencyPolicy"] = kAllow;
  if (!spec.contains("suspend")) spec["suspend"] = false;
  if (!spec.contains("successfulJobsHistoryLimit"))
    spec["successfulJobsHistoryLimit"] = kKeepSuccessful;
  if (!spec.contains("failedJobsHistoryLimit")) spec["failedJobsHistoryLimit"] = kKeepFailed;
  Json& of_job = spec["jobTemplate"];
  if (!of_job.is_object()) of_job = Json::object();
  make_metadata_canonical(of_job);
  if (of_job.contains("spec") && of_job["spec"].contains("template"))
    make_canonical(of_job["spec"]["template"]);

  const std::string name = member_text(meta, "name");
  if (!old && name.size() > core::kCronNameMax)
    found.invalid("metadata.name", name, "must be no more than 52 characters");
  check_schedule(spec, found);
  check_numbers(spec, found);
  if (spec.contains("timeZone") &&
      (!old || (*old)["spec"].value("timeZone", Json()) != spec["timeZone"]))
    check_zone(member_text(spec, "timeZone"), found);
  if (const std::string word = member_text(spec, "concurrencyPolicy");
      word != kAllow && word != kForbid && word != kReplace)
    found.not_supported("spec.concurrencyPolicy", word, {kAllow, kForbid, kReplace});
  const bool other = !old || (*old)["spec"].value("jobTemplate", Json()) != spec["jobTemplate"];
  if (other && name.size() <= core::kCronNameMax) check_template(cron, rules, found, warnings);
}

core::CronJob cron_of(const Json& cron) {
  core::CronJob out;
  const Json none = Json::object();
  const Json &meta = cron.at("metadata"), spec = cron.value("spec", none),
             status = cron.value("status", none);
  out.name = member_text(meta, "name");
  out.created_ms = parse_time(member_text(meta, "creationTimestamp")).value_or(0);
  out.deleted = meta.contains("deletionTimestamp");
  out.spec.schedule = member_text(spec, "schedule");
  if (spec.contains("timeZone")) out.spec.time_zone = member_text(spec, "timeZone");
  out.spec.starting_deadline_s = member_number<int64_t>(spec, "startingDeadlineSeconds");
  out.spec.concurrency = concurrency_of(member_text(spec, "concurrencyPolicy"));
  out.spec.suspend = spec.value("suspend", false);
  out.spec.keep_successful = member_number<int32_t>(spec, "successfulJobsHistoryLimit");
  out.spec.keep_failed = member_number<int32_t>(spec, "failedJobsHistoryLimit");
  out.status.active = refs_of(status);
  out.status.scheduled_ms = parse_time(member_text(status, "lastScheduleTime"));
  out.status.successful_ms = parse_time(member_text(status, "lastSuccessfulTime"));
  return out;
}

void set_cron_status(Json& cron, const core::CronStatus& status) {
  Json next = Json::object();
  for (const core::JobRef& job : status.active)
    next["active"].push_back({{"kind", "Job"},
                              {"apiVersion", "batch/v1"},
                              {"namespace", cron["metadata"]["namespace"]},
                              {"name", job.name},
                              {"uid", job.uid}});
  if (status.scheduled_ms) next["lastScheduleTime"] = time_text(*status.scheduled_ms);
  if (status.successful_ms) next["lastSuccessfulTime"] = time_text(*status.successful_ms);
  cron["status"] = std::move(next);
}

Json cron_child(const Json& cron, Millis scheduled_ms, const core::Zone& zone) {
  const Json& of_job = cron.at("spec").at("jobTemplate");
  const Json from = of_job.value("metadata", Json::object());
  const std::string name = member_text(cron.at("metadata"), "name");
  Json meta = {{"name", core::job_name(name, scheduled_ms)},
               {"namespace", cron.at("metadata").value("namespace", "")}};
  for (const char* name : {"labels", "annotations"})
    if (from.contains(name)) meta[name] = from[name];
  meta["annotations"][kScheduledKey] = zoned_time(scheduled_ms, zone);
  meta["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                          {"kind", "CronJob"},
                                          {"name", name},
                                          {"uid", member_text(cron.at("metadata"), "uid")},
                                          {"controller", true},
                                          {"blockOwnerDeletion", true}}});
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", std::move(meta)},
          {"spec", of_job.value("spec", Json::object())}};
}

std::string zoned_time(Millis at_ms, const core::Zone& zone) {
  const int64_t offset = zone(at_ms / 1000) / 60;  // minutes
  std::string text = time_text(at_ms + offset * 60'000);
  if (offset == 0) return text;
  char tail[64];
  snprintf(tail, sizeof tail, "%c%02lld:%02lld", offset < 0 ? '-' : '+',
           static_cast<long long>(std::abs(offset) / 60),
           static_cast<long long>(std::abs(offset) % 60));
  text.replace(text.size() - 1, 1, tail);
  return text;
}

}  // namespace muster::api
