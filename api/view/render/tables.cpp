#include "api/view/render/tables.hpp"

#include "api/view/model/event_text.hpp"
#include "api/view/query/pod_configs.hpp"
#include "base/text/time_text.hpp"
#include "core/cluster/nodes/windows.hpp"
#include "core/pod_name.hpp"

#include <algorithm>
#include <cctype>

namespace muster::api {
namespace {

struct Column {
  const char* name;
  const char* type;
  const char* format;
  int priority;
};

OrderedJson columns(std::initializer_list<Column> list) {
  OrderedJson found = OrderedJson::array();
  for (const Column& c : list)
    found.push_back({{"name", c.name},
                     {"type", c.type},
                     {"format", c.format},
                     {"description", c.name},
                     {"priority", c.priority}});
  return found;
}

std::string joined(const std::vector<core::Container>& containers,
                   std::string core::Container::*field) {
  std::string text;
  for (const core::Container& c : containers) {
    if (!text.empty()) text += ',';
    text += c.*field;
  }
  return text;
}

std::string job_state(const core::Job& job, Millis now_ms) {
  if (job.condition(core::ConditionType::damaged)) return "Damaged";
  if (job.condition(core::ConditionType::complete)) return "Complete";
  if (job.condition(core::ConditionType::failed)) return "Failed";
  if (job.state().deleted_at) return "Terminating";
  if (job.condition(core::ConditionType::suspended)) return "Suspended";
  if (job.on_hold() || job.held() || job.begins_after(now_ms)) return "Held";
  if (job.condition(core::ConditionType::failure_target)) return "FailureTarget";
  if (job.condition(core::ConditionType::success_criteria_met)) return "SuccessCriteriaMet";
  // All of its pods wait for a slot.
  if (job.active() > 0 && job.active() == job.pending_count()) return "Pending";
  return "Running";
}

std::string completions(const core::Job& job) {
  const std::string done = std::to_string(job.succeeded());
  if (const auto needed = job.needed()) return done + "/" + std::to_string(*needed);
  const int32_t parallelism = job.state().parallelism;
  return parallelism > 1 ? done + "/1 of " + std::to_string(parallelism) : done + "/1";
}

std::string duration(const core::Job& job, Millis now_ms) {
  const core::JobState& s = job.state();
  if (!s.started_at) return "";
  Millis end_ms = now_ms;
  if (s.completed_at)
    end_ms = *s.completed_at;
  else if (const core::Condition* failed = job.condition(core::ConditionType::failed))
    end_ms = failed->at_ms;
  return span_text(end_ms - *s.started_at);
}

// "olga, 5m ago: the license server is down"; "begins at 2027-01-31T07:00:00Z"
std::string held_text(const core::Job& job, Millis now_ms) {
  const auto& hold = job.state().hold;
  const std::string begins = begins_text(job, now_ms);
  if (!hold) return begins.empty() ? "<none>" : begins;
  return hold->by + ", " + span_text(now_ms - hold->at_ms) + " ago" +
         (hold->reason.empty() ? "" : ": " + hold->reason);
}

// "3 ahead, in 5m"; when it is not known, only its place in the line.
std::string expected_text(const View& view, const core::Job& job, Millis now_ms) {
  const auto& line = view.shares().line;
  const auto found = line.find(job.id());
  if (found == line.end() || job.finished() || view.queue_wait(job.id())) return "<none>";
  const core::Expectation& one = found->second;
  std::string text = std::to_string(one.ahead) + " ahead";
  if (one.start_ms && *one.start_ms > now_ms) text += ", in " + span_text(*one.start_ms - now_ms);
  return text;
}

OrderedJson job_cells(const View& view, const core::Job& job, bool summary, Millis now_ms) {
  const core::JobObject& o = job.object();
  std::string selector;
  if (o.spec.selector)
    for (const auto& [key, value] : o.spec.selector->match_labels)
      selector += (selector.empty() ? "" : ",") + key + "=" + value;
  if (summary)
    return {o.meta.name,
            job_state(job, now_ms),
            completions(job),
            duration(job, now_ms),
            span_text(now_ms - o.meta.created_ms),
            "<hidden>",
            "<hidden>",
            "<hidden>",
            "<hidden>",
            "<hidden>",
            "<hidden>"};
  return {o.meta.name,
          job_state(job, now_ms),
          completions(job),
          duration(job, now_ms),
          span_text(now_ms - o.meta.created_ms),
          joined(o.spec.pod.containers, &core::Container::name),
          joined(o.spec.pod.containers, &core::Container::image),
          selector.empty() ? "<none>" : selector,
          held_text(job, now_ms),
          expected_text(view, job, now_ms),
          core::queue_of(core::placed_object(job)->meta.annotations)};
}

// "Init:1/2", "Init:CrashLoopBackOff"; empty: the init containers have ended.
std::string init_state(const core::Pod& pod, const std::vector<core::Container>& inits) {
  for (size_t i = 0; i < inits.size(); ++i) {
    const core::ContainerNow* now = i < pod.containers.size() ? &pod.containers[i] : nullptr;
    if (inits[i].sidecar && now && now->phase == core::ContainerPhase::running) continue;
    const bool over = now && now->phase == core::ContainerPhase::ended && now->last;
    if (over && now->last->exit_code == 0) continue;
    if (over)
      return "Init:" + std::string(container_reason(now->last->cause, now->last->exit_code));
    if (now && now->phase == core::ContainerPhase::waiting) return "Init:CrashLoopBackOff";
    return "Init:" + std::to_string(i) + "/" + std::to_string(inits.size());
  }
  return "";
}

// As kubectl's STATUS: of the first container that does not run.
std::string running_state(const core::Pod& pod, const std::vector<core::Container>& inits) {
  if (pod.containers.empty())
    return pod.readiness == core::Readiness::not_ready ? "CrashLoopBackOff" : "Running";
  if (std::string state = init_state(pod, inits); !state.empty()) return state;
  bool runs = false;
  std::string reason;
  for (size_t i = inits.size(); i < pod.containers.size(); ++i) {
    const core::ContainerNow& now = pod.containers[i];
    runs = runs || now.phase == core::ContainerPhase::running;
    if (!reason.empty()) continue;
    if (now.phase == core::ContainerPhase::waiting) reason = "CrashLoopBackOff";
    if (now.phase == core::ContainerPhase::ended && now.last)
      reason = container_reason(now.last->cause, now.last->exit_code);
  }
  if (reason.empty()) return runs ? "Running" : "PodInitializing";
  return reason == "Completed" && runs ? "NotReady" : reason;
}

// How a pod ended in its init containers; empty: it did not.
std::string init_end(const core::Pod& pod, const std::vector<core::Container>& inits) {
  if (pod.end.containers.size() <= inits.size()) return "";
  for (size_t i = 0; i < inits.size(); ++i) {
    const core::ContainerEnd& end = pod.end.containers[i];
    if (end.has_exit_code() && end.exit_code != 0 && !inits[i].sidecar)
      return "Init:" + std::string(container_reason(end.cause, end.exit_code));
  }
  return "";
}

std::string pod_state(const core::Pod& pod, const std::vector<core::Container>& inits, bool gated) {
  if (pod.terminating()) return "Terminating";
  if (!pod.ended)
    return pod.started_at                  ? running_state(pod, inits)
           : pod.bound() && !inits.empty() ? init_state(pod, inits)
           : pod.bound()                   ? "ContainerCreating"
           : gated                         ? "SchedulingGated"
                                           : "Pending";
  if (std::string state = init_end(pod, inits); !state.empty()) return state;
  std::string_view reason = pod_reason(pod.end.cause);
  if (reason.empty()) reason = container_reason(pod.end.cause, pod.end.exit_code);
  return std::string(reason);
}

// Containers and sidecars that run; `all`: how many there are.
size_t ready_containers(const core::Pod& pod, const std::vector<core::Container>& inits,
                        size_t all) {
  if (pod.ended || !pod.started_at) return 0;
  if (pod.containers.empty()) return pod.readiness == core::Readiness::ready ? all : 0;
  size_t ready = 0;
  for (size_t i = 0; i < pod.containers.size(); ++i)
    if (pod.containers[i].phase == core::ContainerPhase::running)
      ready += i >= inits.size() || inits[i].sidecar;
  return ready;
}

OrderedJson pod_cells(const View& view, const Shown& shown, Millis now_ms) {
  const core::Pod& pod = *shown.pod;
  const core::JobMeta& meta = shown.job->object().meta;
  const auto& inits = shown.job->spec().pod.init_containers;
  const size_t all = shown.job->spec().pod.containers.size() +
                     static_cast<size_t>(std::count_if(
                         inits.begin(), inits.end(), [](const auto& one) { return one.sidecar; }));
  const size_t ready = ready_containers(pod, inits, all);
  const core::NodeInfo* const node = pod.bound() ? view.node_info(pod.node) : nullptr;
  return {core::pod_name(meta.name, meta.uid, shown.job->indexed(), pod.key),
          std::to_string(ready) + "/" + std::to_string(all),
          missing_config(view, *shown.job, pod).empty() ? pod_state(pod, inits, shown.job->gated())
                                                        : "CreateContainerConfigError",
          std::to_string(pod.restarts),
          span_text(now_ms - pod.created_ms),
          node == nullptr || node->ip.empty() ? "<none>" : node->ip,
          node == nullptr ? "<none>" : node->name,
          "<none>",
          "<none>"};
}

std::string taints_text(const core::NodeSpec& spec) {
  std::string text;
  for (const core::Taint& taint : spec.taints)
    text += (text.empty() ? "" : ",") + taint.key + (taint.value.empty() ? "" : "=" + taint.value) +
            ":" + taint.effect;
  return text.empty() ? "<none>" : text;
}

// "cordon by olga, 5m ago: replace DIMM"
std::string reasons_text(const core::NodeInfo& node, Millis now_ms) {
  std::string text;
  if (const core::NodeTrouble found = reported_trouble(node))
    text = found.reason + ": " + found.message;
  for (const core::NodeReason& one : node.spec.reasons)
    text += (text.empty() ? "" : "; ") + one.what + " by " + one.by + ", " +
            span_text(now_ms - one.at_ms) + " ago" + (one.text.empty() ? "" : ": " + one.text);
  return text.empty() ? "<none>" : text;
}

// "in 2h", "course from 2026-12-01T18:00:00Z until 2026-12-01T20:00:00Z"
std::string ends_text(const core::NodeInfo& node, Millis now_ms) {
  const core::NodeEnds ends = core::ends_of(node);
  std::string text;
  if (ends.agent_ms)
    text = *ends.agent_ms > now_ms ? "in " + span_text(*ends.agent_ms - now_ms) : "now";
  for (const core::Window& window : ends.windows)
    if (window.until_ms > now_ms)
      text += (text.empty() ? "" : "; ") + window.name + " from " + time_text(window.from_ms) +
              " until " + time_text(window.until_ms);
  return text.empty() ? "<none>" : text;
}

OrderedJson node_cells(const core::NodeInfo& node, Millis now_ms) {
  std::string state = core::is_ready(node) ? "Ready" : node.draining ? "Draining" : "NotReady";
  if (has_left(node)) {
    // For a node that left before this coordinator started, only its announcement is known.
    const bool seen = node.heartbeat_ms != 0 || node.left_ms == 0;
    state = "Left (" + span_text(now_ms - (seen ? node.changed_ms : node.left_ms)) + " ago)";
  }
  if (node.spec.unschedulable) state += ",SchedulingDisabled";
  const std::string& at = node.ip.empty() ? node.address : node.ip;
  return {node.name,
          state,
          "<none>",
          span_text(now_ms - node.created_ms),
          node.agent_version,
          at.empty() ? "<none>" : at,
          node.slots,
          node.boot_id,
          node.keeper_version,
          taints_text(node.spec),
          reasons_text(node, now_ms),
          ends_text(node, now_ms)};
}

// When the event last happened, from the first of its time fields that is set.
Millis last_seen(const Json& event) {
  const Json none = Json::object();
  for (const Json& said :
       {event.value("series", none).value("lastObservedTime", Json()),
        event.value("lastTimestamp", Json()), event.value("firstTimestamp", Json()),
        event.value("eventTime", Json()), event.at("metadata").value("creationTimestamp", Json())})
    if (const auto time = said.is_string() ? parse_time(said.get<std::string>()) : std::nullopt)
      return *time;
  return 0;
}

OrderedJson kept_event_cells(const KeptView& view, Millis now_ms) {
  const Json event = Json::parse(view.kept->json);
  auto field = [&view](const char* name) { return view.facts.fields.find(name)->second; };
  std::string kind = field("involvedObject.kind");
  for (char& c : kind) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const Json message = event.value("message", Json());
  return {span_text(now_ms - last_seen(event)),
          field("type"),
          field("reason"),
          kind + "/" + field("involvedObject.name"),
          message.is_string() ? message.get<std::string>() : std::string(),
          field("source"),
          view.kept->name};
}

OrderedJson lease_cells(const KeptView& view, Millis now_ms) {
  const Json lease = Json::parse(view.kept->json), none = Json::object();
  const Json holder = lease.value("spec", none).value("holderIdentity", Json(""));
  const auto made = parse_time(lease["metadata"].value("creationTimestamp", ""));
  return {view.kept->name, holder, span_text(now_ms - made.value_or(now_ms))};
}

OrderedJson age_cell(const KeptView& view, Millis now_ms) {
  const auto created_ms = view.facts.created_ms;
  return created_ms ? OrderedJson(span_text(now_ms - *created_ms)) : OrderedJson("<unknown>");
}

OrderedJson config_map_cells(const KeptView& view, Millis now_ms) {
  const core::ConfigKeys& keys = view.facts.keys;
  return {view.kept->name, std::to_string(keys.text.size() + keys.binary.size()),
          age_cell(view, now_ms)};
}

OrderedJson namespace_cells(const KeptView& view, Millis now_ms) {
  return {view.kept->name, view.facts.fields.find("status.phase")->second, age_cell(view, now_ms)};
}

OrderedJson cron_job_cells(const KeptView& view, Millis now_ms) {
  const Json cron = Json::parse(view.kept->json), none = Json::object();
  const Json spec = cron.value("spec", none), status = cron.value("status", none);
  std::string names, images;
  if (const Json* pod = find_path(spec, {"jobTemplate", "spec", "template", "spec"}))
    for (const Json& container : pod->value("containers", Json::array())) {
      names += (names.empty() ? "" : ",") + member_text(container, "name");
      images += (images.empty() ? "" : ",") + member_text(container, "image");
    }
  const auto last = parse_time(member_text(status, "lastScheduleTime"));
  return {view.kept->name,
          member_text(spec, "schedule"),
          spec.value("timeZone", "<none>"),
          spec.value("suspend", false) ? "True" : "False",
          status.value("active", Json::array()).size(),
          last ? span_text(now_ms - *last) : "<none>",
          age_cell(view, now_ms),
          names,
          images,
          "<none>"};
}

// "a,b", or `none` if it has none.
std::string names_text(const Json& spec, const char* name, const char* none) {
  std::string text;
  for (const Json& one : spec.value(name, Json::array()))
    text += (text.empty() ? "" : ",") + one.get<std::string>();
  return text.empty() ? none : text;
}

// "cpu=64,pods=100"
std::string limits_text(const Json& spec, const char* name) {
  std::string text;
  const Json limits = spec.value(name, Json::object());
  for (const auto& [resource, value] : limits.items())
    text += (text.empty() ? "" : ",") + resource + "=" +
            (value.is_string() ? value.get<std::string>() : value.dump());
  return text.empty() ? "<none>" : text;
}

OrderedJson queue_columns() {
  return columns({{"Name", "string", "name", 0},
                  {"Nodes", "string", "", 0},
                  {"Users", "string", "", 0},
                  {"Weight", "string", "", 0},
                  {"Priority", "string", "", 0},
                  {"Time Limit", "string", "", 0},
                  {"Age", "string", "", 0},
                  {"Limits", "string", "", 1},
                  {"User Limits", "string", "", 1}});
}

OrderedJson queue_cells(const KeptView& view, Millis now_ms) {
  const Json queue = Json::parse(view.kept->json), none = Json::object();
  const Json spec = queue.value("spec", none), priority = spec.value("priority", none),
             time = spec.value("timeLimit", none);
  std::string nodes;
  const Json selector = spec.value("nodeSelector", none);
  for (const auto& [label, value] : selector.items())
    nodes += (nodes.empty() ? "" : ",") + label + "=" + value.get<std::string>();
  const std::string users = names_text(spec, "users", ""), groups = names_text(spec, "groups", "");
  return {view.kept->name,
          nodes.empty() ? "<all>" : nodes,
          users.empty() && groups.empty() ? "<all>"
          : groups.empty()                ? users
                                          : users + (users.empty() ? "@" : ",@") + groups,
          std::to_string(spec.value("weight", 1)),
          std::to_string(priority.value("default", 0)) +
              (priority.contains("max") ? ", max " + std::to_string(priority.value("max", 0)) : ""),
          time.value("max", "<none>"),
          age_cell(view, now_ms),
          limits_text(spec, "limits"),
          limits_text(spec, "userLimits")};
}

OrderedJson priority_class_columns() {
  return columns({{"Name", "string", "name", 0},
                  {"Value", "integer", "", 0},
                  {"Global-Default", "boolean", "", 0},
                  {"Age", "string", "", 0},
                  {"PreemptionPolicy", "string", "", 0}});
}

OrderedJson priority_class_cells(const KeptView& view, Millis now_ms) {
  const Json one = Json::parse(view.kept->json);
  return {view.kept->name, one.value("value", 0), one.value("globalDefault", false),
          age_cell(view, now_ms), one.value("preemptionPolicy", "")};
}

OrderedJson event_cells(const Shown& shown, Millis now_ms) {
  if (shown.kept) return kept_event_cells(*shown.kept, now_ms);
  return {span_text(now_ms - shown.event->at_ms),  shown.event->warning() ? "Warning" : "Normal",
          event_reason(*shown.job, *shown.event),  "job/" + shown.job->object().meta.name,
          event_message(*shown.job, *shown.event), "job-controller",
          event_name(*shown.job, *shown.event)};
}

}  // namespace

std::string begins_text(const core::Job& job, Millis now_ms) {
  const auto begin = job.finished() ? std::nullopt : job.begins_after(now_ms);
  return begin ? "begins at " + time_text(*begin) : "";
}

std::string span_text(Millis span_ms) {
  const int64_t s = std::max<Millis>(span_ms, 0) / 1000;
  auto two = [](int64_t a, const char* unit, int64_t b, const char* small) {
    return std::to_string(a) + unit + (b > 0 ? std::to_string(b) + small : std::string());
  };
  if (s < 120) return std::to_string(s) + "s";
  if (s < 600) return two(s / 60, "m", s % 60, "s");
  if (s < 3 * 3600) return std::to_string(s / 60) + "m";
  if (s < 8 * 3600) return two(s / 3600, "h", s / 60 % 60, "m");
  if (s < 48 * 3600) return std::to_string(s / 3600) + "h";
  const int64_t days = s / 86400;
  if (days < 8) return two(days, "d", s / 3600 % 24, "h");
  if (days < 2 * 365) return std::to_string(days) + "d";
  return two(days / 365, "y", days % 365, "d");
}

OrderedJson table_columns(Kind kind) {
  switch (kind) {
    case Kind::job:
      return columns({{"Name", "string", "name", 0},
                      {"Status", "string", "", 0},
                      {"Completions", "string", "", 0},
                      {"Duration", "string", "", 0},
                      {"Age", "string", "", 0},
                      {"Containers", "string", "", 1},
                      {"Images", "string", "", 1},
                      {"Selector", "string", "", 1},
                      {"Held", "string", "", 1},
                      {"Expected", "string", "", 1},
                      {"Queue", "string", "", 1}});
    case Kind::pod:
      return columns({{"Name", "string", "name", 0},
                      {"Ready", "string", "", 0},
                      {"Status", "string", "", 0},
                      {"Restarts", "string", "", 0},
                      {"Age", "string", "", 0},
                      {"IP", "string", "", 1},
                      {"Node", "string", "", 1},
                      {"Nominated Node", "string", "", 1},
                      {"Readiness Gates", "string", "", 1}});
    case Kind::node:
      return columns({{"Name", "string", "name", 0},
                      {"Status", "string", "", 0},
                      {"Roles", "string", "", 0},
                      {"Age", "string", "", 0},
                      {"Version", "string", "", 0},
                      {"Address", "string", "", 1},
                      {"Slots", "integer", "", 1},
                      {"Boot-ID", "string", "", 1},
                      {"Keeper", "string", "", 1},
                      {"Taints", "string", "", 1},
                      {"Reasons", "string", "", 1},
                      {"Ends", "string", "", 1}});
    case Kind::event:
      return columns({{"Last Seen", "string", "", 0},
                      {"Type", "string", "", 0},
                      {"Reason", "string", "", 0},
                      {"Object", "string", "", 0},
                      {"Message", "string", "", 0},
                      {"Source", "string", "", 1},
                      {"Name", "string", "name", 1}});
    case Kind::lease:
      return columns(
          {{"Name", "string", "name", 0}, {"Holder", "string", "", 0}, {"Age", "string", "", 0}});
    case Kind::config_map:
      return columns(
          {{"Name", "string", "name", 0}, {"Data", "string", "", 0}, {"Age", "string", "", 0}});
    case Kind::name_space:
      return columns(
          {{"Name", "string", "name", 0}, {"Status", "string", "", 0}, {"Age", "string", "", 0}});
    case Kind::cron_job:
      return columns({{"Name", "string", "name", 0},
                      {"Schedule", "string", "", 0},
                      {"Timezone", "string", "", 0},
                      {"Suspend", "boolean", "", 0},
                      {"Active", "integer", "", 0},
                      {"Last Schedule", "string", "", 0},
                      {"Age", "string", "", 0},
                      {"Containers", "string", "", 1},
                      {"Images", "string", "", 1},
                      {"Selector", "string", "", 1}});
    case Kind::queue:
      return queue_columns();
    case Kind::priority_class:
      return priority_class_columns();
  }
  return {};
}

OrderedJson table_cells(const View& view, const Shown& shown, Millis now_ms) {
  switch (shown.kind) {
    case Kind::job:
      return job_cells(view, *shown.job, shown.summary, now_ms);
    case Kind::pod:
      return pod_cells(view, shown, now_ms);
    case Kind::node:
      return node_cells(*shown.node, now_ms);
    case Kind::event:
      return event_cells(shown, now_ms);
    case Kind::lease:
      return lease_cells(*shown.kept, now_ms);
    case Kind::config_map:
      return config_map_cells(*shown.kept, now_ms);
    case Kind::name_space:
      return namespace_cells(*shown.kept, now_ms);
    case Kind::cron_job:
      return cron_job_cells(*shown.kept, now_ms);
    case Kind::queue:
      return queue_cells(*shown.kept, now_ms);
    case Kind::priority_class:
      return priority_class_cells(*shown.kept, now_ms);
  }
  return {};
}

}  // namespace muster::api
