#include "api/view/query/selector.hpp"

#include "api/kube/objects/kept_object.hpp"
#include "api/view/model/event_text.hpp"
#include "api/view/query/object_json.hpp"
#include "base/text/trim.hpp"
#include "core/pod_name.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace muster::api {
namespace {

// Splits at commas outside parentheses. Nothing if parentheses are unbalanced or nested.
std::optional<std::vector<std::string_view>> parts(std::string_view text) {
  std::vector<std::string_view> found;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      found.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    } else if (text[i] == '(') {
      if (++depth > 1) return std::nullopt;
    } else if (text[i] == ')' && --depth < 0) {
      return std::nullopt;
    }
  }
  if (depth != 0) return std::nullopt;
  return found;
}

bool plain(std::string_view text, bool may_be_empty) {
  if (text.empty()) return may_be_empty;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '/';
  });
}

Error unreadable(std::string_view text) {
  return Error{Errc::invalid, "unable to parse requirement: \"" + std::string(text) + "\"", {}};
}

std::optional<Error> too_long(std::string_view what, std::string_view text) {
  if (text.size() <= Selector::kBytesMax) return std::nullopt;
  return Error{Errc::invalid,
               std::string(what) + ": it has " + std::to_string(text.size()) + " bytes; at most " +
                   std::to_string(Selector::kBytesMax) + " are allowed",
               {}};
}

std::span<const std::string_view> fields_of(Kind kind) {
  static constexpr std::array<std::string_view, 3> kJob{"metadata.name", "metadata.namespace",
                                                        "status.successful"};
  static constexpr std::array<std::string_view, 4> kPod{"metadata.name", "metadata.namespace",
                                                        "spec.nodeName", "status.phase"};
  static constexpr std::array<std::string_view, 2> kNode{"metadata.name", "spec.unschedulable"};
  static constexpr std::array<std::string_view, 13> kEvent{"metadata.name",
                                                           "metadata.namespace",
                                                           "involvedObject.kind",
                                                           "involvedObject.namespace",
                                                           "involvedObject.name",
                                                           "involvedObject.uid",
                                                           "involvedObject.apiVersion",
                                                           "involvedObject.resourceVersion",
                                                           "involvedObject.fieldPath",
                                                           "reason",
                                                           "reportingComponent",
                                                           "source",
                                                           "type"};
  static constexpr std::array<std::string_view, 2> kLease{"metadata.name", "metadata.namespace"};
  static constexpr std::array<std::string_view, 2> kNamespace{"metadata.name", "status.phase"};
  static constexpr std::array<std::string_view, 1> kNamed{"metadata.name"};
  switch (kind) {
    case Kind::lease:
    case Kind::config_map:
    case Kind::cron_job:
      return kLease;
    case Kind::queue:
    case Kind::priority_class:
      return kNamed;
    case Kind::name_space:
      return kNamespace;
    case Kind::job:
      return kJob;
    case Kind::pod:
      return kPod;
    case Kind::node:
      return kNode;
    case Kind::event:
      return kEvent;
  }
  return {};
}

std::optional<std::string_view> in_map(const core::StringMap& map, std::string_view key) {
  auto it = map.find(std::string(key));
  if (it == map.end()) return std::nullopt;
  return it->second;
}

// The v1 name of an event's field; events.k8s.io/v1 renames some of them.
std::string in_core_words(const std::string& key) {
  constexpr std::string_view kRegarding = "regarding.";
  if (key.starts_with(kRegarding)) return "involvedObject." + key.substr(kRegarding.size());
  return key == "reportingController" ? "reportingComponent" : key;
}

}  // namespace

Result<Selector> Selector::labels(std::string_view text) {
  Selector selector;
  if (auto error = too_long("labelSelector", text)) return *error;
  if (trimmed(text).empty()) return selector;
  auto split = parts(text);
  if (!split) return unreadable(text);
  for (std::string_view part : *split) {
    Rule rule;
    std::string_view key = part;
    if (size_t paren = part.find('('); paren != std::string_view::npos) {
      if (part.back() != ')') return unreadable(part);
      std::string_view head = trimmed(part.substr(0, paren));
      if (head.ends_with(" notin"))
        rule.op = Rule::Op::not_in;
      else if (!head.ends_with(" in"))
        return unreadable(part);
      key = trimmed(head.substr(0, head.size() - (rule.op == Rule::Op::not_in ? 6 : 3)));
      auto values = parts(part.substr(paren + 1, part.size() - paren - 2));
      if (!values) return unreadable(part);
      for (std::string_view value : *values) rule.values.emplace_back(value);
    } else if (size_t sign = part.find('='); sign != std::string_view::npos) {
      const bool differs = sign > 0 && part[sign - 1] == '!';
      rule.op = differs ? Rule::Op::not_in : Rule::Op::in;
      key = trimmed(part.substr(0, differs ? sign - 1 : sign));
      std::string_view value = part.substr(sign + 1);
      if (!differs && value.starts_with('=')) value.remove_prefix(1);
      rule.values.emplace_back(trimmed(value));
    } else if (part.starts_with('!')) {
      rule.op = Rule::Op::absent;
      key = trimmed(part.substr(1));
    } else {
      rule.op = Rule::Op::exists;
    }
    if (!plain(key, false)) return unreadable(part);
    for (const std::string& value : rule.values)
      if (!plain(value, true)) return unreadable(part);
    rule.key = std::string(key);
    if (auto error = selector.add(std::move(rule))) return *error;
  }
  return selector;
}

Result<Selector> Selector::fields(std::string_view text, Kind kind) {
  Selector selector;
  if (auto error = too_long("fieldSelector", text)) return *error;
  if (trimmed(text).empty()) return selector;
  const auto known = fields_of(kind);
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view part = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (part.empty()) continue;
    const size_t sign = part.find('=');
    if (sign == std::string_view::npos || sign == 0)
      return Error{Errc::invalid,
                   "invalid selector: '" + std::string(part) + "'; can't understand '" +
                       std::string(part) + "'",
                   {}};
    const bool differs = part[sign - 1] == '!';
    Rule rule;
    rule.op = differs ? Rule::Op::not_in : Rule::Op::in;
    rule.key = std::string(trimmed(part.substr(0, differs ? sign - 1 : sign)));
    std::string_view value = part.substr(sign + 1);
    if (!differs && value.starts_with('=')) value.remove_prefix(1);
    rule.values.emplace_back(trimmed(value));
    if (kind == Kind::event) rule.key = in_core_words(rule.key);
    if (std::find(known.begin(), known.end(), rule.key) == known.end())
      return Error{Errc::invalid, "field label not supported: " + rule.key, {}};
    if (auto error = selector.add(std::move(rule))) return *error;
  }
  return selector;
}

std::optional<Error> Selector::add(Rule rule) {
  if (rules_.size() == kRulesMax)
    return Error{Errc::invalid,
                 "the selector has more than " + std::to_string(kRulesMax) +
                     " requirements, the maximum; put values of one key together, as in \"a in "
                     "(b,c)\"",
                 {}};
  std::ranges::sort(rule.values);
  rule.values.erase(std::unique(rule.values.begin(), rule.values.end()), rule.values.end());
  rules_.push_back(std::move(rule));
  return std::nullopt;
}

bool Selector::matches(const Lookup& lookup) const {
  return matches_but({}, lookup);
}

bool Selector::matches_but(std::string_view key, const Lookup& lookup) const {
  return std::all_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
    if (!key.empty() && rule.key == key) return true;
    const auto value = lookup(rule.key);
    switch (rule.op) {
      case Rule::Op::exists:
        return value.has_value();
      case Rule::Op::absent:
        return !value.has_value();
      case Rule::Op::in:
        return value && std::ranges::binary_search(rule.values, *value);
      case Rule::Op::not_in:
        return !value || !std::ranges::binary_search(rule.values, *value);
    }
    return false;
  });
}

bool Selector::only_on(std::initializer_list<std::string_view> keys) const {
  return std::all_of(rules_.begin(), rules_.end(), [&keys](const Rule& rule) {
    return std::find(keys.begin(), keys.end(), rule.key) != keys.end();
  });
}

bool Selector::mentions(std::string_view key) const {
  return std::any_of(rules_.begin(), rules_.end(),
                     [&](const Rule& rule) { return rule.key == key; });
}

std::optional<std::string_view> Selector::only(std::string_view key) const {
  for (const Rule& rule : rules_)
    if (rule.key == key && rule.op == Rule::Op::in && rule.values.size() == 1)
      return rule.values.front();
  return std::nullopt;
}

std::string_view phase(const core::Pod& pod) {
  if (pod.ended) return pod.end.succeeded() ? "Succeeded" : "Failed";
  const bool runs = pod.started_at && pod.readiness != core::Readiness::initializing;
  return runs ? "Running" : "Pending";
}

bool Query::matches_kept(const KeptView& view) const {
  if (!ns.empty() && view.kept->ns != ns) return false;
  if (namespaces && view.kept->name == kRootCaName && !namespaces->contains(view.kept->ns))
    return false;
  return labels.matches([&](std::string_view key) { return in_map(view.facts.labels, key); }) &&
         fields.matches([&](std::string_view key) -> std::optional<std::string_view> {
           auto it = view.facts.fields.find(key);
           return it == view.facts.fields.end() ? std::string_view() : it->second;
         });
}

bool Query::matches(const View& view, const Shown& shown) const {
  const Sight sight = viewer.sight(shown);
  if (sight == Sight::nothing) return false;
  // Selectors must not reveal what a summary leaves out.
  if (sight == Sight::summary && !labels.empty()) return false;
  if (shown.job && !ns.empty() && shown.job->object().meta.ns != ns) return false;
  if (shown.kept) return matches_kept(*shown.kept);
  if (labels.empty() && fields.empty()) return true;
  std::string made;  // holds a value that is not stored anywhere
  auto label = [&](std::string_view key) -> std::optional<std::string_view> {
    switch (shown.kind) {
      case Kind::job:
        return in_map(shown.job->object().meta.labels, key);
      case Kind::node:
        return node_label(*shown.node, key);
      case Kind::event:
      case Kind::lease:
      case Kind::config_map:
      case Kind::name_space:
      case Kind::cron_job:
      case Kind::queue:
      case Kind::priority_class:
        return std::nullopt;
      case Kind::pod:
        if (shown.job->indexed() && key == core::kCompletionIndexKey) {
          made = std::to_string(shown.pod->key.index);
          return made;
        }
        for (const core::PodMetaChange& change : shown.pod->meta)
          if (change.label && change.key == key) return change.value;
        return in_map(shown.job->spec().pod.labels, key);
    }
    return std::nullopt;
  };
  if (!labels.matches(label)) return false;
  return fields.matches([&](std::string_view key) -> std::optional<std::string_view> {
    const core::JobMeta* meta = shown.job ? &shown.job->object().meta : nullptr;
    if (key == "metadata.namespace") return meta ? std::string_view(meta->ns) : std::string_view();
    if (shown.kind == Kind::event) {
      if (key == "involvedObject.kind") return "Job";
      if (key == "involvedObject.namespace") return meta->ns;
      if (key == "involvedObject.name") return meta->name;
      if (key == "involvedObject.uid") return meta->uid;
      if (key == "involvedObject.apiVersion") return "batch/v1";
      if (key == "reason") return made = event_reason(*shown.job, *shown.event);
      if (key == "source" || key == "reportingComponent") return "job-controller";
      if (key == "type") return shown.event->warning() ? "Warning" : "Normal";
      if (key == "metadata.name") return made = event_name(*shown.job, *shown.event);
      return "";
    }
    if (shown.kind == Kind::pod) {
      if (key == "status.phase") return phase(*shown.pod);
      if (key == "spec.nodeName") return made = view.node_name(shown.pod->node);
      return made = core::pod_name(meta->name, meta->uid, shown.job->indexed(), shown.pod->key);
    }
    if (shown.kind == Kind::node) {
      if (key == "spec.unschedulable") return shown.node->spec.unschedulable ? "true" : "false";
      return shown.node->name;
    }
    if (key == "status.successful") return made = std::to_string(shown.job->succeeded());
    return meta->name;
  });
}

bool Query::wants(const core::Job& job) const {
  if (!ns.empty() && job.object().meta.ns != ns) return false;
  if (!viewer.sees(kind, job)) return false;
  if (kind == Kind::event) {
    const core::JobMeta& meta = job.object().meta;
    auto name = fields.only("involvedObject.name");
    auto uid = fields.only("involvedObject.uid");
    return (!name || *name == meta.name) && (!uid || *uid == meta.uid);
  }
  if (kind != Kind::pod || job.relabeled()) return true;
  return labels.matches_but(core::kCompletionIndexKey, [&](std::string_view key) {
    return in_map(job.spec().pod.labels, key);
  });
}

bool Query::wants_unloaded(std::string_view name, const UnloadedJob& job) const {
  auto fits = [](std::optional<std::string_view> only, std::string_view is) {
    return !only || *only == is;
  };
  switch (kind) {
    case Kind::job:
      return fits(fields.only("metadata.name"), name);
    case Kind::event:
      return fits(fields.only("involvedObject.name"), name) &&
             fits(fields.only("involvedObject.uid"), job.uid);
    case Kind::pod:
      return !job.named_pods || (fits(labels.only(core::kJobNameLabel), name) &&
                                 fits(labels.only(core::kLegacyJobNameLabel), name) &&
                                 fits(labels.only(core::kControllerUidLabel), job.uid) &&
                                 fits(labels.only(core::kLegacyControllerUidLabel), job.uid));
    case Kind::node:
    case Kind::lease:
    case Kind::config_map:
    case Kind::name_space:
    case Kind::cron_job:
    case Kind::queue:
    case Kind::priority_class:
      break;
  }
  return true;
}

Wanted Query::wanted() const {
  return {
      [this](const core::Job& job) { return wants(job); },
      [this](std::string_view name, const UnloadedJob& job) { return wants_unloaded(name, job); }};
}

bool Query::may_turn() const {
  if (kind == Kind::pod)
    return fields.mentions("spec.nodeName") || fields.mentions("status.phase") ||
           !labels.only_on({core::kCompletionIndexKey, core::kJobNameLabel,
                            core::kLegacyJobNameLabel, core::kControllerUidLabel,
                            core::kLegacyControllerUidLabel});
  if (kind == Kind::event || kept_kind_of(kind))
    return !labels.empty() || fields.mentions("status.phase") || viewer.uid;
  return !labels.empty() || fields.mentions("spec.unschedulable") ||
         fields.mentions("status.successful");
}

}  // namespace muster::api
