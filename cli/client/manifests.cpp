#include "cli/client/manifests.hpp"

#include "cli/settings/files.hpp"
#include "core/spec/annotations.hpp"
#include "text/yaml.hpp"

#include <cctype>
#include <map>

namespace muster::cli {
namespace {

// The maximum length of a name, less the suffix and what pods append.
constexpr size_t kBaseNameMax = 40;

// "./My_Script.sh" -> "my-script-sh": letters, digits and single dashes, no dash at either end.
std::string base_name(const std::string& command) {
  std::string out;
  for (const unsigned char c : command.substr(command.rfind('/') + 1)) {
    if (std::isalnum(c) != 0) {
      out += static_cast<char>(std::tolower(c));
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
    if (out.size() == kBaseNameMax) break;
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "job" : out;
}

// Removes what the coordinator has set, so that the job is as its owner wrote it.
Json as_written(Json job) {
  static constexpr auto kLabels = {"controller-uid", "job-name",
                                   "batch.kubernetes.io/controller-uid",
                                   "batch.kubernetes.io/job-name"};
  erase_members(job, {"status"});
  erase_members(job["metadata"],
                {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields",
                 "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"});
  if (!job.contains("spec") || !job["spec"].is_object()) return job;
  Json& spec = job["spec"];
  if (at(spec, {"manualSelector"}) != Json(true)) {
    erase_members(spec, {"selector"});
    if (job["metadata"].contains("labels")) erase_members(job["metadata"]["labels"], kLabels);
    if (at(spec, {"template", "metadata", "labels"}).is_object()) {
      erase_members(spec["template"]["metadata"]["labels"], kLabels);
      if (spec["template"]["metadata"]["labels"].empty())
        erase_members(spec["template"]["metadata"], {"labels"});
    }
  }
  return job;
}

Status add_document(std::vector<Document>& out, std::string json, const Json& object,
                    const std::string& where) {
  if (!object.is_object())
    return invalid(where + ": is not an object with apiVersion, kind, metadata and spec");
  const std::string kind = text_at(object, {"kind"}), version = text_at(object, {"apiVersion"});
  const bool other = (kind == "ConfigMap" || kind == "Namespace") && version == "v1";
  if (!other && (kind != "Job" || version != "batch/v1")) {
    return invalid(
        where + ": is " + (kind.empty() ? "of no kind" : "a " + kind) +
        (version.empty() ? "" : " of " + version) +
        ", should be apiVersion: batch/v1, kind: Job, or a ConfigMap or Namespace of v1");
  }
  // Only a coordinator sets a uid. Without one, the manifest is sent as it was written.
  if (!text_at(object, {"metadata", "uid"}).empty())
    json = dumped(as_written(object));  // of other kinds, too
  Document document{std::move(json), kind, text_at(object, {"metadata", "name"}),
                    text_at(object, {"metadata", "namespace"})};
  if (document.name.empty()) document.name = text_at(object, {"metadata", "generateName"});
  out.push_back(std::move(document));
  return Nothing{};
}

}  // namespace

Result<std::vector<Document>> parse_manifests(const std::string& text, const std::string& path) {
  auto documents = yaml_to_json(text);
  if (!documents) return invalid(path + ": " + documents.error().message);
  if (documents->empty()) return invalid(path + ": no manifest found");
  std::vector<Document> out;
  for (size_t i = 0; i < documents->size(); ++i) {
    const std::string where =
        documents->size() == 1 ? path : path + ": document " + std::to_string(i + 1);
    std::string& json = (*documents)[i];
    const Json object = read_json(json);
    const bool list = text_at(object, {"kind"}) == "List" || text_at(object, {"kind"}) == "JobList";
    if (!list) {
      if (Status s = add_document(out, std::move(json), object, where); !s) return s.error();
      continue;
    }
    size_t number = 0;
    for (const Json& item : at(object, {"items"})) {
      const std::string at_item = where + ": items[" + std::to_string(number++) + "]";
      Json job = item;  // items of a JobList lack apiVersion and kind
      if (text_at(object, {"kind"}) == "JobList")
        job.update({{"apiVersion", "batch/v1"}, {"kind", "Job"}});
      if (Status s = add_document(out, dumped(job), job, at_item); !s) return s.error();
    }
  }
  if (out.empty()) return invalid(path + ": no manifest found");
  return out;
}

Result<std::vector<Document>> read_manifests(const std::string& path) {
  auto text = read_file(path);
  if (!text) return text.error();
  return parse_manifests(*text, shown_path(path));
}

Json command_manifest(const CommandJob& job, const std::function<uint32_t(uint32_t)>& random) {
  std::string name = job.name;
  if (name.empty()) {
    static constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
    name = base_name(job.command.front()) + "-";
    for (int i = 0; i < 5; ++i) name += kLetters[random(kLetters.size())];
  }
  Json words = job.words;
  if (job.words.empty())
    for (const std::string& word : job.command) words.push_back(unexpanded(word));
  Json spec = {{"completionMode", "Indexed"},
               {"completions", job.completions},
               {"parallelism", job.parallelism},
               {"backoffLimitPerIndex", job.retries},
               {"template",
                {{"spec",
                  {{"restartPolicy", "Never"},
                   {"containers", Json::array({{{"name", "main"}, {"command", words}}})}}}}}};
  const Json metadata = {{"name", name},
                         {"annotations", {{std::string(core::kStartFailureKey), "FailJob"}}}};
  return with_surroundings({{"apiVersion", "batch/v1"},
                            {"kind", "Job"},
                            {"metadata", metadata},
                            {"spec", std::move(spec)}},
                           job.environment, job.dir);
}

Json with_surroundings(Json manifest, const Variables& environment, const std::string& dir) {
  Json& container = manifest["spec"]["template"]["spec"]["containers"][0];
  if (!dir.empty() && !container.contains("workingDir")) container["workingDir"] = dir;
  std::map<std::string, Json> variables;
  for (const auto& [name, value] : environment)
    variables[name] = {{"name", name}, {"value", unexpanded(value)}};
  if (container.contains("env")) {
    for (const Json& own : container["env"]) variables[text_at(own, {"name"})] = own;
  }
  if (!variables.empty()) container["env"] = Json::array();
  for (auto& [name, variable] : variables) container["env"].push_back(std::move(variable));
  return manifest;
}

}  // namespace muster::cli
