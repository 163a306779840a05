// Plays the transcripts in tests/golden/nodes/*.txt against core::cluster::decide().
//
//   grace 16s          the settings before the first other line: --node-grace; line=1,100r (starts
//                      of the coordinator as epochs; r: restored)
//   register a [dir=d1 boot=b1 secret=s slots=2 cluster= key= epoch= commit= running=j7/1#0,…
//            waiting= ended= labels=k:v,… claims=PATTERN:SLOTS remote ends]   by default of our
//            cluster, with the directory d-a, the boot b1 and epoch 1
//   jobs [j7/1#0 …]    the jobs answer the last AskJobs: these pods must end
//   up n1  down n1     its session begins, ends           leaves n1   its agent shuts down
//   beat n1 [REASON] [started=3] [check=ok|WORD]   a heartbeat, with this trouble; so many
//   processes
//            have started there (as before, once it was given); its health check passes or fails
//   tick 6 [n1 …]      this many ticks, each after a heartbeat of these nodes
//   spec a [cordon] [taint=KEY:EFFECT] [stale]            delete a
//   queues a:3 b       all queues that there are, with at most so many pods
//   want j1 3 [priority=5 gang queue=a]   all slots granted so far have arrived     left j1
//   free j1 n1=2 [avoid=n1 [failed=1 user=1000]]   so many of its pods, by default 1, could not
//            start on the node to avoid
//   place [+5s]        a round of placement, after this time
//   restart            replaces the cluster by the one that the rows of its nodes make
//
// Answers begin with "> "; "now" marks effects that wait for no disk. Heartbeats of `tick`, and
// records that only repeat (TickPassed, NodeResponded) are not printed.
// MUSTER_GOLDEN_WRITE=1 rewrites the answers.
#include "core/cluster/rules/decide.hpp"
#include "tests/unit/core/cluster/rules/cluster_text.hpp"
#include "tests/unit/core/transcript_file.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>

namespace muster::core::cluster {

namespace {

// "16s", "100r"
int64_t before_letter(std::string_view text) {
  return number(text.substr(0, text.find_first_not_of("0123456789")));
}
// "n1", "j7", "+5s"
int64_t after_letter(std::string_view text) {
  return before_letter(text.substr(1));
}
std::vector<PodId> pods_in(const std::string& text) {
  std::vector<PodId> pods;
  for (const std::string& one : split(text, ',')) {
    const size_t slash = one.find('/'), hash = one.find('#');
    pods.push_back({static_cast<JobId>(number(one.substr(1, slash - 1))),
                    static_cast<uint32_t>(number(one.substr(slash + 1, hash - slash - 1))),
                    static_cast<uint32_t>(number(one.substr(hash + 1)))});
  }
  return pods;
}

class NodesTranscript {
 public:
  std::vector<std::string> play(const std::string& line) {
    words_ = split(line, ' ');
    values_ = options(words_, 1);
    answers_.clear();
    const std::string& verb = words_[0];
    if (verb == "grace") return begin(), answers_;
    if (!cluster_) cluster_ = std::make_unique<Cluster>(settings_, std::vector<NodeInfo>{});
    if (verb == "restart") return restart(), answers_;
    if (verb == "tick") return ticks(), answers_;
    if (verb == "place" && words_.size() > 1) now_.up_ms += after_letter(words_[1]) * 1'000;
    const auto event = event_of(verb);
    if (!event) return {"error: no such command: " + verb};
    decided(*event);
    return answers_;
  }

 private:
  void begin() {
    settings_.node_grace_ms = before_letter(words_.at(1)) * 1'000;
    if (const auto line = values_.find("line"); line != values_.end()) {
      std::vector<EpochEntry> entries;
      for (const std::string& one : split(line->second, ',')) {
        const auto epoch = static_cast<uint64_t>(before_letter(one));
        entries.push_back({epoch, epoch, epoch, one.ends_with('r')});
      }
      settings_.line = EpochLine(entries);
    }
  }

  bool has(const std::string& key) const { return values_.contains(key); }
  std::string value(const std::string& key, const std::string& otherwise = "") const {
    const auto it = values_.find(key);
    return it == values_.end() ? otherwise : it->second;
  }

  Hello hello() {
    Hello hello;
    hello.link = ++links_;
    hello.node = words_.at(1);
    hello.work_dir_id = value("dir", "d-" + hello.node);
    hello.boot_id = value("boot", "b1");
    hello.secret = value("secret", "s-" + hello.work_dir_id);
    hello.cluster_id = value("cluster", "ours");
    hello.cluster_key = value("key", "key");
    hello.highest_epoch = static_cast<uint64_t>(number(value("epoch", "1")));
    hello.epoch_nonce = hello.highest_epoch;
    hello.highest_commit = static_cast<uint64_t>(number(value("commit", "1")));
    hello.slots = static_cast<uint32_t>(number(value("slots", "2")));
    hello.must_prove = has("remote");
    hello.running = pods_in(value("running"));
    hello.waiting = pods_in(value("waiting"));
    hello.ended = pods_in(value("ended"));
    for (const std::string& label : split(value("labels"), ',')) {
      const auto pair = split(label, ':');
      hello.labels[pair.at(0)] = pair.size() > 1 ? pair[1] : "";
    }
    if (has("claims")) {
      const auto claims = split(value("claims"), ':');
      hello.claims.emplace();
      hello.claims->labels = {claims.at(0)};
      hello.claims->slots_max = static_cast<uint32_t>(number(claims.at(1)));
    }
    return hello;
  }

  // The session of a node, as the last welcome made it.
  uint64_t link_of(NodeId node) { return sessions_[node]; }
  NodeId node_at(size_t word) { return static_cast<NodeId>(after_letter(words_.at(word))); }

  std::optional<Event> event_of(const std::string& verb) {
    if (verb == "register") return AgentRegisters{++tokens_, hello(), has("ends")};
    if (verb == "jobs") {
      JobsAnswered event = asked_;
      for (size_t i = 1; i < words_.size(); ++i) event.end.push_back(pods_in(words_[i]).at(0));
      return event;
    }
    if (verb == "up") return LinkUp{node_at(1), link_of(node_at(1))};
    if (verb == "down") return LinkDown{node_at(1), link_of(node_at(1))};
    if (verb == "leaves") return AgentLeaves{node_at(1), link_of(node_at(1))};
    if (verb == "beat") {
      const NodeId node = node_at(1);
      const bool troubled = words_.size() > 2 && words_[2].find('=') == std::string::npos;
      if (has("started")) started_[node] = static_cast<uint64_t>(number(value("started")));
      if (has("check")) checks_[node] = {true, value("check") == "ok" ? "" : value("check")};
      return beat(node, troubled ? NodeTrouble{words_[2], "the message"} : NodeTrouble{});
    }
    if (verb == "spec") return spec();
    if (verb == "delete") return DeleteRequest{++tokens_, words_.at(1)};
    if (verb == "end-strangers") return EndStrangersRequest{++tokens_, words_.at(1)};
    if (verb == "want") return want();
    if (verb == "left") return JobLeft{static_cast<JobId>(after_letter(words_.at(1)))};
    if (verb == "free") return freed();
    if (verb == "place") return PlaceNow{};
    if (verb == "queues") return queues();
    return std::nullopt;
  }

  QueuesChanged queues() {
    QueuesChanged event;
    for (size_t i = 1; i < words_.size(); ++i) {
      const auto name_and_pods = split(words_[i], ':');
      Queue queue{.name = name_and_pods.at(0)};
      if (name_and_pods.size() > 1)
        queue.total.pods = static_cast<uint32_t>(number(name_and_pods[1]));
      event.queues.push_back(queue);
    }
    return event;
  }

  Heartbeat beat(NodeId node, NodeTrouble trouble = {}) {
    Heartbeat beat{node, link_of(node), std::move(trouble)};
    if (const auto known = started_.find(node); known != started_.end())
      beat.started = known->second;
    beat.check = checks_[node];
    return beat;
  }

  Event spec() {
    const NodeId node = cluster_->newest(words_.at(1));
    SpecRequest event{++tokens_, words_.at(1), {}, {}};
    if (node != kNoNode && !has("stale")) event.seen = cluster_->node(node)->info.spec;
    event.spec.unschedulable = has("cordon");
    if (has("taint")) {
      const auto taint = split(value("taint"), ':');
      event.spec.taints = {{taint.at(0), "", taint.at(1)}};
    }
    return event;
  }

  Event want() {
    const auto job = static_cast<JobId>(after_letter(words_.at(1)));
    auto object = std::make_shared<JobObject>();
    object->spec.pod.priority = static_cast<int32_t>(number(value("priority", "0")));
    if (has("gang")) object->meta.annotations["muster.dev/gang"] = "true";
    if (has("owner")) object->meta.annotations["muster.dev/owner-uid"] = value("owner");
    if (has("queue")) object->meta.annotations["muster.dev/queue"] = value("queue");
    if (!objects_[job] || has("priority") || has("gang") || has("owner") || has("queue"))
      objects_[job] = object;
    return Want{job, static_cast<uint32_t>(number(words_.at(2))), granted_[job], objects_[job]};
  }

  Event freed() {
    Freed event{static_cast<JobId>(after_letter(words_.at(1))), {}};
    for (const auto& [key, count] : values_)
      if (key != "avoid" && key.starts_with('n'))
        event.slots[static_cast<NodeId>(after_letter(key))] = static_cast<uint32_t>(number(count));
    if (has("avoid")) {
      const auto node = static_cast<NodeId>(after_letter(value("avoid")));
      event.avoid = {node};
      event.failed_starts[node] = {static_cast<uint32_t>(number(value("failed", "1"))),
                                   "cwd /home/u: No such file or directory"};
    }
    if (has("user")) event.user = static_cast<uint32_t>(number(value("user")));
    return event;
  }

  void ticks() {
    for (int64_t left = number(words_.at(1)); left > 0; --left) {
      now_.wall_ms += tick_ms(settings_.node_grace_ms);
      now_.up_ms += tick_ms(settings_.node_grace_ms);
      for (size_t i = 2; i < words_.size(); ++i) decided(beat(node_at(i)));
      decided(Tick{});
    }
  }

  void decided(const Event& event) {
    const Decision decision = decide(*cluster_, event, now_);
    for (const Record& record : decision.records) {
      if (const auto* uses = std::get_if<UsesNoted>(&record))
        settings_.noted = uses->noted;
      else if (is_durable(record))
        rows_[node_of(record)] = cluster_->node(node_of(record))->info;
      if (!std::holds_alternative<TickPassed>(record) &&
          !std::holds_alternative<NodeResponded>(record))
        answers_.push_back("record " + to_text(record));
    }
    for (const AtOnce& effect : decision.at_once) {
      if (const auto* grant = std::get_if<Grant>(&effect))
        for (auto [node, count] : grant->slots) granted_[grant->job] += count;
      answers_.push_back("now " + to_text(effect));
    }
    for (const Effect& effect : decision.effects) {
      if (const auto* ask = std::get_if<AskJobs>(&effect)) {
        const auto* hello = &std::get<AgentRegisters>(event).hello;
        asked_ = {ask->token, ask->node, ask->restored, hello->running, {}, ask->spared};
        sessions_[ask->node] = ask->link;
      }
      answers_.push_back("effect " + to_text(effect));
    }
  }

  void restart() {
    std::vector<NodeInfo> nodes;
    for (auto& [id, row] : rows_) {
      row.health = row.gone ? NodeInfo::Health::lost : NodeInfo::Health::unknown;
      row.draining = row.loss_held = false;
      row.trouble = {};
      row.check = {};
      row.starts_failing.clear();
      nodes.push_back(row);
      answers_.push_back("row n" + std::to_string(id) + " " + row.name + (row.gone ? " gone" : "") +
                         (row.deleted ? " deleted" : "") +
                         (row.spec.unschedulable ? " cordoned" : ""));
    }
    settings_.started_ms = now_.wall_ms;
    cluster_ = std::make_unique<Cluster>(settings_, nodes);
    granted_.clear();
  }

  Settings settings_{"ours", "key", EpochLine({{1, 1, 1}})};
  Now now_{1'767'225'600'000, 1'000, 1, 8};
  std::unique_ptr<Cluster> cluster_;
  std::vector<std::string> words_, answers_;
  std::map<std::string, std::string> values_;
  std::map<NodeId, NodeInfo> rows_;
  std::map<NodeId, uint64_t> sessions_;
  std::map<JobId, uint64_t> granted_;
  std::map<JobId, JobObjectPtr> objects_;
  std::map<NodeId, uint64_t> started_;
  std::map<NodeId, HealthCheck> checks_;
  JobsAnswered asked_;
  uint64_t links_ = 0, tokens_ = 0;
};

class NodesGolden : public testing::TestWithParam<std::string> {};

TEST_P(NodesGolden, TranscriptIsReproduced) {
  NodesTranscript transcript;
  expect_answers("tests/golden/nodes/" + GetParam() + ".txt",
                 [&](const std::string& line) { return transcript.play(line); });
}

INSTANTIATE_TEST_SUITE_P(Transcripts, NodesGolden,
                         testing::ValuesIn(transcripts_in("tests/golden/nodes")),
                         [](const auto& info) { return info.param; });

}  // namespace

}  // namespace muster::core::cluster
