#include "tests/sim/storm.hpp"

#include "api/kube/objects/manifest.hpp"
#include "base/check.hpp"
#include "core/spec/fields/annotations.hpp"
#include "tests/sim/operators.hpp"
#include "tests/unit/api/admit.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

namespace muster::sim {

const std::vector<std::string> kFaults = {
    "crashes",       "mid-commit",    "failed-syncs", "agent-restarts", "keeper-deaths",
    "old-work-dirs", "old-data-dirs", "breaks",       "silences",       "cuts",
    "index-deaths",  "clock-jumps",   "node-changes", "lies",           "repeats",
    "owner",         "operators",     "windows",      "node-ends",      "failed-starts"};

namespace {

using Json = nlohmann::json;

constexpr Millis kBackoffBaseMs = 200, kBackoffMaxMs = 1'000;  // as in World's knobs
constexpr Millis kForeverMs = 100'000'000;
constexpr Millis kLimitMs = 800'000;
constexpr Millis kFairMs = 15'000;             // for a small job to start alongside a large one
constexpr int64_t kShortS = 10, kSlowS = 100;  // time limits, longer than such pods run

// Users of a site; the first is an operator.
const std::vector<core::Owner> kUsers = {
    {1000, 1000, "op", {}, "", true}, {1001, 1001, "ada"}, {1002, 1002, "bob"}};

// How the pods of a job behave.
struct Ways {
  uint64_t salt = 0;
  int fail_in = 4;                    // one in this many attempts fails; 0: none
  uint32_t fails_until = 3;           // attempts from here on succeed
  bool any_code = false;              // failures exit with 3, 4 or 5, which policies look for
  bool daemons = false;               // all but index 0 run until they are ended
  bool endless = false;               // all run until they are ended
  bool slow = false;                  // the first one runs for longer than a node may be cut off
  std::optional<int> spared_until{};  // disruptions of an index that cost it nothing
};

struct Sent {
  std::string name;  // NAMESPACE/NAME
  core::JobObjectPtr object;
  Ways ways;
  bool accepted = false, deleted = false;
  int versions = 0, answered = 0;    // the newest change sent, and the newest answered
  std::vector<core::After> after{};  // jobs that it waits for, by NAMESPACE/NAME
  core::JobObjectPtr alone{};        // the same job without `after`, once one of those is gone
  std::optional<core::Owner> user{};
  std::set<PodKey> pods_deleted{};  // by its owner
};

class History {
 public:
  explicit History(const Storm& storm)
      : storm_(storm),
        random_(storm.seed * 1'000'003),
        plan_(make_plan()),
        world_(plan_),
        operators_(world_, storm.seed, plan_.slots) {}

  Outcome play() {
    baseline_ = world_.actors();
    const int jobs = storm_.jobs > 0 ? storm_.jobs : 2 + static_cast<int>(below(8));
    for (int i = 0; i < jobs; ++i) jobs_.push_back(make_job(i));
    world_.step_code = [this](PodId pod, core::node::Step step) { return code_of(pod, step); };
    world_.run_ms = [this](PodId pod) { return run_of(pod); };
    world_.owner = [this] { act(); };
    if (plan_.site) world_.operators = [this] { operators_.act(names()); };
    const bool ended = world_.run([this] { return look() && all_over(); }, kLimitMs);
    if (!ended) say("not all jobs ended: " + unfinished());
    // Not always: it takes longer than most histories.
    if (ended && (storm_.seed % 8 == 0 || storm_.plant != Plant::none)) afterwards();
    judge();
    Outcome out;
    out.broken = std::move(world_.broken);
    out.count = world_.count;
    out.jobs = jobs_.size();
    out.pods = world_.seen.size();
    return out;
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  void say(std::string what) { world_.broken.push_back(std::move(what)); }
  bool has(const std::string& fault) const {
    return std::ranges::find(storm_.without, fault) == storm_.without.end();
  }

  Plan make_plan() {
    Plan plan;
    plan.seed = storm_.seed;
    plan.agents = 2 + static_cast<uint32_t>(below(3));
    plan.slots = 2 + static_cast<uint32_t>(below(3));
    plan.plant = storm_.plant;
    plan.recent_max = 1 + below(20);
    auto some = [this](const char* fault, uint64_t most) {
      const int n = static_cast<int>(below(most));
      return has(fault) ? n : 0;
    };
    plan.crashes = some("crashes", 200);
    plan.crash_chance = 0.002 * static_cast<double>(1 + below(8));
    // A restarted coordinator starts waiting again for nodes that are cut off.
    if (one_in(6)) plan.crash_chance /= 20;
    plan.mid_commit = some("mid-commit", 100);
    plan.failed_syncs = some("failed-syncs", 5);
    plan.agent_restarts = some("agent-restarts", 6);
    plan.keeper_deaths = some("keeper-deaths", 4);
    plan.old_work_dirs = some("old-work-dirs", 3);
    plan.old_data_dirs = some("old-data-dirs", 3);
    plan.breaks = some("breaks", 10);
    plan.silences = some("silences", 3);
    plan.cuts = some("cuts", 5);
    plan.index_deaths = some("index-deaths", 4);
    plan.node_changes = some("node-changes", 5);
    plan.lies = some("lies", 6);
    plan.repeats = some("repeats", 6);
    plan.owner_acts = some("owner", 30);
    plan.clock_jump_ms = static_cast<Millis>(below(7'200'000)) - 3'600'000;
    plan.clock_jumps = one_in(3) ? some("clock-jumps", 4) : 0;
    if (!is_site(storm_.seed)) return plan;
    plan.site = true;
    plan.operator_acts = some("operators", 40);
    plan.windows = some("windows", 6);
    plan.node_ends = some("node-ends", 3);
    plan.failed_starts = some("failed-starts", 3);
    if (one_in(3)) plan.user_pods_max = plan.slots + static_cast<uint32_t>(below(3));
    return plan;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Sent& job : jobs_) names.push_back(job.name);
    return names;
  }

  // ---- jobs

  Sent make_job(int number) {
    Json annotations = Json::object(), spec, pod;
    Ways ways;
    ways.salt = random_();
    ways.fail_in = one_in(4) ? 0 : 2 + static_cast<int>(below(5));
    const int n = 1 + static_cast<int>(below(12)), p = 1 + static_cast<int>(below(8));
    // At a site, a gang fits on a node, so that it fits any queue in the calm.
    const int capacity = static_cast<int>((plan_.site ? 1 : plan_.agents) * plan_.slots);
    spec["parallelism"] = p;
    spec["backoffLimit"] = one_in(5) ? static_cast<int>(below(4)) : 1'000'000;
    pod["restartPolicy"] = "Never";
    pod["terminationGracePeriodSeconds"] = below(3);
    auto container = [](const std::string& name) {
      return Json{{"name", name}, {"command", {"true"}}};
    };
    pod["containers"] = Json::array({container("main")});
    auto indexed = [&](int completions) {
      spec["completionMode"] = "Indexed";
      spec["completions"] = completions;
    };
    auto per_index = [&] {
      spec["backoffLimitPerIndex"] = below(3);
      spec.erase("backoffLimit");
      if (one_in(3)) spec["maxFailedIndexes"] = below(2);
    };
    switch (below(plan_.site ? 13 : 11)) {
      case 0:
        spec["completions"] = n;
        break;
      case 1:  // a work queue
        ways.fail_in = 0;
        break;
      case 2:
      case 3:
        indexed(n);
        per_index();
        break;
      case 4: {  // pod failure policy
        indexed(n);
        if (one_in(2)) per_index();
        ways.any_code = true;
        Json rules = Json::array();
        auto on_codes = [](const char* action, int code) {
          return Json{{"action", action},
                      {"onExitCodes", {{"operator", "In"}, {"values", {code}}}}};
        };
        if (spec.contains("backoffLimitPerIndex") && one_in(2))
          rules.push_back(on_codes("FailIndex", 3));
        if (one_in(3)) rules.push_back(on_codes("FailJob", 4));
        if (one_in(2)) rules.push_back(on_codes("Ignore", 5));
        if (one_in(2))
          rules.push_back(
              {{"action", "Ignore"},
               {"onPodConditions", {{{"type", "DisruptionTarget"}, {"status", "True"}}}}});
        rules.push_back(on_codes("Count", 1));
        spec["podFailurePolicy"] = {{"rules", rules}};
        break;
      }
      case 5:  // success policy
        indexed(2 + n);
        spec["parallelism"] = 2 + n;
        spec["successPolicy"] = {
            {"rules",
             {{{"succeededIndexes", "0-" + std::to_string(n)}, {"succeededCount", 1 + n / 2}}}}};
        break;
      case 6:
      case 7: {  // a gang, perhaps with a leader and workers that wait to be ended
        const int members = 2 + static_cast<int>(below(static_cast<uint64_t>(capacity - 1)));
        indexed(members);
        spec["parallelism"] = members;
        annotations["muster.dev/gang"] = "true";
        if (one_in(2)) {
          annotations["muster.dev/mpi"] = "auto";
          spec["successPolicy"] = {{"rules", {{{"succeededIndexes", "0"}}}}};
          ways.daemons = true;
        }
        if (one_in(2)) annotations["muster.dev/restart"] = "gang";
        if (one_in(2)) per_index();
        break;
      }
      case 8:  // several containers, restarted in place or not
        indexed(n);
        if (one_in(2)) pod["restartPolicy"] = "OnFailure";
        if (one_in(2))
          pod["initContainers"] = Json::array({container("first"), container("second")});
        if (one_in(2)) pod["containers"].push_back(container("beside"));
        break;
      case 9:  // runs until its owner deletes it
        indexed(1 + n / 3);
        ways.endless = true;
        ways.fail_in = 0;
        break;
      case 11:
      case 12:  // as `muster submit` makes it
        indexed(n);
        per_index();
        spec.erase("maxFailedIndexes");
        ways.spared_until = static_cast<int>(below(4));
        annotations[std::string(core::kDisruptionsMaxKey)] = std::to_string(*ways.spared_until);
        spec["podFailurePolicy"] = {
            {"rules",
             {{{"action", "Ignore"},
               {"onPodConditions", {{{"type", "DisruptionTarget"}, {"status", "True"}}}}}}}};
        break;
      default:
        indexed(3 * n);
    }
    if (!ways.spared_until && one_in(6)) spec["activeDeadlineSeconds"] = 1 + below(20);
    if (one_in(5)) spec["ttlSecondsAfterFinished"] = 1 + below(20);
    if (one_in(5)) spec["suspend"] = true;
    if (one_in(4)) {
      if (storm_.plant != Plant::fence_unawaited)
        annotations[std::string(core::kFenceAfterKey)] = "15s";
      ways.slow = true;
    }
    if (one_in(4)) spec["podReplacementPolicy"] = "Failed";
    if (one_in(4)) pod["priority"] = below(3);
    if (one_in(5)) pod["tolerations"] = Json::array({{{"key", "drill"}, {"operator", "Exists"}}});
    if (number % 3 == 0) annotations[std::string(core::kScaleDownKey)] = "finish";
    Sent job;
    if (plan_.site) make_of_site(job, ways, annotations, pod);
    spec["template"]["spec"] = pod;
    job.ways = ways;
    const std::string ns = one_in(3) ? "other" : "default";
    job.name = ns + "/job-" + std::to_string(number);
    job.alone = job.object = admit(job.name, number, annotations, spec, job.user);
    const bool follows = one_in(4);
    if (follows || one_in(4)) {
      std::string after;
      for (const Sent& other : jobs_) {
        if (!other.name.starts_with(ns + "/") || !one_in(2)) continue;
        if (follows && !may_follow(*job.object, *other.object)) continue;
        const auto needed = follows ? core::Needed::each : static_cast<core::Needed>(below(3));
        job.after.push_back({needed, other.name});
        after += (after.empty() ? "" : ",") + std::string(core::name(needed)) + ":" +
                 other.name.substr(ns.size() + 1);
      }
      if (after.empty()) return job;
      annotations[std::string(core::kAfterKey)] = after;
      job.object = admit(job.name, number, annotations, spec, job.user);
    }
    return job;
  }

  // A job of a user in a queue, perhaps with CPUs, a time limit and tolerations of everything.
  void make_of_site(Sent& job, const Ways& ways, Json& annotations, Json& pod) {
    job.user = kUsers[below(kUsers.size())];
    const std::string& queue = Operators::kQueues[below(Operators::kQueues.size())];
    if (queue != "default") annotations[std::string(core::kQueueKey)] = queue;
    if (one_in(2)) pod["containers"][0]["resources"] = {{"requests", {{"cpu", "1"}}}};
    if (!ways.daemons && !ways.endless && one_in(2))
      pod["activeDeadlineSeconds"] = ways.slow ? kSlowS : kShortS;
    if (one_in(3)) pod["tolerations"] = Json::array({{{"operator", "Exists"}}});
    if (!pod.contains("priority") && one_in(5)) pod["priorityClassName"] = "urgent";
  }

  // Whether this job may wait for the other one index by index.
  static bool may_follow(const core::JobObject& job, const core::JobObject& other) {
    return job.spec.indexed() && other.spec.indexed() &&
           !core::read_annotations(job.meta.annotations).gang &&
           job.spec.completions <= other.spec.completions;
  }

  core::JobObjectPtr admit(const std::string& name, int number, const Json& annotations,
                           const Json& spec, const std::optional<core::Owner>& user = {}) {
    const size_t slash = name.find('/');
    const Json job = {
        {"apiVersion", "batch/v1"},
        {"kind", "Job"},
        {"metadata", {{"name", name.substr(slash + 1)}, {"annotations", annotations}}},
        {"spec", spec}};
    auto parsed = api::parse_job(job.dump(), api::FieldValidation::strict);
    MUSTER_CHECK(parsed.ok(), parsed.error().message);
    api::Admission admission;
    admission.ns = name.substr(0, slash);
    char uid[37];
    std::snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012d", number);
    admission.uid = uid;
    admission.now_ms = 1'700'000'000'000;
    admission.owner = user;
    admission.queues = all_queues();
    auto object = api::admit_job(std::move(*parsed), admission);
    MUSTER_CHECK(object.ok(), object.error().message + job.dump());
    return *object;
  }

  // Whether a job may enter a queue is no question here.
  static std::shared_ptr<const core::QueueSet> all_queues() {
    auto all = std::make_shared<core::QueueSet>();
    for (const std::string& name : Operators::kQueues) all->queues.push_back({.name = name});
    all->classes["urgent"] = {};
    return all;
  }

  Sent* sent(JobId id) {
    auto known = by_id_.find(id);
    if (known == by_id_.end()) {
      const core::Job* job = world_.shown(id);
      if (!job) return nullptr;
      known = by_id_.emplace(id, name_of(*job)).first;
    }
    const auto found = std::ranges::find(jobs_, known->second, &Sent::name);
    return found == jobs_.end() ? nullptr : &*found;
  }
  static std::string name_of(const core::Job& job) {
    return job.object().meta.ns + "/" + job.object().meta.name;
  }

  int code_of(PodId pod, core::node::Step step) {
    const Sent* job = sent(pod.job);
    return job ? code_of(job->ways, pod, step) : 0;
  }

  static int code_of(const Ways& ways, PodId pod, core::node::Step step) {
    if (ways.fail_in == 0) return 0;
    uint64_t h =
        (pod.index * 1'000'003u + pod.attempt * 31u + step.container * 7u + step.instance) *
            0x9e3779b97f4a7c15u ^
        ways.salt;
    h ^= h >> 29;
    if (pod.attempt >= ways.fails_until || step.instance >= 3) return 0;
    if (h % static_cast<uint64_t>(ways.fail_in) != 0) return 0;
    return ways.any_code ? 3 + static_cast<int>(h / 7 % 3) : 1;
  }

  Millis run_of(PodId pod) {
    const Sent* job = sent(pod.job);
    if (job) check_dependencies(*job, pod);
    const bool fails = code_of(pod, {}) != 0;
    if (job && (job->ways.endless || (job->ways.daemons && pod.index != 0)) && !fails)
      return kForeverMs;
    if (job && job->ways.slow && pod.index == 0 && pod.attempt == 0)
      return 60'000 + static_cast<Millis>(storm_.seed * 997 % 20'000);
    return 1 + static_cast<Millis>((pod.index * 31 + pod.attempt * 17 + storm_.seed) % 400);
  }

  // Called when a process of the job starts. Jobs no longer shown, or created again, have ended.
  void check_dependencies(const Sent& job, PodId pod) {
    if (!world_.serves()) return;  // an older copy of the disk shows an older state
    for (const core::After& one : job.after) {
      const core::Job* const other = world_.shown(one.job);
      if (!other || other->id() > pod.job || other->state().deleted_at) continue;
      if (one.needed == core::Needed::each) {
        if (!has_passed(*other, pod.index))
          say("started before index " + std::to_string(pod.index) + " of " + one.job +
              " had succeeded: " + job.name + " " + to_string(pod));
        continue;
      }
      const bool complete = other->condition(core::ConditionType::complete);
      if (other->finished() &&
          (one.needed == core::Needed::any || complete == (one.needed == core::Needed::ok)))
        continue;
      say("started although " + one.job + (other->finished() ? " ended otherwise: " : " runs: ") +
          job.name + " " + to_string(pod));
    }
  }

  // Its owner may have scaled the index away since.
  bool has_passed(const core::Job& job, uint32_t index) {
    if (job.state().completed.contains(index)) return true;
    return std::ranges::any_of(world_.attempts(job.id()), [index](const core::Pod& pod) {
      return pod.key.index == index && pod.counted == core::Counted::succeeded;
    });
  }

  // ---- the owner

  void act() {
    Sent& job = jobs_[below(jobs_.size())];
    const core::Job* shown = world_.shown(job.name);
    if (!shown || job.deleted) return;
    check_versions(job, *shown);
    const bool gang = shown->gang().together;
    const uint32_t gang_max = (plan_.site ? 1 : plan_.agents) * plan_.slots;
    const int n = static_cast<int>(1 + below(gang ? gang_max : 12));
    switch (below(9)) {
      case 0:
        return change(job, {{"suspend", true}});
      case 1:
      case 2:
        return change(job, {{"suspend", false}});
      case 3:
        if (gang) return;  // index 0 may be among those that no longer fit
        return change(job, {{"parallelism", n}});
      case 4:
        return change(job, {{"completions", n}, {"parallelism", n}});
      case 5:
        if (!one_in(3)) return;
        return remove(job);
      default: {
        std::vector<PodKey> keys;
        shown->each_pod([&keys](const core::Pod& pod) { keys.push_back(pod.key); });
        if (keys.empty()) return;
        using Why = core::PodsDeletion::Why;
        const PodKey key = keys[below(keys.size())];
        const Why why = one_in(2) ? Why::owner : Why::eviction;
        if (why == Why::owner) job.pods_deleted.insert(key);
        world_.ask(job.name, core::PodsDeletion{0, {key}, why, std::nullopt});
      }
    }
  }

  void remove(Sent& job) {
    job.deleted = true;
    world_.remove(job.name, one_in(2), false);
  }

  void change(Sent& job, const Json& patch) {
    const core::Job* shown = world_.shown(job.name);
    if (!shown) return;
    Json json = Json::parse(shown->object().json);
    json["spec"].merge_patch(patch);
    const int version = job.versions + 1;
    json["metadata"]["annotations"]["version"] = std::to_string(version);
    json.erase("status");
    auto parsed = api::parse_job(json.dump(), api::FieldValidation::ignore);
    MUSTER_CHECK(parsed.ok(), parsed.error().message);
    const core::ObservedStatus observed{shown->suspended(), shown->active(),
                                        shown->state().started_at.has_value()};
    auto next = api::update_job(std::move(*parsed), shown->object(), observed);
    if (!next.ok()) return;  // for example, it may not be scaled
    job.versions = version;
    world_.may_scale = world_.may_scale || patch.contains("completions");
    world_.ask(job.name, core::OwnerUpdate{0, shown->object_ptr(), *next},
               [this, name = job.name, version](Status status) {
                 const auto found = std::ranges::find(jobs_, name, &Sent::name);
                 if (status.ok()) found->answered = std::max(found->answered, version);
               });
  }

  void check_versions(const Sent& job, const core::Job& shown) {
    const auto& annotations = shown.object().meta.annotations;
    const auto found = annotations.find("version");
    const int version = found == annotations.end() ? 0 : std::stoi(found->second);
    if (version < job.answered) say("an answered change is gone: " + job.name);
  }

  // What clients do repeatedly: send again what was not answered and, once the faults are over, let
  // everything end. Returns whether it has looked.
  bool look() {
    if (world_.now() < look_at_ || !world_.serves()) return false;
    look_at_ = world_.now() + 300;
    if (plan_.site) {
      operators_.look(names());
      for (std::string& gone : operators_.check()) say(std::move(gone));
    }
    for (Sent& job : jobs_) {
      if (!job.accepted && !job.deleted)
        world_.create(job.object, [this, name = job.name](Status status) {
          const auto found = std::ranges::find(jobs_, name, &Sent::name);
          if (status.ok() || status.error().code == Errc::exists) found->accepted = true;
          // A job that it waits for does not exist: not yet, or no longer.
          if (!status.ok() && status.error().code == Errc::invalid && one_in(3)) {
            found->object = found->alone;
            found->after.clear();
          }
        });
      const core::Job* shown = world_.shown(job.name);
      if (!shown || shown->finished()) continue;
      if (storm_.plant == Plant::dependency_forged && shown->held())
        world_.ask(job.name, core::DependencyHasEnded{0, shown->state().dependencies.front().job,
                                                      core::DependencyEnd::waived});
      if (storm_.plant == Plant::progress_forged && !shown->state().followed.empty())
        world_.ask(job.name, core::DependencyHasAdvanced{0, shown->state().followed.front().job,
                                                         all_passed(*shown)});
      check_versions(job, *shown);
      if (job.ways.endless && !shown->state().deleted_at && (world_.calm() || one_in(50)))
        remove(job);
      else if (!world_.calm())
        continue;
      else if (shown->spec().suspend.value_or(false))
        change(job, {{"suspend", false}});
    }
    return true;
  }

  static core::ProgressPtr all_passed(const core::Job& job) {
    return std::make_shared<const core::Progress>(core::Progress{job.own_indexes(), {}});
  }

  bool over(const Sent& job) const {
    if (!job.accepted && !job.deleted) return false;
    const core::Job* shown = world_.shown(job.name);
    return !shown || (shown->finished() && shown->state().open.empty());
  }
  bool all_over() const {
    return std::ranges::all_of(jobs_, [this](const Sent& job) { return over(job); }) &&
           world_.quiet();
  }
  std::string unfinished() const {
    std::string text;
    for (const Sent& job : jobs_)
      if (!over(job))
        text += "\n" + job.name + (job.accepted ? "" : " (not accepted)") + " " +
                world_.picture(job.name);
    return text.empty() ? "something is left on a node " + world_.picture("") : text;
  }

  // ---- after the history

  // All slots are free, and a small job starts although a large one waits for all of them.
  void afterwards() {
    const int capacity = static_cast<int>(plan_.agents * plan_.slots);
    auto simple = [&](const std::string& name, int number, int completions, bool gang) {
      Json annotations = Json::object();
      if (gang) annotations["muster.dev/gang"] = "true";
      Sent job;
      job.name = "default/" + name;
      job.ways.fail_in = 0;
      job.object = admit(job.name, number, annotations,
                         {{"completionMode", "Indexed"},
                          {"completions", completions},
                          {"parallelism", completions},
                          {"template",
                           {{"spec",
                             {{"restartPolicy", "Never"},
                              {"containers", {{{"name", "main"}, {"command", {"true"}}}}}}}}}});
      jobs_.push_back(std::move(job));
    };
    simple("all-slots", 900, capacity, true);
    if (!world_.run([this] { return look() && all_over(); }, kLimitMs))
      return say("slots are missing: " + unfinished());
    simple("large", 901, 60 * capacity, false);
    auto begun = [this](const char* name) {
      const core::Job* job = world_.shown(name);
      return job && (job->active() > 0 || job->succeeded() > 0);
    };
    world_.run([&] { return look(), begun("large"); }, kLimitMs);
    simple("small", 902, 1, false);
    const Millis since = world_.now();
    auto started = [this] {
      const core::Job* job = world_.shown("small");
      return job && (job->finished() || std::ranges::any_of(job->state().open, [](const auto& one) {
                       return one.second.started_at.has_value();
                     }));
    };
    world_.run([&] { return look(), started(); }, kLimitMs);
    if (const Millis took = world_.now() - since; took > kFairMs)
      say("a small job started " + std::to_string(took) + " ms after it was sent");
    if (!world_.run([this] { return look() && all_over(); }, kLimitMs))
      return say("the last jobs did not end: " + unfinished());
    // Finished jobs are unloaded, and their actors end.
    if (!world_.run([this] { return world_.actors() <= baseline_; }, 600'000))
      say("actors are left: " + std::to_string(world_.actors()) + ", at the start there were " +
          std::to_string(baseline_));
  }

  void judge() {
    for (const std::string& wrong : world_.verify()) say("verify: " + wrong);
    for (const auto& [id, name] : by_id_) judge(id, name);
  }

  void judge(JobId id, const std::string& name) {
    const core::Job* job = world_.shown(id);
    if (!job || job->state().deleted_at) return;  // its history may be gone
    std::map<PodKey, const core::Pod*> attempt_of;
    const std::vector<core::Pod> attempts = world_.attempts(id);
    judge_starts(id, name, attempts);
    for (const core::Pod& pod : attempts) {
      attempt_of[pod.key] = &pod;
      judge(id, *job, name, pod);
    }
    // Each end that a node could report is in the history.
    for (const auto& [pod, was] : world_.seen) {
      if (pod.job != id || was.ends == 0 || attempt_of.contains(pod.key()) ||
          world_.lost.contains(was.node))
        continue;
      const core::Pod* const open = job->pod(pod.key());
      if (open && !open->ended) continue;
      say("an end was lost: " + name + " " + to_string(pod));
    }
    if (job->per_index() && !job->gang().breaks() && plan_.clock_jumps == 0)
      judge_backoff(id, name, attempts);
  }

  // What a node cannot start is tried elsewhere, unless another process of its pod has run. It
  // counts once there is nowhere else, so there was an earlier one that did not count.
  void judge_starts(JobId id, const std::string& name, const std::vector<core::Pod>& attempts) {
    const auto charged = std::ranges::count_if(attempts, [](const core::Pod& pod) {
      return pod.end.cause == core::EndCause::start_failed &&
             pod.counted == core::Counted::failed && !pod.started_at;
    });
    if (charged > 0 && charged >= std::ptrdiff_t{world_.unstarted[id]})
      say("charged to an index, although its node could not start it: " + name);
  }

  void judge(JobId id, const core::Job& job, const std::string& name, const core::Pod& pod) {
    const PodId key{id, pod.key.index, pod.key.attempt};
    const auto found = world_.seen.find(key);
    const bool ran = found != world_.seen.end() && found->second.ends > 0;
    const std::string who = name + " " + to_string(key);
    using core::EndCause;
    const core::PodTemplate& pods = job.spec().pod;
    const bool simple = pods.containers.size() == 1 && pods.init_containers.empty() &&
                        pods.restart_policy == "Never";
    switch (pod.end.cause) {
      case EndCause::exited:
      case EndCause::killed:
      case EndCause::fenced:
        if (!ran)
          say("the history has an end that did not happen: " + who);
        else if (found->second.lost)
          break;
        else if (simple && found->second.code != pod.end.exit_code)
          say("its exit code was " + std::to_string(found->second.code) + ", not " +
              std::to_string(pod.end.exit_code) + ": " + who);
        break;
      case EndCause::never_started:
      case EndCause::returned:
        if (ran && !found->second.lost && !world_.lost.contains(found->second.node))
          say("reported as never run, but it ran: " + who);
        break;
      case EndCause::keeper_lost:
        if (ran && !found->second.lost) say("its keeper was reported dead, but was not: " + who);
        break;
      default:
        break;
    }
    if (const Sent* sent_job = sent(id); ran && sent_job && sent_job->ways.spared_until)
      judge_charge(*sent_job, pod, found->second, who);
    if (pod.counted == core::Counted::succeeded && (!ran || (simple && found->second.code != 0)))
      say("counted as succeeded, and did not succeed: " + who);
  }

  // What its node, the site or a user of higher priority does to a pod costs its index nothing, up
  // to as many disruptions as its job allows.
  void judge_charge(const Sent& job, const core::Pod& pod, const World::Witnessed& was,
                    const std::string& who) {
    const PodId key{0, pod.key.index, pod.key.attempt};
    if (pod.counted != core::Counted::failed || pod.disruptions >= *job.ways.spared_until) return;
    const int own = code_of(job.ways, key, {});
    if ((own != 0 && was.code == own) || job.pods_deleted.contains(pod.key)) return;
    say("charged to its index, although it did not fail by itself: " + who);
  }

  // Attempts of an index wait for the backoff of the last failure, in elapsed time.
  void judge_backoff(JobId id, const std::string& name, const std::vector<core::Pod>& attempts) {
    std::map<PodKey, const core::Pod*> by_key;
    for (const core::Pod& pod : attempts) by_key[pod.key] = &pod;
    for (const core::Pod& pod : attempts) {
      if (pod.failures < 1 || pod.key.attempt == 0) continue;
      const auto before = by_key.find({pod.key.index, pod.key.attempt - 1});
      if (before == by_key.end() || before->second->counted != core::Counted::failed) continue;
      const auto first = world_.seen.find({id, pod.key.index, pod.key.attempt - 1});
      const auto next = world_.seen.find({id, pod.key.index, pod.key.attempt});
      if (first == world_.seen.end() || next == world_.seen.end() || first->second.ended_at == 0 ||
          first->second.ended_at > next->second.started_at)
        continue;
      if (world_.lost.contains(first->second.node)) continue;  // counted before its end
      const Millis delay =
          std::min(kBackoffMaxMs, kBackoffBaseMs << std::min(pod.failures - 1, 10));
      // A pod counted when its deletion was requested failed then, not when it ended.
      if (before->second->stopping_at) continue;
      const Millis waited = next->second.started_at - first->second.ended_at;
      if (waited + 1 < delay)
        say("started " + std::to_string(waited) + " ms after failure " +
            std::to_string(pod.failures) + " of its index: " + name + " " + to_string(pod.key));
    }
  }

  const Storm& storm_;
  std::mt19937_64 random_;
  const Plan plan_;
  World world_;
  Operators operators_;
  std::vector<Sent> jobs_;
  std::map<JobId, std::string> by_id_;
  size_t baseline_ = 0;
  Millis look_at_ = 0;
};

}  // namespace

bool is_site(uint64_t seed) {
  return seed % 5 == 0;  // odd, so that each shard has some
}

Outcome play(const Storm& storm) {
  return History(storm).play();
}

Storm shrink(Storm storm) {
  auto breaks = [](const Storm& less) { return !play(less).broken.empty(); };
  for (const std::string& fault : kFaults) {
    Storm less = storm;
    less.without.push_back(fault);
    if (breaks(less)) storm = std::move(less);
  }
  for (int jobs = 1; jobs < (storm.jobs > 0 ? storm.jobs : 9); ++jobs) {
    Storm less = storm;
    less.jobs = jobs;
    if (!breaks(less)) continue;
    storm = std::move(less);
    break;
  }
  return storm;
}

}  // namespace muster::sim
