#include "client/news/failure_news.hpp"

#include "client/connect/objects.hpp"
#include "client/news/attempts.hpp"
#include "client/news/failures.hpp"
#include "client/terminal/text.hpp"

#include <iostream>

namespace muster::cli {
namespace {

constexpr size_t kKindsMax = 8, kNewsLines = 5, kNewsBytes = 160;

}  // namespace

bool FailureNews::enough() const {
  return kinds_.size() >= kKindsMax;
}

void FailureNews::add(const Json& job, const std::vector<EndedAttempt>& ended, Millis now) {
  for (const EndedAttempt& one : ended) {
    if (!one.failed || enough() || !kinds_.insert(one.kind).second) continue;
    if (!inputs_) inputs_.emplace(job);
    if (!tasks_) tasks_.emplace(tasks_of(job));
    const auto task = one.index && *tasks_ ? (*tasks_)->number(*one.index) : std::nullopt;
    pending_.push_back({.attempt = one,
                        .task = task,
                        .input = one.index && !task ? inputs_->of(*one.index).value_or("") : "",
                        .due = now + kDelay});
  }
}

void FailureNews::print(Millis now, const std::function<void()>& first) {
  for (; !pending_.empty() && pending_.front().due <= now; pending_.pop_front()) {
    const auto& [one, task, input, due] = pending_.front();
    std::string text = task        ? "task " + std::to_string(*task)
                       : one.index ? "index " + std::to_string(*one.index)
                                   : one.pod;
    if (!input.empty()) text += " (" + cut(input, kInputShown) + ")";
    text += " failed: " + cut(one_line(one.cause), kNewsBytes) + " (" +
            (one.attempt ? "attempt " + std::to_string(*one.attempt) + ", " : "") + "node " +
            one.node + ")";
    if (const std::string next = outlook(one); !next.empty()) text += "; " + next;
    for (const std::string& line : last_words(client_, ns_, one.pod, kNewsLines))
      text += "\n    | " + cut(line, kNewsBytes);
    first();
    std::cerr << "muster: " << text << std::endl;
  }
}

// What happens next: a retry, or "no retries left".
std::string FailureNews::outlook(const EndedAttempt& one) {
  std::string path = own_path(ns_, job_, "why");
  if (one.index) path += "?index=" + std::to_string(*one.index);
  auto why = object(client_, path);
  if (!why) return "";
  const std::string state = text_at(*why, {"state"}), summary = text_at(*why, {"summary"});
  if (state == "Failed") return one.index ? "no retries left" : "";
  if (state == "Backoff" || (one.index && state == "Running"))
    return summary.substr(0, summary.find(" ("));
  return "";
}

}  // namespace muster::cli
