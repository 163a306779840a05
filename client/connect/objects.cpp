#include "client/connect/objects.hpp"

#include "base/printable.hpp"
#include "client/connect/expected.hpp"
#include "client/terminal/text.hpp"
#include "core/pod_name.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iostream>
#include <utility>

namespace muster::cli {
namespace {

// attempt_of() tries attempts below this; higher ones do not occur in practice.
constexpr uint32_t kAttemptsMax = 100'000;
constexpr size_t kBodyShown = 200;  // bytes of a refusal that is not a Status

// The names of a kind in the API and kubectl.
struct KindRow {
  Kind kind;
  const char* group;  // of its path
  const char* name;   // what -o name prints before the slash
  bool namespaced;
  std::array<std::string_view, 4> words;  // on the command line, plural first; "": none
  const char* plural() const { return words[0].data(); }
};
constexpr std::array kKinds = {
    KindRow{
        Kind::job, "/apis/batch/v1", "job.batch", true, {"jobs", "job", "job.batch", "jobs.batch"}},
    KindRow{Kind::pod, "/api/v1", "pod", true, {"pods", "pod", "po", ""}},
    KindRow{Kind::node, "/api/v1", "node", false, {"nodes", "node", "no", ""}},
    KindRow{Kind::event, "/api/v1", "event", true, {"events", "event", "ev", ""}},
    KindRow{Kind::config_map, "/api/v1", "configmap", true, {"configmaps", "configmap", "cm", ""}},
    KindRow{Kind::ns, "/api/v1", "namespace", false, {"namespaces", "namespace", "ns", ""}},
    KindRow{Kind::cron_job,
            "/apis/batch/v1",
            "cronjob.batch",
            true,
            {"cronjobs", "cronjob", "cj", "cronjob.batch"}},
    KindRow{Kind::queue,
            "/apis/muster.dev/v1",
            "queue.muster.dev",
            false,
            {"queues", "queue", "queue.muster.dev", "queues.muster.dev"}},
    KindRow{Kind::priority_class,
            "/apis/scheduling.k8s.io/v1",
            "priorityclass.scheduling.k8s.io",
            false,
            {"priorityclasses", "priorityclass", "pc", "priorityclass.scheduling.k8s.io"}},
};

// The kinds of manifests, and where they are sent.
struct ManifestKind {
  std::string_view name;
  Kind kind;
};
constexpr ManifestKind kManifestKinds[] = {
    {"Job", Kind::job},      {"CronJob", Kind::cron_job}, {"ConfigMap", Kind::config_map},
    {"Namespace", Kind::ns}, {"Queue", Kind::queue},      {"PriorityClass", Kind::priority_class},
};
Kind kind_of_manifest(const std::string& name) {
  const auto* const found =
      std::find_if(std::begin(kManifestKinds), std::end(kManifestKinds),
                   [&name](const ManifestKind& one) { return one.name == name; });
  return found == std::end(kManifestKinds) ? Kind::job : found->kind;
}

const KindRow& row_of(Kind kind) {
  return *std::find_if(kKinds.begin(), kKinds.end(),
                       [kind](const KindRow& row) { return row.kind == kind; });
}

Errc code_of(int status) {
  if (status == 404 || status == 410) return Errc::not_found;
  if (status == 409) return Errc::conflict;
  if (status == 429) return Errc::overloaded;
  if (status >= 500) return Errc::unavailable;
  return Errc::invalid;
}

}  // namespace

std::optional<Kind> parse_kind(std::string_view word) {
  for (const KindRow& row : kKinds)
    for (const std::string_view known : row.words)
      if (!known.empty() && known == word) return row.kind;
  return std::nullopt;
}

const std::vector<std::string>& kind_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> out;
    for (const KindRow& row : kKinds) out.emplace_back(row.plural());
    return out;
  }();
  return words;
}

const char* kind_name(Kind kind) {
  return row_of(kind).name;
}

const char* kind_plural(Kind kind) {
  return row_of(kind).plural();
}

const char* group_path(Kind kind) {
  return row_of(kind).group;
}

bool is_namespaced(Kind kind) {
  return row_of(kind).namespaced;
}

std::string object_path(Kind kind, const std::string& ns, const std::string& name) {
  const KindRow& row = row_of(kind);
  std::string path = row.group;
  if (row.namespaced && !ns.empty()) path += "/namespaces/" + url_encoded(ns);
  path += std::string("/") + row.plural();
  if (!name.empty()) path += "/" + url_encoded(name);
  return path;
}

Error refusal(const Response& response) {
  const Json status = read_json(response.body);
  Error error{code_of(response.status), text_at(status, {"message"}), {}};
  if (text_at(status, {"reason"}) == "AlreadyExists") error.code = Errc::exists;
  if (error.message.empty()) {
    error.message = "the coordinator answered HTTP " + std::to_string(response.status);
    if (!status.is_object() && !response.body.empty())
      error.message += ": " + on_one_line(utf8_prefix(response.body, kBodyShown));
  }
  const std::string plural = text_at(status, {"details", "kind"});
  const auto& plurals = kind_words();
  if (response.status == 404 && std::find(plurals.begin(), plurals.end(), plural) != plurals.end())
    error.message +=
        "\n  see: muster get " + plural + (is_namespaced(*parse_kind(plural)) ? " -A" : "");
  const Json& causes = at(status, {"details", "causes"});
  if (response.status == 422 && !causes.empty()) {
    // The message repeats all causes in one long line; they are listed below it instead.
    error.message = text_at(status, {"details", "kind"}) + " \"" +
                    text_at(status, {"details", "name"}) + "\" is invalid:";
    for (const Json& cause : causes) {
      error.violations.push_back(
          {text_at(cause, {"field"}), Violation::Kind::invalid, "", text_at(cause, {"message"})});
    }
  }
  return error;
}

Result<Json> object(ApiClient& client, const std::string& path) {
  auto response = client.get(path);
  if (!response) return response.error();
  if (!response->ok()) return refusal(*response);
  return std::move(response->json);
}

Result<Json> SameObject::get(ApiClient& client) {
  auto now = object(client, path_);
  if (!now) return now.error();
  const std::string uid = text_at(*now, {"metadata", "uid"});
  const std::string created = text_at(*now, {"metadata", "creationTimestamp"});
  if (known_.uid.empty()) known_ = known_of(*now);
  if (uid == known_.uid) return now;
  if (created > known_.created)
    return Error{Errc::not_found,
                 "\"" + text_at(*now, {"metadata", "name"}) +
                     "\" was deleted; another one of this name was created at " + created,
                 {}};
  return client.foreign("GET", path_,
                        "the uid " + shown_bytes(uid) + " instead of " + shown_bytes(known_.uid));
}

KnownObject known_of(const Json& object) {
  return {text_at(object, {"metadata", "uid"}), text_at(object, {"metadata", "creationTimestamp"})};
}

Result<std::vector<Json>> pods_of(ApiClient& client, const std::string& ns, const std::string& job,
                                  const std::string& more_labels, const std::string& fields) {
  std::string labels = "batch.kubernetes.io/job-name=" + job;
  if (!more_labels.empty()) labels += "," + more_labels;
  std::string path = object_path(Kind::pod, ns) + "?labelSelector=" + url_encoded(labels);
  if (!fields.empty()) path += "&fieldSelector=" + url_encoded(fields);
  auto list = object(client, path);
  if (!list) return list.error();
  std::vector<Json> pods;
  if (const auto items = list->find("items"); items != list->end() && items->is_array()) {
    for (Json& pod : *items) pods.push_back(std::move(pod));
  }
  return pods;
}

void print_warnings(const Response& response) {
  for (const std::string& warning : response.warnings)
    std::cerr << "muster: warning: " << warning << "\n";
}

Result<Json> change_object(ApiClient& client, const std::string& path, const Json& patch) {
  auto answer = client.patch(path, dumped(patch));
  if (!answer) return answer.error();
  if (!answer->ok()) return refusal(*answer);
  print_warnings(*answer);
  return std::move(answer->json);
}

std::string manifest_path(const std::string& kind, const std::string& ns, const std::string& name) {
  return object_path(kind_of_manifest(kind), ns, name);
}

const char* manifest_kind(const std::string& kind) {
  return kind_name(kind_of_manifest(kind));
}

Result<Json> create_job(ApiClient& client, const std::string& ns, const std::string& manifest,
                        bool dry_run, bool quiet) {
  std::string path = object_path(Kind::job, ns) + "?fieldManager=muster&fieldValidation=Strict";
  if (dry_run) path += "&dryRun=All";
  auto response = client.post(path, manifest);
  if (!response) return response.error();
  if (!response->ok()) return refusal(*response);
  if (!quiet) print_warnings(*response);
  return std::move(response->json);
}

bool is_indexed(const Json& job) {
  return text_at(job, {"spec", "completionMode"}) == "Indexed";
}

std::vector<core::After> awaited_jobs(const Json& job) {
  auto all = core::parse_after(text_at(job, {"metadata", "annotations", core::kAfterKey.data()}));
  return all ? std::move(*all) : std::vector<core::After>();
}

JobEnd end_of(const Json& job) {
  if (!condition_of(job, "Complete").is_null()) return JobEnd::complete;
  if (!condition_of(job, "Failed").is_null()) return JobEnd::failed;
  return JobEnd::none;
}

std::optional<int64_t> index_of(const Json& pod) {
  const std::string text =
      text_at(pod, {"metadata", "annotations", core::kCompletionIndexKey.data()});
  int64_t index = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), index).ec != std::errc())
    return std::nullopt;
  return index;
}

std::optional<int64_t> attempt_of(const Json& pod) {
  const auto index = index_of(pod);
  const Json& owners = at(pod, {"metadata", "ownerReferences"});
  if (!index || !owners.is_array() || owners.empty()) return std::nullopt;
  const std::string uid = text_at(pod, {"metadata", "uid"});
  const std::string job_uid = text_at(owners.front(), {"uid"});
  for (uint32_t attempt = 0; attempt < kAttemptsMax; ++attempt) {
    if (core::pod_uid(job_uid, {static_cast<uint32_t>(*index), attempt}) == uid) return attempt;
  }
  return std::nullopt;
}

std::optional<int64_t> attempt_of_name(const std::string& job, const std::string& job_uid,
                                       int64_t index, const std::string& pod) {
  for (uint32_t attempt = 0; attempt < kAttemptsMax; ++attempt) {
    if (core::pod_name(job, job_uid, true, {static_cast<uint32_t>(index), attempt}) == pod)
      return attempt;
  }
  return std::nullopt;
}

}  // namespace muster::cli
