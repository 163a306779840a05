// muster taint: adds taints to nodes and removes them, as kubectl taint does. A taint keeps away
// new pods that do not tolerate it; with NoExecute, running pods have to leave, too.
#include "cli/verbs/verb.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"

#include <algorithm>
#include <iostream>

namespace muster::cli {

struct TaintOptions {
  struct Change {
    std::string key, value, effect;  // to be removed with an empty effect: whatever it is
    bool add = true;
  };
  Target target;
  std::vector<std::string> nodes;
  std::vector<Change> changes;
  std::string reason;  // may be empty
};

namespace {

constexpr int kTries = 5;  // when others change the node at the same time

// "KEY=VALUE:EFFECT", "KEY:EFFECT" or, to remove it, "KEY-" or "KEY:EFFECT-"; absent: a node.
std::optional<TaintOptions::Change> taint_of(std::string word) {
  TaintOptions::Change change;
  if (word.ends_with('-')) {
    change.add = false;
    word.pop_back();
  }
  const size_t colon = word.rfind(':');
  if (colon == std::string::npos && change.add) return std::nullopt;
  if (colon != std::string::npos) change.effect = word.substr(colon + 1);
  const std::string left = word.substr(0, colon);
  const size_t equals = left.find('=');
  change.key = left.substr(0, equals);
  if (equals != std::string::npos) change.value = left.substr(equals + 1);
  return change;
}

bool concerns(const TaintOptions::Change& change, const Json& taint) {
  return text_at(taint, {"key"}) == change.key &&
         (change.effect.empty() || text_at(taint, {"effect"}) == change.effect);
}

// The taints after the changes.
Json changed(const Json& taints, const std::vector<TaintOptions::Change>& changes) {
  Json all = Json::array();
  for (const Json& taint : taints) {
    const bool goes = std::ranges::any_of(
        changes, [&taint](const auto& change) { return concerns(change, taint); });
    if (!goes) all.push_back(taint);
  }
  for (const auto& [key, value, effect, add] : changes) {
    if (!add) continue;
    all.push_back({{"key", key}, {"effect", effect}});
    if (!value.empty()) all.back()["value"] = value;
  }
  return all;
}

// Fails if the node has none of the taints that a change removes.
Status removable(const std::string& node, const Json& taints,
                 const std::vector<TaintOptions::Change>& changes) {
  for (const TaintOptions::Change& change : changes) {
    const auto this_one = [&change](const Json& taint) { return concerns(change, taint); };
    if (change.add || std::ranges::any_of(taints, this_one)) continue;
    return Error{Errc::not_found,
                 "node/" + node + " has no taint " + change.key +
                     (change.effect.empty() ? "" : ":" + change.effect),
                 {}};
  }
  return Nothing{};
}

Status taint(ApiClient& client, const std::string& node, const TaintOptions& options) {
  const std::string path = object_path(Kind::node, "", node);
  for (int tries = kTries;; --tries) {
    auto found = object(client, path);
    if (!found) return found.error();
    if (Status there = removable(node, at(*found, {"spec", "taints"}), options.changes); !there)
      return there;
    Json patch = {
        {"metadata", {{"resourceVersion", text_at(*found, {"metadata", "resourceVersion"})}}},
        {"spec", {{"taints", changed(at(*found, {"spec", "taints"}), options.changes)}}}};
    if (!options.reason.empty())
      patch["metadata"]["annotations"]["muster.dev/taint-reason"] = options.reason;
    auto done = change_object(client, path, patch);
    if (done) return Nothing{};
    if (done.error().code != Errc::conflict || tries == 1) return done.error();
  }
}

}  // namespace

int execute(const TaintOptions& options) {
  const auto client = connect(options.target);
  const bool adds =
      std::ranges::any_of(options.changes, [](const auto& change) { return change.add; });
  int code = kDone;
  for (const std::string& node : options.nodes) {
    if (const Status done = taint(*client, node, options); !done) {
      code = fail(done.error());
      if (code == kUnreachable) return code;
      continue;
    }
    std::cout << "node/" << node << (adds ? " tainted" : " untainted") << std::endl;
  }
  return code;
}

Verb taint_verb() {
  struct Words {
    TaintOptions o;
    std::vector<std::string> what;
  };
  auto w = std::make_shared<Words>();
  return {.title = {"Nodes", "taint", "Add taints to nodes, or remove them"},
          .rows = {{"what", "NODE... KEY[=VALUE]:EFFECT...",
                    "Nodes, by name, and taints to add (KEY- removes them); EFFECT is NoSchedule, "
                    "PreferNoSchedule or NoExecute",
                    &w->what, kAnything, kRequired},
                   reason_row(w->o.reason)},
          .asks = {&w->o.target, ""},
          .footer =
              "Examples:\n  muster taint node-a course=hpc1:NoSchedule --reason 'the HPC course'\n"
              "  muster taint node-a course-",
          .finish = [w](const Given&) -> Judged {
            for (const std::string& word : w->what) {
              if (auto change = taint_of(word)) {
                if (change->key.empty() || (change->add && change->effect.empty()))
                  return Usage{"`" + word + "`: must be KEY[=VALUE]:EFFECT or KEY-"};
                w->o.changes.push_back(std::move(*change));
              } else {
                w->o.nodes.push_back(node_name(word));
              }
            }
            if (w->o.nodes.empty()) return Usage{"taint what? a node before the taints"};
            if (w->o.changes.empty())
              return Usage{"taint how? KEY[=VALUE]:EFFECT, or KEY- to remove it"};
            return judged(check_reason(w->o.reason), w->o);
          }};
}

}  // namespace muster::cli
