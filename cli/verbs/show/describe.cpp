// muster describe: one object on one screen, with what matters when something failed.
#include "cli/verbs/show/describe.hpp"

#include "base/text/nearest.hpp"
#include "base/text/time_text.hpp"
#include "cli/verbs/near_miss.hpp"
#include "cli/verbs/reservations.hpp"
#include "cli/verbs/show/coordinators.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/attempts.hpp"
#include "client/news/failures.hpp"
#include "client/news/progress.hpp"
#include "client/news/usage.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/local_time.hpp"
#include "client/terminal/policy_text.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"
#include "core/node/cpus.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/values/duration.hpp"

#include <algorithm>
#include <iostream>
#include <set>

namespace muster::cli {
namespace {

constexpr size_t kCausesMax = 10, kLastLinesMax = 5, kEventsMax = 20, kPodsMax = 50;
constexpr size_t kSetMax = 60;       // characters of an index set
constexpr size_t kCommandMax = 200;  // characters of a job's command

using Rows = std::vector<std::vector<std::string>>;

std::string ago(const std::string& instant) {
  const auto then = parse_time(instant);
  return then ? short_span(wall_now() - *then) + " ago" : "";
}

std::string labels_text(const Json& map) {
  std::string out;
  for (const auto& [key, value] : map.items()) {
    out += (out.empty() ? "" : ",") + key + "=" +
           (value.is_string() ? value.get<std::string>() : dumped(value));
  }
  return out.empty() ? "<none>" : out;
}

std::string none_if_empty(const std::string& text) {
  return text.empty() ? "<none>" : text;
}

void print_conditions(const Json& object) {
  const Json& conditions = at(object, {"status", "conditions"});
  if (!conditions.is_array() || conditions.empty()) return;
  Rows rows = {{"TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"}};
  for (const Json& c : conditions) {
    rows.push_back({text_at(c, {"type"}), text_at(c, {"status"}),
                    none_if_empty(ago(text_at(c, {"lastTransitionTime"}))),
                    none_if_empty(text_at(c, {"reason"})), localized(text_at(c, {"message"}))});
  }
  std::cout << "Conditions:\n" << aligned(rows, "  ");
}

void print_events(ApiClient& client, const std::string& ns, const std::string& kind,
                  const std::string& name) {
  auto list = object(
      client, object_path(Kind::event, ns) + "?fieldSelector=" +
                  url_encoded("involvedObject.kind=" + kind + ",involvedObject.name=" + name));
  if (!list) return;
  const Json& items = at(*list, {"items"});
  if (!items.is_array() || items.empty()) {
    std::cout << "Events: <none>\n";
    return;
  }
  Rows rows = {{"AGE", "TYPE", "REASON", "MESSAGE"}};
  const size_t skipped = items.size() > kEventsMax ? items.size() - kEventsMax : 0;
  for (size_t i = skipped; i < items.size(); ++i) {
    rows.push_back({none_if_empty(ago(text_at(items[i], {"lastTimestamp"}))),
                    text_at(items[i], {"type"}), text_at(items[i], {"reason"}),
                    localized(text_at(items[i], {"message"}))});
  }
  std::cout << "Events"
            << (skipped > 0 ? " (the last " + std::to_string(kEventsMax) + " of " +
                                  std::to_string(items.size()) + ")"
                            : "")
            << ":\n"
            << aligned(rows, "  ");
}

// `why`: the coordinator's explanation, or null.
std::string job_state(const Json& job, const Json& why) {
  for (const char* type : {"muster.dev/Damaged", "Failed", "Complete", "Suspended", "FailureTarget",
                           "SuccessCriteriaMet", "muster.dev/Held"}) {
    const Json& c = condition_of(job, type);
    if (c.is_null()) continue;
    const std::string reason = text_at(c, {"reason"}), message = text_at(c, {"message"});
    return std::string(type) + (reason.empty() ? "" : ": " + reason) +
           (message.empty() ? "" : ": " + message);
  }
  if (std::string state = text_at(why, {"state"}); !state.empty()) return state;
  return number_at(job, {"status", "ready"}) > 0 ? "Running" : "Pending";
}

// What it waits for, or why it ended, line by line.
void add_reasons(const Json& why, const std::optional<Tasks>& tasks, Rows& rows) {
  if (const std::string summary = text_at(why, {"summary"}); !summary.empty())
    rows.push_back({"Why:", localized(summary)});
  for (const Json& line : at(why, {"details"}))
    if (line.is_string())
      rows.push_back({"", localized(with_tasks(line.get<std::string>(), tasks))});
}

// The command of each container, and what it requests from a node.
void add_containers(const Json& spec, Rows& rows) {
  for (const Json& container : at(spec, {"containers"})) {
    const std::string command = command_text(container);
    rows.push_back({"Command:", none_if_empty(one_line(cut(command, kCommandMax)))});
    if (const Json& wanted = at(container, {"resources", "requests"}); wanted.is_object())
      rows.push_back({"Requests:", labels_text(wanted)});
  }
}

std::string number_or(const Json& json, std::initializer_list<const char*> keys,
                      const char* otherwise) {
  const Json& value = at(json, keys);
  return value.is_number() ? dumped(value) : otherwise;
}

// "Completed:", or "Completed tasks:" of an array.
std::string head_of(const std::string& name, const std::optional<Tasks>& tasks) {
  return name + (tasks ? " tasks:" : ":");
}

// A set of indexes of an array as the tasks that people know, else as it is.
std::string known_set(const std::string& set, const std::optional<Tasks>& tasks) {
  return tasks ? tasks->numbers(index_set(set)) : set;
}

// Running, pending and backoff indexes. Adds nothing if the coordinator serves no such map.
void add_index_map(ApiClient& client, const std::string& ns, const std::string& job,
                   const std::optional<Tasks>& tasks, Rows& rows) {
  auto map = object(client, "/apis/muster.dev/v1/namespaces/" + url_encoded(ns) + "/jobs/" +
                                url_encoded(job) + "/indexes");
  if (!map) return;
  const std::pair<const char*, const char*> sets[] = {
      {"Running", "running"}, {"Pending", "pending"}, {"In backoff", "backoff"}};
  for (const auto& [name, key] : sets) {
    if (const std::string set = text_at(*map, {key}); !set.empty())
      rows.push_back({head_of(name, tasks), cut_set(known_set(set, tasks), kSetMax)});
  }
}

// What has become of the indexes of an Indexed job.
void add_indexes(ApiClient& client, const std::string& ns, const Json& job, const std::string& name,
                 const std::optional<Tasks>& tasks, Rows& rows) {
  rows.push_back({head_of("Completed", tasks),
                  none_if_empty(known_set(text_at(job, {"status", "completedIndexes"}), tasks))});
  if (at(job, {"status", "failedIndexes"}).is_string())
    rows.push_back(
        {head_of("Failed", tasks), none_if_empty(known_set(failed_indexes(job).text(), tasks))});
  if (const core::IndexSet cancelled = cancelled_indexes(job); !cancelled.empty())
    rows.push_back({head_of("Cancelled", tasks), known_set(cancelled.text(), tasks)});
  add_index_map(client, ns, name, tasks, rows);
}

// What its ended attempts have used. Adds nothing if that is not known.
void add_usage(ApiClient& client, const std::string& ns, const Json& job, const std::string& name,
               Rows& rows) {
  const auto usage = object(client, own_path(ns, name, "usage"));
  if (!usage || number_at(*usage, {"peakMemoryBytes"}) <= 0) return;
  const Requested requested = requested_by(job);
  const Json& ran = at(*usage, {"ranSeconds"});
  rows.push_back(
      {"CPU time:", cpu_parts_text(*usage, ran.is_number() ? ran.get<double>() : 0, requested)});
  rows.push_back({"Peak memory:", memory_text(*usage, requested)});
}

// Who is told of its end, when, and whether that was done.
void add_notices(const Json& job, Rows& rows) {
  const Json& notes = at(job, {"metadata", "annotations"});
  const std::string done = text_at(notes, {core::kNotifiedKey.data()});
  const bool failures = text_at(notes, {core::kNotifyOnKey.data()}) == "fail";
  const JobEnd end = end_of(job);
  std::string state;
  if (!done.empty())
    state = ": done " + done + " (" + ago(done) + ")";
  else if (failures && end == JobEnd::complete)
    state = ": not needed, as it has not failed";
  else if (end != JobEnd::none)
    state = ": not done yet";
  for (const auto& [head, key] :
       {std::pair("Mail:", core::kMailKey), std::pair("Notify:", core::kNotifyKey)})
    if (const std::string what = text_at(notes, {key.data()}); !what.empty())
      rows.push_back({head, one_line(cut(what, kCommandMax)) +
                                (failures ? ", if it fails" : ", at its end") + state});
}

int describe_job(ApiClient& client, const DescribeOptions& options) {
  const std::string& ns = options.target.ns;
  auto found = object(client, object_path(Kind::job, ns, options.name));
  if (!found)
    return fail(with_near_miss(client, ns, Kind::job, options.name, found.error(), Parts::none));
  const Json& job = *found;
  auto explained = object(client, own_path(ns, options.name, "why"));
  const Json why = explained ? std::move(*explained) : Json();
  const bool indexed = is_indexed(job);
  const auto tasks = indexed ? tasks_of(job) : std::nullopt;
  const std::string started = text_at(job, {"status", "startTime"}),
                    finished = text_at(job, {"status", "completionTime"});
  Rows rows = {{"Name:", options.name},
               {"Namespace:", ns},
               {"Labels:", labels_text(at(job, {"metadata", "labels"}))},
               {"State:", job_state(job, why)}};
  add_reasons(why, tasks, rows);
  if (const std::string queue = text_at(why, {"queue"}); !queue.empty())
    rows.push_back({"Queue:", queue});
  add_containers(at(job, {"spec", "template", "spec"}), rows);
  rows.push_back({"Completions:", number_or(job, {"spec", "completions"}, "<none>") +
                                      (indexed ? " (Indexed)" : " (NonIndexed)")});
  rows.push_back({"Parallelism:", number_or(job, {"spec", "parallelism"}, "1")});
  const Json& notes = at(job, {"metadata", "annotations"});
  if (const std::string root = text_at(notes, {"muster.dev/retry-of"}); !root.empty())
    rows.push_back({"Round:", text_at(notes, {"muster.dev/round"}) + " of job/" + root});
  if (const std::string some = text_at(notes, {"muster.dev/indexes"}); !some.empty())
    rows.push_back({tasks ? "Tasks:" : "Indexes:", known_set(some, tasks) + " only"});
  for (auto& [name, text] : policy_rows(at(job, {"spec"}))) rows.push_back({name, text});
  for (const auto& [key, head] : {std::pair(core::kRetryMemoryKey, "Out of memory:"),
                                  std::pair(core::kRetryTimeKey, "Out of time:")})
    if (const std::string more = text_at(notes, {key.data()}); !more.empty())
      rows.push_back({head, "the next attempt has more: " + more});
  add_notices(job, rows);
  if (!started.empty()) rows.push_back({"Started:", started + " (" + ago(started) + ")"});
  if (!finished.empty()) {
    const auto from = parse_time(started), to = parse_time(finished);
    rows.push_back(
        {"Finished:", finished + (from && to ? " (took " + short_span(*to - *from) + ")" : "")});
  }
  rows.push_back(
      {"Pods:", std::to_string(number_at(job, {"status", "active"})) + " active (" +
                    std::to_string(number_at(job, {"status", "ready"})) + " running), " +
                    std::to_string(number_at(job, {"status", "terminating"})) + " terminating, " +
                    std::to_string(number_at(job, {"status", "succeeded"})) + " succeeded, " +
                    std::to_string(number_at(job, {"status", "failed"})) + " failed"});
  add_usage(client, ns, job, options.name, rows);
  if (end_of(job) == JobEnd::none) {
    const Standing standing = standing_of(job);
    const auto from = parse_time(started);
    const std::string pace =
        from ? pace_text(standing.succeeded, standing.completions.value_or(0) - standing.settled(),
                         wall_now() - *from)
             : "";
    if (!pace.empty()) rows.push_back({"Pace:", pace});
  }
  if (indexed) add_indexes(client, ns, job, options.name, tasks, rows);
  std::cout << aligned(rows, "");
  print_conditions(job);
  auto failures = failures_of(client, ns, job, kCausesMax, kLastLinesMax);
  if (!failures) return fail(failures.error());
  if (failures->all > 0)
    std::cout << "Failures:\n"
              << failures_text(*failures, "  ") << "  " << more_text(*failures, options.name, ns)
              << "\n";
  print_events(client, ns, "Job", options.name);
  std::cout.flush();
  return kDone;
}

// The memory limit and the time limit of a pod.
void add_limits(const Json& spec, Rows& rows) {
  std::string text;
  const Json& containers = at(spec, {"containers"});
  for (const Json& container : containers.is_array() ? containers : Json::array())
    if (const std::string memory = text_at(container, {"resources", "limits", "memory"});
        !memory.empty())
      text += (text.empty() ? "memory " : ", ") + memory;
  if (const int64_t time_s = number_at(spec, {"activeDeadlineSeconds"}); time_s > 0)
    text += (text.empty() ? "time " : ", time ") + core::duration_text(time_s * 1000);
  if (!text.empty()) rows.push_back({"Limits:", text});
}

std::string cpus_of(const Json& pod) {
  return text_at(pod, {"metadata", "annotations", "muster.dev/cpus"});
}

core::node::CpuList cpus_of_all(const Json& pods) {
  std::set<uint32_t> all;
  for (const Json& pod : pods)
    if (const auto cpus = core::node::parse_cpu_list(cpus_of(pod)))
      all.insert(cpus->begin(), cpus->end());
  return {all.begin(), all.end()};
}

// The end of a pod as the job's history has it; null: it is not over, or not in it.
Json ended_attempt(ApiClient& client, const std::string& ns, const std::string& job,
                   const Json& pod) {
  const auto index = index_of(pod);
  const std::string uid = text_at(pod, {"metadata", "uid"});
  Json found;
  if (job.empty() || text_at(pod, {"metadata", "annotations", "muster.dev/cpu-seconds"}).empty())
    return found;
  // What cannot be read is left out.
  Status read = each_attempt(client, ns, job, index ? "index=" + std::to_string(*index) : "",
                             [&](const Json& one) {
                               if (text_at(one, {"podUID"}) == uid) found = one;
                             });
  return read ? found : Json();
}

// The task or index and the attempt of a pod.
void add_number(ApiClient& client, const std::string& ns, const std::string& job, const Json& pod,
                Rows& rows) {
  const auto index = index_of(pod);
  if (!index) return;
  const auto attempt = attempt_of(pod);
  const auto of = object(client, object_path(Kind::job, ns, job));
  const auto tasks = of ? tasks_of(*of) : std::nullopt;
  std::string text = std::to_string(known_number(tasks, *index));
  if (tasks) text += " (index " + std::to_string(*index) + ")";
  if (attempt) text += ", attempt " + std::to_string(*attempt);
  rows.push_back({tasks ? "Task:" : "Index:", text});
}

// When it started and ended, and what it used.
void add_use(ApiClient& client, const std::string& ns, const std::string& job, const Json& pod,
             Rows& rows) {
  const Json& notes = at(pod, {"metadata", "annotations"});
  const Json attempt = ended_attempt(client, ns, job, pod);
  if (const Json& usage = at(attempt, {"usage"}); usage.is_object())
    rows.push_back({"CPU time:", cpu_parts_text(usage, 0, {})});
  else if (const std::string cpu = text_at(notes, {"muster.dev/cpu-seconds"}); !cpu.empty())
    rows.push_back({"CPU time:", cpu + "s"});
  if (const std::string peak = text_at(notes, {"muster.dev/peak-memory-bytes"}); !peak.empty())
    rows.push_back({"Peak memory:", memory_text({{"peakMemoryBytes", std::stod(peak)}}, {})});
  const std::string started = text_at(pod, {"status", "startTime"});
  const auto from = parse_time(text_at(pod, {"metadata", "creationTimestamp"}));
  if (const auto to = parse_time(started); from && to)
    rows.push_back({"Waited:", attempt.is_object() ? waited(attempt)
                                                   : short_span(std::max<Millis>(0, *to - *from))});
  if (!started.empty()) rows.push_back({"Started:", started + " (" + ago(started) + ")"});
  if (const std::string ended = failure_of(pod).ended; !ended.empty())
    rows.push_back({"Ended:", ended + " (" + ago(ended) + ")"});
}

int describe_pod(ApiClient& client, const DescribeOptions& options) {
  const std::string& ns = options.target.ns;
  auto found = object(client, object_path(Kind::pod, ns, options.name));
  if (!found)
    return fail(with_near_miss(client, ns, Kind::pod, options.name, found.error(), Parts::none));
  const Json& pod = *found;
  const Json& owners = at(pod, {"metadata", "ownerReferences"});
  const std::string job =
      owners.is_array() && !owners.empty() ? text_at(owners.front(), {"name"}) : "";
  const Json& containers = at(pod, {"spec", "containers"});
  Rows rows = {{"Name:", options.name},
               {"Namespace:", ns},
               {"Job:", none_if_empty(job)},
               {"Node:", none_if_empty(text_at(pod, {"spec", "nodeName"}))}};
  add_number(client, ns, job, pod, rows);
  const std::string phase = text_at(pod, {"status", "phase"});
  rows.push_back({"Phase:", phase + (phase == "Failed" ? ": " + cause_of(pod) : "")});
  if (const std::string runs = runs_of(pod); !runs.empty())
    rows.push_back({"Restarted after:", runs});
  for (const Json& container : containers.is_array() ? containers : Json::array()) {
    rows.push_back({"Command:", command_text(container)});
  }
  add_limits(at(pod, {"spec"}), rows);
  const Json& notes = at(pod, {"metadata", "annotations"});
  if (const std::string pid = text_at(notes, {"muster.dev/pid"}); !pid.empty())
    rows.push_back({"Pid:", pid});
  if (const std::string cpus = cpus_of(pod); !cpus.empty())
    rows.push_back({"CPUs of its own:", cpus});
  add_use(client, ns, job, pod, rows);
  std::cout << aligned(rows, "");
  print_conditions(pod);
  const auto words = last_words(client, ns, options.name, kLastLinesMax);
  if (!words.empty()) std::cout << "Last lines (all: muster logs " << options.name << "):\n";
  for (const std::string& line : words) std::cout << "  | " << line << "\n";
  std::cout.flush();
  return kDone;
}

// "agent 0.1.0, keeper 0.1.0"
std::string node_versions(const Json& node) {
  const auto said = [&node](const char* member) {
    return none_if_empty(text_at(node, {"status", "nodeInfo", member}));
  };
  std::string keeper = said("containerRuntimeVersion");
  if (keeper.starts_with("muster://")) keeper = none_if_empty(keeper.substr(9));
  return "agent " + said("kubeletVersion") + ", keeper " + keeper;
}

// Its taints, and who cordoned and tainted it, when and why, line by line.
void add_taints(const Json& node, Rows& rows) {
  std::string taints;
  for (const Json& taint : at(node, {"spec", "taints"})) {
    const std::string value = text_at(taint, {"value"});
    taints += (taints.empty() ? "" : ",") + text_at(taint, {"key"}) +
              (value.empty() ? "" : "=" + value) + ":" + text_at(taint, {"effect"});
  }
  rows.push_back({"Taints:", none_if_empty(taints)});
  const Json reasons =
      Json::parse(text_at(node, {"metadata", "annotations", "muster.dev/reasons"}), nullptr, false);
  if (!reasons.is_array()) return;
  const char* head = "Reasons:";
  for (const Json& one : reasons) {
    const std::string why = text_at(one, {"reason"});
    rows.push_back({head, text_at(one, {"what"}) + " by " + text_at(one, {"by"}) + ", " +
                              text_at(one, {"at"}) + (why.empty() ? "" : ": " + why)});
    head = "";
  }
}

// When it ends, and for what it is reserved, line by line.
void add_ends(const Json& node, Rows& rows) {
  const std::string until = text_at(node, {"metadata", "annotations", "muster.dev/until"});
  if (const auto at = parse_time(until))
    rows.push_back(
        {"Ends:",
         until + (*at > wall_now() ? " (in " + short_span(*at - wall_now()) + ")" : " (now)")});
  const char* head = "Reserved:";
  for (const core::Window& window : windows_on(node)) {
    if (window.until_ms <= wall_now()) continue;
    rows.push_back(
        {head, window.name + " from " + time_text(window.from_ms) + " until " +
                   time_text(window.until_ms) +
                   (window.maintenance() ? " for maintenance" : " for " + users_text(window)) +
                   (window.by.empty() ? "" : ", by " + window.by) +
                   (window.reason.empty() ? "" : ": " + window.reason)});
    head = "";
  }
}

int describe_node(ApiClient& client, const DescribeOptions& options) {
  auto found = object(client, object_path(Kind::node, "", options.name));
  if (!found) return fail(found.error());
  const Json& node = *found;
  const Json& unschedulable = at(node, {"spec", "unschedulable"});
  Rows rows = {{"Name:", options.name},
               {"Labels:", labels_text(at(node, {"metadata", "labels"}))},
               {"Schedulable:",
                unschedulable.is_boolean() && unschedulable.get<bool>() ? "no (cordoned)" : "yes"},
               {"Capacity:", labels_text(at(node, {"status", "capacity"}))},
               {"Boot id:", none_if_empty(text_at(node, {"status", "nodeInfo", "bootID"}))},
               {"Versions:", node_versions(node)}};
  add_taints(node, rows);
  add_ends(node, rows);
  std::cout << aligned(rows, "");
  print_conditions(node);
  auto list =
      object(client, object_path(Kind::pod, "") + "?fieldSelector=" +
                         url_encoded("spec.nodeName=" + options.name + ",status.phase=Running"));
  if (!list) return fail(list.error());
  const Json& items = at(*list, {"items"});
  const size_t count = items.is_array() ? items.size() : 0;
  const core::node::CpuList bound = cpus_of_all(items);
  std::cout << "Running pods: " << count;
  if (!bound.empty())
    std::cout << "; CPUs of their own: " << bound.size() << " (" << core::node::cpu_list_text(bound)
              << ")";
  std::cout << "\n";
  Rows pods = {{"NAMESPACE", "NAME", "STARTED"}};
  if (!bound.empty()) pods[0].push_back("CPUS");
  for (size_t i = 0; i < std::min(count, kPodsMax); ++i) {
    pods.push_back({text_at(items[i], {"metadata", "namespace"}),
                    text_at(items[i], {"metadata", "name"}),
                    none_if_empty(ago(text_at(items[i], {"status", "startTime"})))});
    if (!bound.empty()) pods.back().push_back(none_if_empty(cpus_of(items[i])));
  }
  if (count > 0) std::cout << aligned(pods, "  ");
  if (count > kPodsMax) std::cout << "  ... and " << count - kPodsMax << " more\n";
  print_events(client, "default", "Node", options.name);
  std::cout.flush();
  return kDone;
}

// Describes a name given without a kind.
int describe_any(ApiClient& client, const DescribeOptions& options) {
  for (const Kind kind : {Kind::job, Kind::pod, Kind::node}) {
    auto found = object(client, object_path(kind, options.target.ns, options.name));
    if (!found && found.error().code == Errc::not_found) continue;
    if (!found) return fail(found.error());
    return kind == Kind::job   ? describe_job(client, options)
           : kind == Kind::pod ? describe_pod(client, options)
                               : describe_node(client, options);
  }
  const Error missing{Errc::not_found,
                      "no job, pod or node \"" + options.name + "\" found in namespace " +
                          options.target.ns + "\n  see: muster get all -A",
                      {}};
  return fail(
      with_near_miss(client, options.target.ns, Kind::job, options.name, missing, Parts::none));
}

int describe(ApiClient& client, const DescribeOptions& options) {
  if (options.coordinator) return describe_coordinator(client, options.name);
  if (!options.kind) return describe_any(client, options);
  switch (*options.kind) {
    case Kind::job:
      return describe_job(client, options);
    case Kind::pod:
      return describe_pod(client, options);
    case Kind::node:
      return describe_node(client, options);
    case Kind::event:
    case Kind::config_map:
    case Kind::ns:
    case Kind::cron_job:
    case Kind::queue:
    case Kind::priority_class:
      break;
  }
  return fail(kUsage, "describe: job, pod, node or coordinator");
}

Judged read_described(const std::vector<std::string>& what, DescribeOptions o) {
  std::vector<std::string> words = what;
  if (words.size() == 1 && words.front().find('/') != std::string::npos) {
    const size_t slash = words.front().find('/');
    words = {words.front().substr(0, slash), words.front().substr(slash + 1)};
  }
  const auto kind = parse_kind(words.front());
  o.coordinator = words.size() > 1 && is_coordinator_kind(words.front());
  if (!kind && words.size() == 1) {
    o.name = words.front();
    return o;
  }
  if (kind != Kind::job && kind != Kind::pod && kind != Kind::node && !o.coordinator) {
    return Usage{"`" + words.front() + "`: must be job, pod, node or coordinator" +
                 did_you_mean(words.front(), {"job", "pod", "node", "coordinator"})};
  }
  if (words.size() != 2 || words.back().empty())
    return Usage{"needs a kind and one name: muster describe job NAME"};
  o.kind = kind;
  o.name = words.back();
  return o;
}

}  // namespace

int execute(const DescribeOptions& options) {
  const auto client = connect(options.target);
  const int code = describe(*client, options);
  return code == kDone && client->met_foreign() ? fail(*client->met_foreign()) : code;
}

Verb describe_verb() {
  auto w = std::make_shared<Raw<DescribeOptions, std::vector<std::string>>>();
  return {.title = {"Jobs", "describe",
                    "Show details of a job, pod, node or coordinator, with its latest failures"},
          .rows = {{"what", "[KIND] NAME",
                    "Kind of object (job, pod, node or coordinator), and its name; a name alone is "
                    "a job's, or "
                    "else a pod's or a node's",
                    &w->what, kAnything, kRequired}},
          .asks = {&w->o.target},
          .footer =
              "Examples:\n  muster describe job sweep\n  muster describe job/sweep\n"
              "  muster describe node node03\n  muster describe sweep\n"
              "  muster describe coordinator head2:7119",
          .finish = [w](const Given&) -> Judged { return read_described(w->what, w->o); }};
}

}  // namespace muster::cli
