// Plays the transcripts in tests/golden/*.txt against core::Job. The grammar is in transcript.hpp;
// MUSTER_GOLDEN_WRITE=1 rewrites the answers.
#include "core/job/fold/text.hpp"
#include "core/spec/rules/defaults.hpp"
#include "tests/unit/core/job/transcript.hpp"
#include "tests/unit/core/transcript_file.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>

namespace muster::core {

namespace {

Millis span(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.ends_with("ms")) return number(text.substr(0, text.size() - 2));
  EXPECT_TRUE(text.ends_with('s')) << "no span: \"" << text << "\"";
  return number(text.substr(0, text.size() - 1)) * 1000;
}

NodeId node(std::string_view text) {
  EXPECT_TRUE(text.starts_with('n')) << "no node: \"" << text << "\"";
  return static_cast<NodeId>(number(text.substr(1)));
}

PodKey pod(std::string_view text) {
  auto hash = text.find('#');
  EXPECT_NE(hash, std::string_view::npos) << "no pod: \"" << text << "\"";
  return {static_cast<uint32_t>(number(text.substr(0, hash))),
          static_cast<uint32_t>(number(text.substr(hash + 1)))};
}

EndCause cause(const std::string& text) {
  for (int i = 0; i < kEndCauses; ++i)
    if (name(static_cast<EndCause>(i)) == text) return static_cast<EndCause>(i);
  ADD_FAILURE() << "no cause: \"" << text << "\"";
  return EndCause::exited;
}

PodsReported::Ended ended(const std::vector<std::string>& words, size_t at, bool with_start) {
  auto set = options(words, at + 1);
  PodsReported::Ended end;
  end.pod = pod(words[at]);
  if (set.contains("exit")) end.exit_code = static_cast<int32_t>(number(set["exit"]));
  if (set.contains("signal")) {
    end.signal = static_cast<int32_t>(number(set["signal"]));
    end.exit_code = 128 + end.signal;
  }
  if (set.contains("cause")) end.cause = cause(set["cause"]);
  if (set.contains("age")) end.ended_at = {span(set["age"])};
  if (with_start) end.start = {static_cast<int32_t>(100 + end.pod.index), end.ended_at};
  return end;
}

// The event that a line describes, or nullopt if its verb is unknown.
std::optional<Event> event(const std::vector<std::string>& words, std::string_view line,
                           uint64_t& tokens) {
  const std::string& verb = words[0];
  if (verb == "granted") {
    SlotsGranted granted;
    for (const auto& [key, count] : options(words, 1)) {
      const auto value = static_cast<uint32_t>(number(count));
      if (key == "memory")
        granted.steps.memory = static_cast<uint8_t>(value);
      else if (key == "time")
        granted.steps.time = static_cast<uint8_t>(value);
      else
        granted.slots[node(key)] = value;
    }
    return granted;
  }
  if (verb == "start") {
    PodsReported report{++tokens, node(words.at(1)), {}, {}};
    for (size_t i = 2; i < words.size(); ++i) {
      PodKey key = pod(words[i]);
      report.starts.push_back({key, static_cast<int32_t>(100 + key.index), 0, 0});
    }
    return report;
  }
  if (verb == "end" || verb == "report") {
    PodsReported report{++tokens, node(words.at(1)), {}, {}};
    bool first = true;
    for (const auto& item : split(line, ',')) {
      auto parts = split(item, ' ');
      report.ends.push_back(ended(parts, first ? 2 : 0, verb == "report"));
      first = false;
    }
    return report;
  }
  if (verb == "nodelost") {
    return NodeLost{node(words.at(1)), words.size() > 2 && words[2] == "deleted"
                                           ? EndCause::node_deleted
                                           : EndCause::node_lost};
  }
  if (verb == "registered") {
    NodeRegistered registered{node(words.at(1)), {}};
    for (const auto& key : split(options(words, 2)["known"], ','))
      registered.known.insert(pod(key));
    return registered;
  }
  if (verb == "ready") return NodeReady{node(words.at(1))};
  if (verb == "tick") return TimePassed{};
  if (verb == "delete")
    return JobDeletion{++tokens, !(words.size() > 1 && words[1] == "foreground")};
  if (verb == "hold" || verb == "release") {
    auto set = options(words, 2);
    return HoldChange{++tokens, verb == "hold", words.at(1), set.contains("operator"),
                      set["reason"]};
  }
  if (verb == "cancel") {
    Cancellation cancellation{++tokens, words.at(1)};
    if (words.size() > 2) cancellation.indexes = IndexSet::parse_lenient(words[2], kAnyIndex);
    return cancellation;
  }
  if (verb == "priority") {  // as it was seen, and as it becomes
    const auto priority = [](const std::string& word) {
      Overrides overrides;
      if (word != "none") overrides.priority = static_cast<int32_t>(number(word));
      return overrides;
    };
    return OverridesChange{++tokens, priority(words.at(1)), priority(words.at(2)), words.at(3)};
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> Transcript::submit(const std::vector<std::string>& words) {
  auto object = std::make_shared<JobObject>();
  object->meta.name = "j";
  object->meta.uid = "00000000-0000-4000-8000-000000000001";
  JobSpec& spec = object->spec;
  for (const auto& [key, value] : options(words, 1)) {
    if (key == "completions")
      spec.completions = static_cast<int32_t>(number(value));
    else if (key == "parallelism")
      spec.parallelism = static_cast<int32_t>(number(value));
    else if (key == "mode")
      spec.completion_mode = value;
    else if (key == "backoffLimit")
      spec.backoff_limit = static_cast<int32_t>(number(value));
    else if (key == "backoffLimitPerIndex")
      spec.backoff_limit_per_index = static_cast<int32_t>(number(value));
    else if (key == "maxFailedIndexes")
      spec.max_failed_indexes = static_cast<int32_t>(number(value));
    else if (key == "podReplacementPolicy")
      spec.pod_replacement_policy = value;
    else if (key == "gang" || key == "mpi" || key == "restart" || key.starts_with("retry-"))
      object->meta.annotations["muster.dev/" + key] = value;
    else if (key == "base")
      knobs_.backoff_base_ms = span(value);
    else if (key == "max")
      knobs_.backoff_max_ms = span(value);
    else
      return {"error: no such field: " + key};
  }
  if (spec.completion_mode.empty()) spec.completion_mode = "Indexed";
  apply_defaults(object->meta, spec);
  records_.clear();
  job_ = std::make_unique<Job>(kJob, object);
  Record admitted = JobAdmitted{now_, object};
  job_->apply(admitted);
  std::vector<std::string> answers{"record " + to_text(kJob, admitted)};
  records_.push_back(std::move(admitted));
  for (auto& line : decided({TimePassed{}})) answers.push_back(std::move(line));
  return answers;
}

std::vector<std::string> Transcript::decided(std::vector<Event> events) {
  Decision decision = decide(*job_, events, now_, knobs_);
  std::vector<std::string> answers;
  for (auto& record : decision.records) {
    answers.push_back("record " + to_text(kJob, record));
    records_.push_back(std::move(record));
  }
  for (const auto& effect : decision.effects) answers.push_back("effect " + to_text(kJob, effect));
  return answers;
}

std::vector<std::string> Transcript::restart() {
  auto fresh = std::make_unique<Job>(kJob, job_->object_ptr());
  for (const auto& record : records_) fresh->apply(record);
  EXPECT_TRUE(fresh->state() == job_->state())
      << "folding the records gives a different job: " << status_text(*fresh) << " instead of "
      << status_text(*job_);
  Job from_snapshot(kJob, job_->object_ptr(), fresh->state());
  EXPECT_EQ(status_text(from_snapshot), status_text(*fresh));
  job_ = std::move(fresh);
  std::vector<std::string> answers;
  for (const auto& effect : job_->desired_effects(kNoNode))
    answers.push_back("desired " + to_text(kJob, effect));
  answers.push_back("desired " + to_text(kJob, job_->slots_wanted()));
  return answers;
}

std::vector<std::string> Transcript::play(std::string_view line) {
  bool held = line.starts_with("& ");
  if (held) line.remove_prefix(2);
  auto words = split(line, ' ');
  if (words.empty()) return {};
  if (words[0] == "submit") return submit(words);
  if (!job_) return {"error: no job was submitted"};
  if (words[0] == "restart") return restart();
  if (words[0] == "status") return {"status " + status_text(*job_)};
  if (words[0] == "tick") now_ += span(words.at(1));
  auto reached = event(words, line, tokens_);
  if (!reached) return {"error: no such command: " + words[0]};
  waiting_.push_back(std::move(*reached));
  if (held) return {};
  return decided(std::exchange(waiting_, {}));
}

namespace {

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, TranscriptIsReproduced) {
  Transcript transcript;
  expect_answers("tests/golden/" + GetParam() + ".txt",
                 [&](const std::string& line) { return transcript.play(line); });
}

INSTANTIATE_TEST_SUITE_P(Transcripts, Golden, testing::ValuesIn(transcripts_in("tests/golden")),
                         [](const auto& info) { return info.param; });

// Every event prints on one line that starts with its name.
TEST(Text, EventsPrintOnOneLine) {
  EXPECT_EQ(to_text(7, SlotsGranted{{{1, 2}, {3, 1}}}), "SlotsGranted n1=2, n3=1");
  PodsReported report{9, 1, {{{4, 0}, 55, 0, 0}}, {}};
  report.starts[0].cpus = "0-1";
  PodsReported::Ended end;
  end.pod = {5, 1};
  end.exit_code = 127;
  end.cause = EndCause::start_failed;
  end.message = "no such file:\n\"x\"";
  report.ends.push_back(end);
  EXPECT_EQ(to_text(7, report),
            "PodsReported n1 token=9, start j7/4#0 pid=55 cpus=0-1, end j7/5#1 exit=127 "
            "cause=start-failed message=\"no such file: \\\"x\\\"\"");
  EXPECT_EQ(to_text(7, NodeLost{2}), "NodeLost n2 cause=node-lost");
  EXPECT_EQ(to_text(7, NodeRegistered{2, {{0, 0}, {1, 3}}}),
            "NodeRegistered n2 knows j7/0#0, j7/1#3");
  EXPECT_EQ(to_text(7, NodeReady{2}), "NodeReady n2");
  EXPECT_EQ(to_text(7, Event{TimePassed{}}), "TimePassed");
  EXPECT_EQ(to_text(7, JobDeletion{1, false}), "JobDeletion foreground");
  EXPECT_EQ(to_text(7, JobSpecChanged{0, 2, 3, std::nullopt, nullptr}),
            "JobSpecChanged j7 generation=2 parallelism=3");
  EXPECT_EQ(to_text(7, PodsStopping{0, {{{1, 0}, Counted::released}}}),
            "PodsStopping j7/1#0 counted=released");
}

TEST(Text, InstantsPrintInUtcWithMilliseconds) {
  EXPECT_EQ(instant_text(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(instant_text(Transcript::kBegin + 10'001), "2026-01-01T00:00:10.001Z");
  EXPECT_EQ(instant_text(1'709'251'199'999), "2024-02-29T23:59:59.999Z");
  EXPECT_EQ(instant_text(-1), "1969-12-31T23:59:59.999Z");
}

}  // namespace

}  // namespace muster::core
