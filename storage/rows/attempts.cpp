#include "storage/rows/attempts.hpp"

#include "storage/codec/codec.hpp"
#include "storage/journal/keys.hpp"

#include <algorithm>
#include <string>

namespace muster::storage {
namespace {

constexpr size_t kLookedAtMax = 4096;  // attempts per page
constexpr JobId kJobsPassed = 10'000;  // ids tried to find a readable job

// A row that can't be read may exist.
bool may_have(Rows& rows, const std::string& key) {
  const auto row = rows.get(key);
  return !row || row->has_value();
}

}  // namespace

Row attempts_row(JobId job, uint64_t sequence, Millis at_ms, const std::vector<core::Pod>& closed) {
  return {keys::attempts(job, sequence), encode_attempts(at_ms, closed)};
}

Result<AttemptPage> read_attempts(Rows& rows, JobId job, AttemptCursor from, size_t limit,
                                  const std::function<bool(const core::Pod&)>& wanted) {
  AttemptPage page{.attempts = {}, .closed_ms = {}, .next = {}, .end = from};
  std::optional<Error> broken;
  size_t looked_at = 0;
  Status read = rows.scan_from(
      keys::attempts_of(job), keys::attempts(job, from.sequence),
      [&](std::string_view key, std::string_view value) {
        auto at = keys::parse_records(key, keys::kAttempts);
        auto list = at ? decode_attempts(value) : Error{Errc::invalid, "a key of attempts", {}};
        if (!list.ok()) {
          broken = list.error();
          return false;
        }
        uint32_t i = at->sequence == from.sequence ? from.skip : 0;
        for (; i < list->pods.size(); ++i, ++looked_at) {
          if (page.attempts.size() == limit || looked_at == kLookedAtMax) {
            page.next = page.end = AttemptCursor{at->sequence, i};
            return false;
          }
          if (!wanted(list->pods[i])) continue;
          page.attempts.push_back(std::move(list->pods[i]));
          page.closed_ms.push_back(list->at_ms);
        }
        page.end = {at->sequence, i};
        return true;
      });
  if (!broken && !read) broken = read.error();
  if (broken)
    return Error{broken->code,
                 "journal: attempts of job j" + std::to_string(job) + ": " + broken->message,
                 {}};
  return page;
}

std::vector<Row> outdated_attempts(Rows& rows, Millis before_ms, uint64_t keep, size_t rows_max) {
  struct List {
    Millis at_ms;
    uint32_t count;
    std::string key;
  };
  std::vector<List> lists;
  std::vector<Row> out;
  uint64_t total = 0;
  JobId job = 0;
  bool there = false;
  auto visit = [&](std::string_view key, std::string_view value) {
    auto at = keys::parse_records(key, keys::kAttempts);
    auto head = attempts_head(value);
    if (at && at->job != job) {
      job = at->job;
      there = may_have(rows, keys::owner(job)) || may_have(rows, keys::history(job));
    }
    if (!at || !there || !head.ok() || head->at_ms < before_ms) {
      out.push_back({std::string(key), std::nullopt});
    } else {
      lists.push_back({head->at_ms, head->count, std::string(key)});
      total += head->count;
    }
    return out.size() < rows_max;
  };
  // Rows that can't be read stay. The scan resumes at the next job that can be read.
  Status read = rows.scan(keys::kAttempts, visit);
  for (JobId from = job + 1; !read && from <= job + kJobsPassed; from = std::max(from, job) + 1)
    read = rows.scan_from(keys::kAttempts, keys::attempts_of(from), visit);
  if (out.size() >= rows_max || total <= keep) return out;
  std::sort(lists.begin(), lists.end(),
            [](const List& a, const List& b) { return a.at_ms < b.at_ms; });
  for (List& list : lists) {
    if (total <= keep || out.size() >= rows_max) break;
    total -= list.count;
    out.push_back({std::move(list.key), std::nullopt});
  }
  return out;
}

}  // namespace muster::storage
