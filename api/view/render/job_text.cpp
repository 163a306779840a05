#include "api/view/render/job_text.hpp"

#include "base/check.hpp"
#include "base/text/time_text.hpp"
#include "core/job/rules/held.hpp"
#include "core/job/shown/hold_text.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace muster::api {
namespace {

// Positions of the metadata object's braces.
struct Metadata {
  size_t begin = 0;  // of {
  size_t end = 0;    // of }
};

// Nothing if the text is not in our form, or already has a member that we would add.
std::optional<Metadata> find_metadata(std::string_view text) {
  if (text.empty() || text.front() != '{' || text.back() != '}') return std::nullopt;
  Metadata found;
  bool inside = false;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth == 1 && inside) {
        found.end = i;
        inside = false;
      }
    } else if (c == '"') {
      const size_t begin = i + 1;
      for (i = begin; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
      if (depth > 2 || i + 1 >= text.size() || text[i + 1] != ':') continue;
      const std::string_view key = text.substr(begin, i - begin);
      if (depth == 1 && key == "status") return std::nullopt;
      if (depth == 2 && inside && key == "resourceVersion") return std::nullopt;
      if (depth != 1 || key != "metadata") continue;
      if (found.begin != 0 || i + 2 >= text.size() || text[i + 2] != '{') return std::nullopt;
      found.begin = i + 2;
      inside = true;
    }
  }
  if (depth != 0 || found.end == 0) return std::nullopt;
  return found;
}

void append_version(std::string& out, const Metadata& at, uint64_t version) {
  if (at.end != at.begin + 1) out += ',';
  out += "\"resourceVersion\":\"" + std::to_string(version) + "\"";
}

// Nothing for a job that is being deleted, because deletion adds to its metadata.
std::optional<Metadata> plain_metadata(const core::Job& job) {
  if (job.state().deleted_at) return std::nullopt;
  return find_metadata(job.object().json);
}

// Writes the members of a JSON object.
class Members {
 public:
  explicit Members(std::string& out) : out_(out) { out_ += '{'; }
  void text(std::string_view name, std::string_view value) {
    key(name);
    append_quoted(out_, value);
  }
  void number(std::string_view name, uint64_t value) {
    key(name);
    out_ += std::to_string(value);
  }
  std::string& key(std::string_view name) {
    if (std::exchange(more_, true)) out_ += ',';
    out_ += '"';
    out_ += name;
    out_ += "\":";
    return out_;
  }
  void end() { out_ += '}'; }

 private:
  std::string& out_;
  bool more_ = false;
};

void append_condition(std::string& out, std::string_view type, bool status, Millis at_ms,
                      std::string_view reason, std::string_view message) {
  if (out.back() != '[') out += ',';
  const std::string at = time_text(at_ms);
  Members members(out);
  members.text("type", type);
  members.text("status", status ? "True" : "False");
  members.text("lastProbeTime", at);
  members.text("lastTransitionTime", at);
  members.text("reason", reason);
  members.text("message", message);
  members.end();
}

// Those of the job, and what operators or its owner did to it beside its object. `others`: the
// conditions that other controllers set, as the text of a JSON list; may be empty.
void append_conditions(std::string& out, const core::JobState& state,
                       const std::vector<core::Condition>& conditions, std::string_view others,
                       bool texts = true) {
  out += '[';
  for (const core::Condition& c : conditions)
    append_condition(out, core::name(c.type), c.status, c.at_ms, core::name(c.reason), c.message);
  if (const auto& hold = state.hold)
    append_condition(out, core::kHeldCondition, true, hold->at_ms,
                     hold->by_operator ? "HeldByOperator" : "HeldByOwner",
                     texts ? core::hold_text(*hold) : "");
  if (const auto& set = state.overrides)
    append_condition(out, core::kOverridesCondition, true, set->at_ms, "SetByOperator",
                     texts ? core::overrides_text(*set) : "");
  if (!others.empty()) {
    if (out.back() != '[') out += ',';
    out += others.substr(1, others.size() - 2);
  }
  out += ']';
}

void append_summary_meta(Members& meta, const core::Job& job, uint64_t version) {
  const core::JobMeta& of = job.object().meta;
  meta.text("name", of.name);
  meta.text("namespace", of.ns);
  meta.text("uid", of.uid);
  meta.text("creationTimestamp", time_text(of.created_ms));
  Members annotations(meta.key("annotations"));
  for (const std::string_view key : {core::kOwnerKey, core::kOwnerUidKey, core::kOwnerGidKey})
    if (const auto it = of.annotations.find(std::string(key)); it != of.annotations.end())
      annotations.text(key, it->second);
  annotations.end();
  meta.text("resourceVersion", std::to_string(version));
}

void append_summary_status(std::string& out, const core::Job& job) {
  const core::JobState& s = job.state();
  std::vector<core::Condition> conditions = s.conditions;
  for (core::Condition& condition : conditions) condition.message.clear();
  Members status(out);
  if (!conditions.empty() || s.hold || s.overrides)
    append_conditions(status.key("conditions"), s, conditions, "", false);
  if (s.started_at) status.text("startTime", time_text(*s.started_at));
  if (s.completed_at) status.text("completionTime", time_text(*s.completed_at));
  if (job.active() != 0 && !s.orphaned) status.number("active", job.active());
  if (job.succeeded() != 0) status.number("succeeded", job.succeeded());
  if (s.failed != 0) status.number("failed", s.failed);
  status.number("ready", s.orphaned ? 0 : job.ready());
  status.end();
}

}  // namespace

void append_job(std::string& out, const core::Job& job, uint64_t version) {
  const auto at = plain_metadata(job);
  if (!at) {
    out += dumped(job_json(job, version));
    return;
  }
  const std::string_view text = job.object().json;
  out += text.substr(0, at->end);
  append_version(out, *at, version);
  out += text.substr(at->end, text.size() - at->end - 1);
  out += ",\"status\":";
  append_job_status(out, job);
  out += '}';
}

void append_job_metadata(std::string& out, const core::Job& job, uint64_t version) {
  const auto at = plain_metadata(job);
  if (!at) {
    out += dumped(job_json(job, version).at("metadata"));
    return;
  }
  out += std::string_view(job.object().json).substr(at->begin, at->end - at->begin);
  append_version(out, *at, version);
  out += '}';
}

void append_summary_metadata(std::string& out, const core::Job& job, uint64_t version) {
  Members meta(out);
  append_summary_meta(meta, job, version);
  meta.end();
}

void append_job_summary(std::string& out, const core::Job& job, uint64_t version) {
  const core::JobSpec& spec = job.spec();
  out += R"({"kind":"Job","apiVersion":"batch/v1","metadata":)";
  append_summary_metadata(out, job, version);
  Members parts(out += ",\"spec\":");
  if (spec.parallelism) parts.number("parallelism", static_cast<uint64_t>(*spec.parallelism));
  if (spec.completions) parts.number("completions", static_cast<uint64_t>(*spec.completions));
  parts.text("completionMode", spec.completion_mode);
  parts.key("template") += R"({"metadata":{},"spec":{"containers":[]}})";
  parts.end();
  out += ",\"status\":";
  append_summary_status(out, job);
  out += '}';
}

void append_job_status(std::string& out, const core::Job& job) {
  const core::JobState& s = job.state();
  if (!s.external_status.empty()) {
    out += dumped(parse_ordered(s.external_status));
    return;
  }
  Members status(out);
  if (!s.conditions.empty() || !s.own_conditions.empty() || s.hold || s.overrides)
    append_conditions(status.key("conditions"), s, s.conditions, s.own_conditions);
  if (s.started_at) status.text("startTime", time_text(*s.started_at));
  if (s.completed_at) status.text("completionTime", time_text(*s.completed_at));
  // An orphaned job no longer owns its pods.
  if (job.active() != 0 && !s.orphaned) status.number("active", job.active());
  if (job.succeeded() != 0) status.number("succeeded", job.succeeded());
  if (s.failed != 0) status.number("failed", s.failed);
  if (job.indexed() && !s.completed.empty()) status.text("completedIndexes", s.completed.text());
  if (s.synced) {
    if (job.per_index() && !s.index_limits_off)
      status.text("failedIndexes", s.failed_indexes.text());
    if (const core::IndexSet cancelled = core::cancelled_for_good(s); !cancelled.empty())
      status.text("cancelledIndexes", cancelled.text());
    status.number("ready", s.orphaned ? 0 : job.ready());
    status.number("terminating", s.orphaned ? 0 : job.terminating());
    status.key("uncountedTerminatedPods") += "{}";
  }
  status.end();
}

OrderedJson job_status(const core::Job& job) {
  std::string text;
  append_job_status(text, job);
  return parse_ordered(text);
}

OrderedJson job_json(const core::Job& job, uint64_t version) {
  const core::JobState& s = job.state();
  OrderedJson json = parse_ordered(job.object().json);
  MUSTER_CHECK(json.is_object(), job.id(), job.object().json);
  OrderedJson& meta = json["metadata"];
  meta["resourceVersion"] = std::to_string(version);
  if (s.deleted_at) {
    meta["deletionTimestamp"] = time_text(*s.deleted_at);
    meta["deletionGracePeriodSeconds"] = 0;
    // Removed with the last pod; a job that still exists then waits for another finalizer.
    bool foreground = !s.background_deleted && !s.orphaned && !s.deletion_waits;
    const auto& names = job.object().meta.finalizers;
    const bool there =
        std::find(names.begin(), names.end(), core::kForegroundFinalizer) != names.end();
    if (foreground && !there && (job.open_count() != 0 || names.empty()))
      meta["finalizers"].push_back(core::kForegroundFinalizer);
  }
  json["status"] = job_status(job);
  return json;
}

}  // namespace muster::api
