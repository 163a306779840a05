#include "client/documents/manifests.hpp"

#include "base/text/nearest.hpp"
#include "base/text/yaml.hpp"
#include "client/documents/placed.hpp"
#include "client/settings/files.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/values/names.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace muster::cli {
namespace {

// The maximum length of a name, less the suffix and what pods append.
constexpr size_t kBaseNameMax = 40;
constexpr size_t kLabelMax = 63;  // characters of a DNS label

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

bool is_file_name(const std::string& word) {
  return word.find_first_of("./") != std::string::npos &&
         std::ranges::all_of(word, [](unsigned char c) {
           return std::isalnum(c) != 0 || std::string_view("._/+-").find(c) != std::string::npos;
         });
}

// The word that says most: "train.py" of "python3 -u train.py", "solve" of "time ./solve".
const std::string& telling_word(const std::vector<std::string>& command) {
  static const std::set<std::string> kInterpreters = {
      "Rscript", "bash", "dash",   "julia",   "ksh",     "lua",  "node", "octave",
      "perl",    "php",  "python", "python2", "python3", "ruby", "sh",   "zsh"};
  static const std::set<std::string> kWrappers = {"nice", "nohup", "time"};
  for (size_t i = 0; i < command.size(); ++i) {
    const std::string name = command[i].substr(command[i].rfind('/') + 1);
    if (kWrappers.contains(name) && i + 1 < command.size() && !command[i + 1].starts_with('-'))
      continue;
    if (!kInterpreters.contains(name)) return command[i];
    const auto first =
        std::find_if(command.begin() + static_cast<std::ptrdiff_t>(i) + 1, command.end(),
                     [](const std::string& word) { return !word.starts_with('-'); });
    return first != command.end() && is_file_name(*first) ? *first : command[i];
  }
  return command.front();
}

// Removes what the coordinator has set, leaving the job as its owner wrote it.
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

// The apiVersion that documents of this kind must have; nothing: they cannot be used.
std::optional<std::string_view> version_of_kind(std::string_view kind) {
  if (kind == "Job" || kind == "CronJob") return "batch/v1";
  if (kind == "ConfigMap" || kind == "Namespace") return "v1";
  if (kind == "Queue") return "muster.dev/v1";
  if (kind == "PriorityClass") return "scheduling.k8s.io/v1";
  return std::nullopt;
}

// The kind whose list this is; empty: it is not one of ours.
std::string_view items_of(std::string_view kind) {
  if (!kind.ends_with("List")) return "";
  kind.remove_suffix(std::string_view("List").size());
  return version_of_kind(kind) ? kind : "";
}

// Why a document of this kind cannot be used, and what to do instead.
std::string other_kind(const std::string& kind, const std::string& version) {
  std::string why = "kind: is " + (kind.empty() ? "missing" : kind) +
                    (version.empty() || kind.empty() ? "" : " of " + version);
  if (kind == "Pod")
    return why +
           "; make it a Job: the pod's spec is spec.template.spec of the job, and "
           "restartPolicy is Never or OnFailure";
  if (const auto version = version_of_kind(kind))
    return why + ", must be of " + std::string(*version);
  why +=
      ", must be a Job or CronJob of batch/v1, a ConfigMap or Namespace of v1, a Queue of "
      "muster.dev/v1, or a PriorityClass of scheduling.k8s.io/v1";
  return why + did_you_mean(kind, {"Job", "CronJob", "ConfigMap", "Namespace", "Queue",
                                   "PriorityClass", "List"});
}

class ManifestReader {
 public:
  Manifests out;

  void refuse(std::string place, std::string why) {
    if (!out.error) out.error = Error{Errc::invalid, "", {}};
    out.error->violations.push_back(
        {std::move(place), Violation::Kind::invalid, "", std::move(why)});
  }

  void read(const std::string& text, const std::string& file) {
    std::vector<YamlDocument> documents = yaml_documents(text);
    if (documents.empty()) refuse(file, "no manifest found");
    for (YamlDocument& document : documents) {
      if (!document.problem.empty()) {
        refuse(file_place(file, document.place), document.problem);
        continue;
      }
      const Json object = read_json(document.json);
      const std::string kind = text_at(object, {"kind"});
      const Origin origin{file, std::make_shared<const YamlFields>(document)};
      if (kind == "List" || !items_of(kind).empty())
        add_items(object, kind, origin);
      else
        add(std::move(document.json), object, origin, "");
    }
  }

 private:
  struct Origin {
    const std::string& file;
    std::shared_ptr<const YamlFields> fields;
  };

  void add_items(const Json& list, const std::string& kind, const Origin& origin) {
    const Json& items = at(list, {"items"});
    if (!items.is_array() || items.empty())
      return refuse(file_place(origin.file, origin.fields->find("kind").place),
                    "kind: is " + kind + ", but there are no items");
    size_t number = 0;
    for (const Json& item : items) {
      Json object = item;  // items of a JobList lack apiVersion and kind
      if (kind != "List" && object.is_object())
        object.update({{"apiVersion", *version_of_kind(items_of(kind))}, {"kind", items_of(kind)}});
      add(dumped(object), object, origin, "items[" + std::to_string(number++) + "]");
    }
  }

  void add(std::string json, const Json& object, const Origin& origin, const std::string& within) {
    const std::string kind = text_at(object, {"kind"}), version = text_at(object, {"apiVersion"});
    Document document{std::move(json),
                      kind,
                      text_at(object, {"metadata", "name"}),
                      text_at(object, {"metadata", "namespace"}),
                      origin.file,
                      origin.fields,
                      within};
    if (!object.is_object() || version_of_kind(kind) != version) {
      const Error error = placed(
          invalid(object.is_object() ? other_kind(kind, version)
                                     : "is not an object with apiVersion, kind, metadata and spec"),
          document);
      return refuse(error.violations.front().path, error.violations.front().detail);
    }
    // Only a coordinator sets a uid. Without one, the manifest is sent as it was written.
    // A namespace that nobody created is printed without a uid.
    if (!text_at(object, {"metadata", "uid"}).empty() ||
        !text_at(object, {"status", "phase"}).empty())
      document.json = dumped(as_written(object));  // for other kinds too
    if (document.name.empty()) document.name = text_at(object, {"metadata", "generateName"});
    out.documents.push_back(std::move(document));
  }
};

// The manifests in a directory, sorted by name.
Result<std::vector<std::string>> files_in(const std::string& dir) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(dir, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string kind = entry->path().extension();
    if (kind == ".yaml" || kind == ".yml" || kind == ".json") files.push_back(entry->path());
  }
  if (error) return invalid("cannot read " + dir + ": " + error.message());
  if (files.empty()) return invalid(dir + " has no .yaml, .yml or .json files");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Manifests parse_manifests(const std::string& text, const std::string& shown_file) {
  ManifestReader reader;
  reader.read(text, shown_file);
  return std::move(reader.out);
}

Manifests read_manifests(const std::vector<std::string>& files) {
  ManifestReader reader;
  for (const std::string& file : files) {
    std::vector<std::string> paths{file};
    std::error_code ignored;
    if (file != "-" && std::filesystem::is_directory(file, ignored)) {
      auto found = files_in(file);
      if (!found) {
        reader.refuse("", found.error().message);
        continue;
      }
      paths = std::move(*found);
    }
    for (const std::string& path : paths) {
      auto text = read_file(path);
      if (text)
        reader.read(*text, shown_path(path));
      else if (path.starts_with("http://") || path.starts_with("https://"))
        reader.refuse(path, "is not a file; download it first: curl -sL URL | muster apply -f -");
      else
        reader.refuse("", text.error().message);
    }
  }
  return std::move(reader.out);
}

std::string name_from(const std::string& text) {
  return core::dns_label_errors(text).empty() ? text : base_name(text);
}

Status check_job_name(const std::string& name, int64_t completions) {
  // The host names of its pods end with an index, and are labels of DNS.
  const size_t most = kLabelMax - 1 - std::to_string(std::max<int64_t>(completions, 1) - 1).size();
  if (core::dns_label_errors(name).empty() && name.size() <= most) return Nothing{};
  const std::string better = name_from(name.substr(0, most));
  return invalid("--name: `" + name + "`: a job's name has at most " + std::to_string(most) +
                 " lower-case letters, digits and dashes, and no dash at either end; " +
                 (better == "job" ? "such as sweep-2" : "use " + better));
}

Json command_manifest(const CommandJob& job, const std::function<uint32_t(uint32_t)>& random) {
  std::string name = job.name;
  if (name.empty()) {
    static constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
    name = base_name(telling_word(job.command)) + "-";
    for (int i = 0; i < 5; ++i) name += kLetters[random(kLetters.size())];
  }
  Json words = job.words;
  if (job.words.empty())
    for (const std::string& word : job.command) words.push_back(unexpanded(word));
  // What the site does to a pod is not the command's failure, up to a point.
  const Json disrupted = {
      {"action", "Ignore"},
      {"onPodConditions", Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}})}};
  Json spec = {{"completionMode", "Indexed"},
               {"completions", job.completions},
               {"parallelism", job.parallelism},
               {"backoffLimitPerIndex", job.retries},
               {"podFailurePolicy", {{"rules", Json::array({disrupted})}}},
               {"template",
                {{"spec",
                  {{"restartPolicy", "Never"},
                   {"containers", Json::array({{{"name", "main"}, {"command", words}}})}}}}}};
  const Json metadata = {
      {"name", name},
      {"annotations",
       {{std::string(core::kStartFailureKey), "FailJob"},
        {std::string(core::kDisruptionsMaxKey), std::to_string(job.disruptions_max)},
        {std::string(core::kBackoffKey), "yield"},
        {std::string(core::kScaleDownKey), "finish"}}}};
  return with_surroundings({{"apiVersion", "batch/v1"},
                            {"kind", "Job"},
                            {"metadata", metadata},
                            {"spec", std::move(spec)}},
                           job.environment, job.dir);
}

Json with_surroundings(Json manifest, const Variables& environment, const std::string& dir,
                       const core::ProcessSettings& process) {
  core::StringMap annotations;
  core::write_process_settings(process, annotations);
  for (auto& [key, value] : annotations) manifest["metadata"]["annotations"][key] = value;

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
