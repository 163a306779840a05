// muster get: objects as a table, names, JSON or YAML; -w also shows changes.
//
// A broken watch continues from the last version it has seen; if that version is too old, get lists
// again.
#include "cli/verbs/show/get.hpp"

#include "base/printable.hpp"
#include "cli/verbs/show/allocations.hpp"
#include "cli/verbs/show/coordinators.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/fields/owner.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <unistd.h>

namespace muster::cli {
namespace {

// Retries of a broken watch, one every kPauseUs: long enough for the coordinator to restart.
constexpr int kTriesMax = 50;
constexpr useconds_t kPauseUs = 200'000;
constexpr size_t kCommandShown = 50;  // bytes

// The items of a list, each with its kind and version: those of a "JobList" lack them.
Json items_of(Json list) {
  const std::string version = text_at(list, {"apiVersion"});
  std::string kind = text_at(list, {"kind"});
  if (kind == "List" || !kind.ends_with("List")) return std::move(list["items"]);
  kind.resize(kind.size() - 4);
  Json items = std::move(list["items"]);
  for (Json& item : items) {
    item["apiVersion"] = version;
    item["kind"] = kind;
  }
  return items;
}

// A container's command, as far as it fits into a table.
std::string short_command(const Json& container) {
  std::string text = command_text(container);
  if (text.size() <= kCommandShown) return text;
  return std::string(utf8_prefix(text, kCommandShown)) + "...";
}

class Getter {
 public:
  Getter(const GetOptions& options, ApiClient& client)
      : options_(options),
        client_(client),
        table_(options.output == Output::wide, options.headers,
               options.all_namespaces && is_namespaced(options.kind)) {
    if (!options.more.empty()) table_.set_prefix(std::string(kind_name(options.kind)) + "/");
  }

  // All objects of the kind: a table, or a list.
  Result<Json> fetch() {
    std::string path = object_path(options_.kind, ns());
    if (const std::string q = query(); !q.empty()) path += "?" + q.substr(1);
    auto response = client_.get(path, accept());
    if (!response) return response.error();
    if (!response->ok()) return refusal(*response);
    if (options_.kind == Kind::job)
      if (Status refined = refine(response->json); !refined) return refined.error();
    return std::move(response->json);
  }

  int run() {
    if (!options_.watch) return options_.names.size() > 1 ? list_some() : list(nullptr);
    for (;;) {
      std::string version;
      if (const int code = list(&version); code != kDone) return code;
      if (const int code = watch(version); code != kDone) return code;
    }
  }

  bool as_table() const {
    return options_.output == Output::table || options_.output == Output::wide;
  }
  size_t count(const Json& answer) const {
    return at(answer, {as_table() ? "rows" : "items"}).size();
  }

  void print(const Json& answer) {
    if (as_table()) {
      std::cout << table_.lines(answer);
    } else if (options_.output == Output::name) {
      const Json& items = at(answer, {"items"});
      for (const Json& object : items.is_array() ? items : Json::array({answer})) {
        std::cout << kind_name(options_.kind) << "/" << text_at(object, {"metadata", "name"})
                  << "\n";
      }
    } else if (options_.output == Output::json) {
      std::cout << dumped(shown(answer), 4) << "\n";
    } else {
      if (printed_) std::cout << "---\n";
      std::cout << to_yaml(shown(answer));
    }
    printed_ = true;
    std::cout.flush();
  }

 private:
  const char* accept() const { return as_table() ? kTable : kJson; }
  // Whether more than the cells of a table is looked at: a list of all pods is six times shorter
  // without the objects.
  bool needs_objects() const {
    return !as_table() || options_.kind == Kind::job || options_.all_namespaces;
  }
  std::string ns() const { return options_.all_namespaces ? "" : options_.target.ns; }

  std::string query() const {
    std::string query;
    if (!options_.selector.empty()) query += "&labelSelector=" + url_encoded(options_.selector);
    if (options_.watch && !options_.names.empty()) {
      query += "&fieldSelector=" + url_encoded("metadata.name=" + options_.names.front());
    }
    return query;
  }

  // A list or one object. A watch needs a list, and its version.
  int list(std::string* version) {
    const bool one = version == nullptr && !options_.names.empty();
    std::string path = object_path(options_.kind, ns(), one ? options_.names.front() : "");
    std::string q = query();
    if (!one && !needs_objects()) q += "&includeObject=None";
    if (!q.empty()) path += "?" + q.substr(1);
    auto response = client_.get(path, accept());
    if (!response) return fail(response.error());
    if (!response->ok()) return fail(refusal(*response));
    Json& answer = response->json;
    if (version == nullptr && options_.kind == Kind::job && options_.names.empty())
      if (Status refined = refine(answer); !refined) return fail(refined.error());
    if (version != nullptr) *version = text_at(answer, {"metadata", "resourceVersion"});
    const bool empty = at(answer, {as_table() ? "rows" : "items"}).empty();
    if (version != nullptr && empty && !options_.names.empty()) {
      return fail(kNotFound, std::string(kind_name(options_.kind)) + " \"" +
                                 options_.names.front() + "\" not found");
    }
    if (as_table() && empty && version == nullptr) {
      std::cerr << "No " << kind_plural(options_.kind) << " found"
                << (ns().empty() || !is_namespaced(options_.kind) ? "" : " in namespace " + ns())
                << ".\n";
      return kDone;
    }
    print(answer);
    return kDone;
  }

  // Filters and orders a list of jobs, and adds what only `-o wide` shows.
  Status refine(Json& answer) {
    if (options_.output == Output::wide)
      if (Status added = add_commands(answer); !added) return added;
    Json& rows = answer[as_table() ? "rows" : "items"];
    if (!rows.is_array()) return Nothing{};
    struct Listed {
      const Json* job;
      JobStage stage;
      size_t row;
    };
    size_t state = 0;
    for (const Json& column : at(answer, {"columnDefinitions"})) {
      if (text_at(column, {"name"}) == "Status") break;
      ++state;
    }
    std::vector<Listed> listed;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Json& job = as_table() ? at(rows[i], {"object"}) : rows[i];
      const Json& cells = at(rows[i], {"cells"});
      const JobStage stage = !as_table() ? stage_of(job)
                             : state < cells.size() && cells[state].is_string()
                                 ? stage_of(cells[state].get_ref<const std::string&>())
                                 : JobStage::running;
      if (keeps(options_.filter, job, stage)) listed.push_back({&job, stage, i});
    }
    std::stable_sort(listed.begin(), listed.end(), [this](const Listed& a, const Listed& b) {
      return goes_first(options_.order, *a.job, a.stage, *b.job, b.stage);
    });
    Json kept = Json::array();
    for (const Listed& one : listed) kept.push_back(std::move(rows[one.row]));
    rows = std::move(kept);
    return Nothing{};
  }

  // The columns of a job that a table of the coordinator lacks.
  Status add_commands(Json& table) {
    if (!at(table, {"columnDefinitions"}).is_array()) return Nothing{};
    std::string path = object_path(options_.kind, ns());
    if (const std::string q = query(); !q.empty()) path += "?" + q.substr(1);
    auto list = object(client_, path);
    if (!list) return list.error();
    std::map<std::string, const Json*> jobs;
    for (const Json& job : at(*list, {"items"})) jobs[text_at(job, {"metadata", "uid"})] = &job;
    for (const char* name : {"User", "Command", "Directory"})
      table["columnDefinitions"].push_back({{"name", name}, {"type", "string"}, {"priority", 1}});
    const std::string owner(core::kOwnerKey);
    for (Json& row : table["rows"]) {
      const auto found = jobs.find(text_at(row, {"object", "metadata", "uid"}));
      const Json& job = found == jobs.end() ? at(row, {"none"}) : *found->second;
      const Json& containers = at(job, {"spec", "template", "spec", "containers"});
      const Json& main = containers.is_array() && !containers.empty() ? containers[0] : job;
      for (const std::string& text : {text_at(job, {"metadata", "annotations", owner.c_str()}),
                                      short_command(main), text_at(main, {"workingDir"})})
        row["cells"].push_back(text.empty() ? Json() : Json(text));
    }
    return Nothing{};
  }

  // Several names: shown like a list; a missing object is reported and the rest is shown.
  int list_some() {
    int code = kDone;
    Json items = Json::array();
    for (const std::string& name : options_.names) {
      auto response = client_.get(object_path(options_.kind, ns(), name), accept());
      if (!response) return fail(response.error());
      if (!response->ok()) {
        code = fail(refusal(*response));
      } else if (as_table()) {
        print(response->json);
      } else {
        items.push_back(std::move(response->json));
      }
    }
    if (!as_table()) print({{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}});
    return code;
  }

  // Returns kDone if the caller must list again.
  int watch(std::string version) {
    for (int tries = 0; tries < kTriesMax; ++tries) {
      bool too_old = false;
      const std::string path =
          object_path(options_.kind, ns()) +
          "?watch=true&allowWatchBookmarks=true&resourceVersion=" + url_encoded(version) + query();
      auto response = client_.lines(path, accept(), [&](std::string_view line) {
        const Json event = read_json(line);
        if (!event.is_object()) return true;  // truncated: the next watch sends it again
        const std::string type = text_at(event, {"type"});
        const Json& object = at(event, {"object"});
        if (type == "ERROR") {
          too_old = true;
          return false;
        }
        tries = 0;
        const Json& rows = at(object, {"rows"});
        const Json& shown =
            rows.is_array() && !rows.empty() ? at(rows.front(), {"object"}) : object;
        if (const std::string seen = text_at(shown, {"metadata", "resourceVersion"}); !seen.empty())
          version = seen;
        if (type != "BOOKMARK") print(object);
        return static_cast<bool>(std::cout);
      });
      if (too_old) return kDone;
      if (response && response->status == 410) return kDone;
      if (response && !response->ok() && response->status != 503) return fail(refusal(*response));
      if (!response && (response.error().code != Errc::unavailable || tries + 1 == kTriesMax))
        return fail(response.error());
      usleep(kPauseUs);
    }
    return fail(kUnreachable, "the coordinator at " + client_.address() + " is not serving");
  }

  // Like kubectl, prints a List whose items name their kind, even if all are of one kind, without
  // managedFields.
  static Json shown(Json answer) {
    auto strip = [](Json& object) {
      if (object.is_object() && object.contains("metadata") && object["metadata"].is_object())
        object["metadata"].erase("managedFields");
    };
    strip(answer);
    if (!answer.is_object() || !answer.contains("items")) return answer;
    for (Json& one : answer["items"]) strip(one);
    return {{"apiVersion", "v1"},
            {"kind", "List"},
            {"metadata", {{"resourceVersion", ""}}},
            {"items", items_of(std::move(answer))}};
  }

  const GetOptions& options_;
  ApiClient& client_;
  TablePrinter table_;
  bool printed_ = false;
};

// Objects of several kinds, one kind after the other; as JSON and YAML, they are one list.
int get_kinds(const GetOptions& options, ApiClient& client) {
  std::vector<Kind> kinds{options.kind};
  kinds.insert(kinds.end(), options.more.begin(), options.more.end());
  const bool listed = options.output == Output::json || options.output == Output::yaml;
  Json items = Json::array();
  bool any = false;
  for (const Kind kind : kinds) {
    GetOptions one = options;
    one.kind = kind;
    Getter getter(one, client);
    auto answer = getter.fetch();
    if (!answer) return fail(answer.error());
    if (getter.count(*answer) == 0) continue;
    if (!listed) {
      if (any && getter.as_table()) std::cout << "\n";
      getter.print(*answer);
    } else {
      for (Json& object : items_of(std::move(*answer))) items.push_back(std::move(object));
    }
    any = true;
  }
  if (listed)
    Getter(options, client)
        .print({{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}});
  else if (!any)
    std::cerr << "No objects found"
              << (options.all_namespaces ? "" : " in namespace " + options.target.ns) << ".\n";
  return kDone;
}

struct GetWords {
  GetOptions o;
  JobFilterWords filter;
  std::string order;
  std::vector<std::string> what;
  std::string index, task;
  bool no_headers = false;
};

constexpr const char* kOfJobs =
    "--running, --done, --since, --user and --sort select jobs: muster get jobs";
constexpr char kJoblog[] = "-o tsv is the joblog of one job: muster get attempts job/NAME -o tsv";

// Whether flags are given that only lists of jobs take; `failed`: --failed counts, too.
bool asks_for_jobs(const GetWords& w, bool failed) {
  const JobFilter& filter = w.filter.filter;
  return (failed && filter.failed) || filter.running || filter.done || !filter.user.empty() ||
         !w.filter.since.empty() || !w.order.empty();
}

// Reads "attempts job/J".
Judged read_attempts(const GetWords& w, Output output) {
  const GetOptions& get = w.o;
  AttemptsOptions o{.target = get.target,
                    .job = "",
                    .index = w.index,
                    .task = w.task,
                    .failed = w.filter.filter.failed,
                    .output = output,
                    .headers = !w.no_headers};
  if (w.what.size() != 2) return Usage{"attempts of which job? muster get attempts job/NAME"};
  if (auto wrong = read_job_name(w.what[1], o.job)) return *wrong;
  if (get.watch || get.all_namespaces || !get.selector.empty())
    return Usage{"attempts belong to one job and cannot be watched: omit -w, -A and -l"};
  if (asks_for_jobs(w, false)) return Usage{kOfJobs};
  return o;
}

// Of kinds that are lists of muster's own: their flags, and their form of output.
std::optional<Usage> check_plain(const GetWords& w, const std::string& kind, bool form_given,
                                 Output& output) {
  if (w.o.watch || !w.o.selector.empty())
    return Usage{kind + " have no labels and cannot be watched: omit -w and -l"};
  if (asks_for_jobs(w, true)) return Usage{kOfJobs};
  if (output == Output::tsv && form_given) return Usage{kJoblog};
  // The configuration may name a form that is only for attempts.
  if (output == Output::tsv) output = Output::table;
  return std::nullopt;
}

// Reads "coordinators [NAME...]", "coordinator/NAME...".
Judged read_coordinators(const GetWords& w, Output output, bool form_given) {
  const GetOptions& get = w.o;
  CoordinatorsOptions o{.target = get.target, .names = {}, .output = output};
  o.headers = !w.no_headers;
  const bool slashes = w.what.front().find('/') != std::string::npos;
  for (size_t i = slashes ? 0 : 1; i < w.what.size(); ++i) {
    const std::string name = coordinator_name(w.what[i]);
    if (name.empty() || slashes != (name != w.what[i]))
      return Usage{"`" + w.what[i] + "`: must be " +
                   (slashes ? "coordinator/NAME like the first" : "the name of a coordinator")};
    o.names.push_back(name);
  }
  return judged(check_plain(w, "coordinators", form_given, o.output), o);
}

// Reads "allocations [POOL...]".
Judged read_allocations(const GetWords& w, Output output, bool form_given) {
  const GetOptions& get = w.o;
  AllocationsOptions o{.target = get.target,
                       .pools = {w.what.begin() + 1, w.what.end()},
                       .all_namespaces = get.all_namespaces,
                       .output = output,
                       .headers = !w.no_headers};
  return judged(check_plain(w, "allocations", form_given, o.output), o);
}

// "pods", "jobs,pods" or "all", which is jobs and pods, into `o`.
std::optional<Usage> read_kinds(const std::string& text, GetOptions& o) {
  std::vector<Kind> kinds;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(',', from), text.size());
    const std::string word = text.substr(from, end - from);
    from = end + 1;
    const auto kind = parse_kind(word);
    if (word != "all" && !kind) return unknown_kind(word);
    for (const Kind one : kind ? std::vector{*kind} : std::vector{Kind::job, Kind::pod})
      if (std::find(kinds.begin(), kinds.end(), one) == kinds.end()) kinds.push_back(one);
  }
  o.kind = kinds.front();
  o.more.assign(kinds.begin() + 1, kinds.end());
  return std::nullopt;
}

Judged read_get(GetWords& w, Output output, bool form_given) {
  GetOptions& o = w.o;
  const std::string first = w.what.front();
  if (auto wrong = read_set("--index", w.index)) return *wrong;
  if (auto wrong = read_set("--task", w.task)) return *wrong;
  if (first == "attempts" || first == "attempt") return read_attempts(w, output);
  if (!w.index.empty() || !w.task.empty())
    return Usage{"--index and --task apply to attempts only: muster get attempts job/NAME"};
  if (is_coordinator_kind(first)) return read_coordinators(w, output, form_given);
  if (is_allocation_kind(first)) return read_allocations(w, output, form_given);
  const size_t slash = first.find('/');
  if (auto wrong = read_kinds(first.substr(0, slash), o)) return *wrong;
  const std::optional<Kind> kind = o.kind;
  if (asks_for_jobs(w, true)) {
    if (o.kind != Kind::job || !o.more.empty()) return Usage{kOfJobs};
    if (o.watch || w.what.size() > 1 || slash != std::string::npos)
      return Usage{
          "--failed, --running, --done, --since, --user and --sort are for a list of all "
          "jobs: omit names and -w"};
  }
  if (auto wrong = read_filter(w.filter, wall_now())) return *wrong;
  o.filter = w.filter.filter;
  if (w.order == "name") o.order = JobOrder::name;
  if (w.order == "age") o.order = JobOrder::age;
  if (!o.more.empty() && (slash != std::string::npos || w.what.size() > 1 || o.watch))
    return Usage{"`" + first.substr(0, slash) + "`: omit names and -w to list several kinds"};
  o.names.assign(w.what.begin() + 1, w.what.end());
  if (slash != std::string::npos) {
    for (const std::string& word : w.what) {
      const size_t at = word.find('/');
      if (at == std::string::npos || parse_kind(word.substr(0, at)) != kind ||
          at + 1 == word.size()) {
        return Usage{"`" + word + "`: must be " + first.substr(0, slash) + "/NAME like the first"};
      }
    }
    o.names.clear();
    for (const std::string& word : w.what) o.names.push_back(word.substr(word.find('/') + 1));
  }
  if (o.watch && o.names.size() > 1)
    return Usage{"-w watches all objects or one: omit the names, or give one"};
  if (o.all_namespaces && !o.names.empty()) return Usage{"-A lists all objects: omit the name"};
  if (!o.selector.empty() && !o.names.empty())
    return Usage{"-l selects from all objects: omit the name"};
  if (output == Output::tsv && form_given) return Usage{kJoblog};
  // The configuration may name a form that is only for attempts.
  o.output = output == Output::tsv ? Output::table : output;
  o.headers = !w.no_headers;
  return o;
}

}  // namespace

int execute(const GetOptions& options) {
  const auto client = connect(options.target);
  return options.more.empty() ? Getter(options, *client).run() : get_kinds(options, *client);
}

Verb get_verb() {
  auto w = std::make_shared<GetWords>();
  JobFilter& filter = w->filter.filter;
  const Key& form = *find_key(Section::client, "output");
  FlagRow output = key_row(form, "-o,--output");
  std::vector<std::string> forms = form.words;
  std::erase(forms, "tsv");
  output.help = "Output format (default " + std::string(form.fallback) +
                "): " + listed(forms, " or ") + "; for attempts also tsv, a joblog";
  return {
      .title = {"Jobs", "get",
                "List jobs, pods, nodes, events, coordinators, allocations, or the attempts of a "
                "job"},
      .rows = {{"what", "KIND [NAME...]",
                "Kind of object (" + listed(kind_words()) +
                    "; all: jobs and pods), and names; several kinds as jobs,pods; coordinators; "
                    "allocations [POOL...]; or attempts job/NAME",
                &w->what, kAnything, kRequired},
               output,
               {"-l,--selector", "SELECTOR", "Label selector, such as a=b,c!=d", &w->o.selector},
               {"-w,--watch", "", "Watch for changes after listing", &w->o.watch},
               {"-A,--all-namespaces", "", "List objects of all namespaces", &w->o.all_namespaces},
               {"--no-headers", "", "Omit the header line", &w->no_headers},
               {"--index", "SET", "Show only attempts of these indexes, such as 3,7-9", &w->index},
               {"--task", "SET", kTaskHelp, &w->task, kAnything, 0, {"--index"}},
               {"--failed", "", "Jobs that have failed, or failed attempts", &filter.failed},
               {"--running", "", "Jobs that have not finished", &filter.running},
               {"--done", "", "Jobs that have finished, complete or failed", &filter.done},
               {"--since", "WHEN", "Jobs created since then: 7d, 12h, 18:00 or 2026-12-01T18:00",
                &w->filter.since},
               {"--user", "USER", "Jobs of this user", &filter.user},
               {"--sort", "ORDER",
                "Order of jobs (default: those that have not finished first, then by age):",
                &w->order, one_of({"age", "name"})}},
      .asks = {&w->o.target},
      .footer =
          "Examples:\n  muster get jobs\n"
          "  muster get pods -l batch.kubernetes.io/job-name=sweep -o wide\n  muster get all -A\n"
          "  muster get job sweep -w\n  muster get events -w\n"
          "  muster get attempts job/sweep --index 3,7-9 --failed\n"
          "  muster get attempts job/sweep -o tsv > joblog\n"
          "  muster get jobs --failed --since 7d\n"
          "The columns of -o tsv are those of GNU parallel's --joblog, then Index, Attempt, "
          "Counted and Pod. Seq is the index plus 1.",
      .finish = [w](const Given& given) -> Judged {
        return read_get(*w, read_output(given.settings.text("output")),
                        given.flags.contains("--output"));
      }};
}

}  // namespace muster::cli
