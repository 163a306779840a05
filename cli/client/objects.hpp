// Objects: what a verb asks of the API: paths, answers, refusals.
#pragma once

#include "cli/client/http.hpp"
#include "cli/output/json.hpp"
#include "cli/settings/options.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

constexpr Millis kAbsenceMax = 60'000;  // of a coordinator that was there: then it is given up

// "jobs", "job", "po", … ; nothing: no such kind.
std::optional<Kind> parse_kind(std::string_view word);
const std::vector<std::string>& kind_words();
const char* kind_name(Kind kind);  // "job.batch", "pod", …: what -o name puts before the slash

// /apis/batch/v1/namespaces/NS/jobs[/NAME]; an empty `ns` means all. Nodes have none.
std::string object_path(Kind kind, const std::string& ns, const std::string& name = "");

// What a refusal (a Status object, or whatever came) says.
Error refusal(const Response& response);

// An object, or why there is none.
Result<Json> object(ApiClient& client, const std::string& path);

// The pods of a job, chosen further by selectors ("" for none; not yet encoded).
Result<std::vector<Json>> pods_of(ApiClient& client, const std::string& ns, const std::string& job,
                                  const std::string& more_labels, const std::string& fields);

// Creates the Job of this manifest.
Result<Json> create_job(ApiClient& client, const std::string& ns, const std::string& manifest,
                        bool dry_run);

// Changes an object by a merge patch: as it is then.
Result<Json> change_object(ApiClient& client, const std::string& path, const Json& patch);

// How a job ended: Complete, Failed, or nothing as long as it goes on.
enum class JobEnd { none, complete, failed };
JobEnd end_of(const Json& job);

// Of an Indexed pod: which attempt it is, found again in its uid; -1: unknown.
int64_t attempt_of(const Json& pod);
int64_t index_of(const Json& pod);  // -1: none

}  // namespace muster::cli
