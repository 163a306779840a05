// Objects: the API requests that verbs share: paths, responses, refusals.
#pragma once

#include "client/connect/http.hpp"
#include "client/settings/target.hpp"
#include "client/terminal/json.hpp"
#include "core/spec/fields/after.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

constexpr Millis kAbsenceMax = 60'000;  // give up if the coordinator stops answering for this long

// "jobs", "job", "po"...; absent: no such kind.
std::optional<Kind> parse_kind(std::string_view word);
const std::vector<std::string>& kind_words();
const char* kind_name(Kind kind);    // "job.batch", "pod"...: what -o name prints before the slash
const char* kind_plural(Kind kind);  // "jobs", "pods"...
const char* group_path(Kind kind);   // "/apis/batch/v1", "/api/v1"
bool is_namespaced(Kind kind);

// /apis/batch/v1/namespaces/NS/jobs[/NAME]; an empty `ns` means all namespaces. Nodes have no
// namespace.
std::string object_path(Kind kind, const std::string& ns, const std::string& name = "");

// Reads a refusal: a Status object, or any other body.
Error refusal(const Response& response);
// Those of the API, on stderr.
void print_warnings(const Response& response);

// GETs an object.
Result<Json> object(ApiClient& client, const std::string& path);

// GETs the same object again and again. not_found: it is gone, even if a later one has its name;
// foreign: another cluster's object has its name.
class SameObject {
 public:
  // `known`: empty until the first answer.
  SameObject(std::string path, KnownObject known)
      : path_(std::move(path)), known_(std::move(known)) {}
  Result<Json> get(ApiClient& client);

 private:
  const std::string path_;
  KnownObject known_;
};

KnownObject known_of(const Json& object);

// The pods of a job, filtered by selectors ("" for none; not yet encoded).
Result<std::vector<Json>> pods_of(ApiClient& client, const std::string& ns, const std::string& job,
                                  const std::string& more_labels, const std::string& fields);

// The path of an object of this manifest kind ("Job", "CronJob", "ConfigMap", "Namespace", "Queue",
// "PriorityClass"), and what -o name prints before the slash.
std::string manifest_path(const std::string& kind, const std::string& ns,
                          const std::string& name = "");
const char* manifest_kind(const std::string& kind);

// `quiet`: without the warnings of the API.
Result<Json> create_job(ApiClient& client, const std::string& ns, const std::string& manifest,
                        bool dry_run, bool quiet = false);

// Applies a merge patch and returns the changed object.
Result<Json> change_object(ApiClient& client, const std::string& path, const Json& patch);

// How a job ended; none while it is running.
enum class JobEnd { none, complete, failed };
JobEnd end_of(const Json& job);

bool is_indexed(const Json& job);

// The jobs that this one waits for (muster.dev/after); none if that is absent or malformed, which
// the coordinator says.
std::vector<core::After> awaited_jobs(const Json& job);

// The index of an Indexed pod, and its attempt, recovered from its uid; absent: unknown.
std::optional<int64_t> index_of(const Json& pod);
std::optional<int64_t> attempt_of(const Json& pod);

// The attempt of a pod of this index, recovered from its name; absent: unknown.
std::optional<int64_t> attempt_of_name(const std::string& job, const std::string& job_uid,
                                       int64_t index, const std::string& pod);

}  // namespace muster::cli
