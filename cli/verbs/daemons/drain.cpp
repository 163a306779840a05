// muster drain: cordons a node and waits until its pods have ended, showing which ones. --now, or
// an expired --deadline, evicts the rest: these pods fail with
// DisruptionTarget/EvictionByEvictionAPI and their jobs run them elsewhere.
#include "cli/verbs/daemons/drain.hpp"

#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/status_line.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <iostream>

namespace muster::cli {

namespace {

constexpr Millis kDrainLook = 500;  // between two polls of the pods
constexpr size_t kNamed = 5;        // pods named in a line

Result<std::vector<Json>> running_on(ApiClient& client, const std::string& node) {
  auto list = object(client, "/api/v1/pods?fieldSelector=" + url_encoded("spec.nodeName=" + node));
  if (!list) return list.error();
  std::vector<Json> running;
  for (const Json& pod : at(*list, {"items"})) {
    const std::string phase = text_at(pod, {"status", "phase"});
    if (phase != "Succeeded" && phase != "Failed") running.push_back(pod);
  }
  return running;
}

std::string names_of(const std::vector<Json>& pods) {
  std::string text;
  for (size_t i = 0; i < pods.size() && i < kNamed; ++i)
    text += (i ? ", " : "") + text_at(pods[i], {"metadata", "name"});
  if (pods.size() > kNamed) text += " and " + std::to_string(pods.size() - kNamed) + " more";
  return text;
}

std::string pods_text(size_t count) {
  return std::to_string(count) + (count == 1 ? " pod" : " pods");
}

// "waiting for 2 pods: a-1-x, a-2-y  00:12"; on a terminal after a bar of the pods that have left.
std::string waiting_text(const std::vector<Json>& pods, size_t most, Millis elapsed_ms, bool bar) {
  return (bar ? bar_text(most - pods.size(), most) : "") + "waiting for " + pods_text(pods.size()) +
         ": " + names_of(pods) + "  " + clock_span(elapsed_ms);
}

// Skips pods that are being deleted: they end anyway.
Status evict(ApiClient& client, const std::vector<Json>& pods) {
  for (const Json& pod : pods) {
    if (!text_at(pod, {"metadata", "deletionTimestamp"}).empty()) continue;
    auto answer = client.post(object_path(Kind::pod, text_at(pod, {"metadata", "namespace"}),
                                          text_at(pod, {"metadata", "name"})) +
                                  "/eviction",
                              R"({"apiVersion":"policy/v1","kind":"Eviction"})");
    if (!answer) return answer.error();
    if (!answer->ok() && answer->status != 404) return refusal(*answer);
  }
  return Nothing{};
}

}  // namespace

std::string ways_on(const std::string& node, const std::string& resume) {
  return "\n  undo:    muster uncordon " + node + (resume.empty() ? "" : "\n  resume:  " + resume);
}

int execute(const DrainOptions& options) {
  Signals signals;
  const auto client = connect(options.target);
  return drain(*client, options, signals, "muster drain " + options.node);
}

int drain(ApiClient& client, const DrainOptions& options, Signals& signals,
          const std::string& resume) {
  auto cordoned = change_object(client, object_path(Kind::node, "", options.node),
                                cordon_patch(options.reason));
  if (!cordoned) return fail(cordoned.error());
  const std::string node = "node/" + options.node;
  std::cout << node << " cordoned: it gets no new pods" << std::endl;
  const Millis begin = boot_now();
  StatusLine line(begin, options.target.color);
  const auto interrupted = [&](const std::string& left) {
    line.clear();
    return fail(kInterrupted, "interrupted: " + node + " stays cordoned, " + left + " still there" +
                                  ways_on(options.node, resume));
  };
  size_t most = 0;
  Millis answered = begin;
  for (bool evicted = false;;) {
    auto pods = running_on(client, options.node);
    if (!pods) {
      // Wait while the coordinator restarts.
      const bool away = pods.error().code == Errc::unavailable;
      if (!away || boot_now() - answered > kAbsenceMax) {
        line.clear();
        return fail(pods.error());
      }
      if (signals.next(kDrainLook) != 0) return interrupted("pods");
      continue;
    }
    answered = boot_now();
    if (pods->empty()) break;
    const bool late = options.deadline_ms && boot_now() - begin >= *options.deadline_ms;
    if ((options.now || late) && !evicted) {
      line.clear();
      std::cout << (late ? "--deadline expired: evicting " : "evicting ") << pods_text(pods->size())
                << std::endl;
      Status done = evict(client, *pods);
      if (!done && done.error().code != Errc::unavailable) return fail(done.error());
      evicted = static_cast<bool>(done);  // else evict the remaining pods again
    }
    most = std::max(most, pods->size());
    const Millis now = boot_now();
    line.show(now, names_of(*pods),
              [&] { return waiting_text(*pods, most, line.elapsed(now), line.terminal()); });
    if (signals.next(kDrainLook) != 0) return interrupted(pods_text(pods->size()));
  }
  line.clear();
  std::cout << node << " drained: no pods left" << std::endl;
  return kDone;
}

Verb drain_verb() {
  struct Words {
    DrainOptions o;
    std::string deadline;
  };
  auto w = std::make_shared<Words>();
  return {.title = {"Nodes", "drain", "Cordon a node and wait until its pods have finished"},
          .rows = {{"node", "NODE", "Node to drain", &w->o.node, kAnything, kRequired},
                   {"--now", "", "Evict pods immediately; their indexes run again on other nodes",
                    &w->o.now},
                   {"--deadline", "T",
                    "Evict pods that are still running after this time, such as 2h (default: wait "
                    "for them)",
                    &w->deadline},
                   reason_row(w->o.reason)},
          .asks = {&w->o.target, ""},
          .footer =
              "Examples:\n  muster drain node-a\n  muster drain node-a --deadline 2h\n"
              "Exit codes: 0 drained, 130 interrupted (the node stays cordoned).",
          .finish = [w](const Given&) -> Judged {
            w->o.node = node_name(w->o.node);
            if (auto wrong = check_reason(w->o.reason)) return *wrong;
            if (w->o.now && !w->deadline.empty())
              return Usage{"--now and --deadline are mutually exclusive"};
            return judged(read_limit("--deadline", w->deadline, w->o.deadline_ms), w->o);
          }};
}

}  // namespace muster::cli
