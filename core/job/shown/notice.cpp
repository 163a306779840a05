#include "core/job/shown/notice.hpp"

#include "core/job/fold/text.hpp"
#include "core/job/shown/array_tasks.hpp"
#include "core/spec/values/duration.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace muster::core {
namespace {

constexpr size_t kNoticeNameMax = 63;  // RFC 1123
constexpr size_t kSetShown = 500;      // bytes of a set of indexes
constexpr size_t kUidShown = 8;        // characters of the uid in a name

// What may stand in a mail: a message may quote anything that a program has printed.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return out;
}

// "2026-01-01 00:00:10 UTC".
std::string when_text(Millis at_ms) {
  std::string text = instant_text(at_ms).substr(0, 19);
  text[10] = ' ';
  return text + " UTC";
}

// The set, unless it is long; then its beginning.
std::string brief_set(const IndexSet& set) {
  std::string text = set.text();
  if (text.size() > kSetShown) text = text.substr(0, text.rfind(',', kSetShown)) + ",...";
  return text;
}

// "indexes 1,3-4"; "tasks 2,4-5" of an array, as its user knows them.
std::string known_indexes(const IndexSet& set, const std::vector<uint32_t>& tasks) {
  IndexSet numbers;
  for (const auto& [first, last] : set.intervals())
    for (uint64_t index = first; index <= last && index < tasks.size(); ++index)
      numbers.insert(tasks[index]);
  return numbers.size() == set.size() ? "tasks " + brief_set(numbers) : "indexes " + brief_set(set);
}

// Cancelled indexes are among the failed ones (ADR 74).
IndexSet lost_indexes(const Job& job) {
  return job.state().failed_indexes.without(job.state().cancelled_indexes);
}

uint64_t failures_shown(const Job& job) {
  const auto& state = job.state();
  return state.failed_indexes.empty() ? state.failed : lost_indexes(job).size();
}

}  // namespace

std::optional<JobEnd> end_of(const Job& job) {
  const Condition* const end = job.terminal();
  if (end == nullptr) return std::nullopt;
  return JobEnd{end->type == ConditionType::complete, std::string(name(end->reason)), end->message,
                end->at_ms};
}

std::string notice_mail(const Job& job, const NoticeWishes& wishes, std::string_view site) {
  const JobMeta& meta = job.object().meta;
  const JobEnd end = end_of(job).value_or(JobEnd{});
  const std::string verdict = end.complete ? "complete" : "failed";
  std::string text = "To: ";
  for (const std::string& address : wishes.mail)
    text += (address == wishes.mail.front() ? "" : ", ") + address;
  text += "\nSubject: muster: job " + meta.name + " " + verdict;
  text += "\nMessage-ID: <" + meta.uid + ".end@" + std::string(site) + ">";
  // RFC 3834: nobody's holiday answers this.
  text +=
      "\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n"
      "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n";
  text += "Job " + meta.name + " (namespace " + meta.ns + ") " +
          (end.complete ? "is complete" : "has failed") + ".\n\n";
  if (!end.message.empty())
    text += "Reason:     " + end.reason + ": " + plain(end.message) + "\n";
  else
    text += "Reason:     " + end.reason + "\n";
  text += "Succeeded:  " + std::to_string(job.succeeded());
  if (const auto needed = job.needed()) text += " of " + std::to_string(*needed);
  text += "\nFailed:     " + std::to_string(failures_shown(job)) + "\n";
  const std::vector<uint32_t> tasks = array_tasks(job.object());
  if (const IndexSet lost = lost_indexes(job); !lost.empty())
    text += "            " + known_indexes(lost, tasks) + "\n";
  if (const IndexSet& cancelled = job.state().cancelled_indexes; !cancelled.empty())
    text += "Cancelled:  " + std::to_string(cancelled.size()) + "\n            " +
            known_indexes(cancelled, tasks) + "\n";
  if (const auto started = job.state().started_at) {
    text += "Started:    " + when_text(*started) + "\n";
    text += "Ended:      " + when_text(end.at_ms) + ", after " +
            duration_text(std::max<Millis>(0, end.at_ms - *started)) + "\n";
  } else {
    text += "Ended:      " + when_text(end.at_ms) + "\n";
  }
  return text + "\nMore: muster why job/" + meta.name + " -n " + meta.ns + "\n";
}

StringMap notice_variables(const Job& job) {
  const JobMeta& meta = job.object().meta;
  const JobEnd end = end_of(job).value_or(JobEnd{});
  return {{"MUSTER_ENDED_JOB", meta.name},
          {"MUSTER_ENDED_NAMESPACE", meta.ns},
          {"MUSTER_ENDED_STATE", end.complete ? "Complete" : "Failed"},
          {"MUSTER_ENDED_REASON", end.reason},
          {"MUSTER_ENDED_MESSAGE", end.message},
          {"MUSTER_ENDED_SUCCEEDED", std::to_string(job.succeeded())},
          {"MUSTER_ENDED_FAILED", std::to_string(failures_shown(job))}};
}

std::string notice_job_name(const JobMeta& meta) {
  const std::string tail = "-end-" + meta.uid.substr(0, std::min(kUidShown, meta.uid.size()));
  std::string head = meta.name.substr(0, kNoticeNameMax - tail.size());
  while (!head.empty() && (head.back() == '-' || head.back() == '.')) head.pop_back();
  return head + tail;
}

}  // namespace muster::core
