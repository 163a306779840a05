// Options of muster logs.
#pragma once

#include "base/result.hpp"
#include "cli/verbs/verb.hpp"

#include <map>
#include <optional>
#include <string>

namespace muster::cli {

class ApiClient;

struct LogsOptions {
  Target target;
  std::string pod;  // one of these three
  std::string job;
  std::string selector;            // all pods with these labels
  std::string indexes;             // "3,7-9"; empty: all
  std::string tasks{};             // in place of `indexes`, by the numbers of --array
  bool failed = false;             // of a job: only indexes that failed
  std::optional<int64_t> attempt;  // unset: the newest
  std::optional<bool> err{};       // only stderr, or only stdout
  bool follow = false;
  std::optional<int64_t> tail;  // lines; absent: all
  std::optional<bool> prefix;   // unset: with several pods
  int64_t live_max = 16;        // pods to follow at a time; others are printed when they end
};

int execute(const LogsOptions& options);
// With `selector` (selected_logs.cpp). With -f, continues until the jobs of all these pods are
// over, and follows pods that start meanwhile too. The coordinator may restart meanwhile. Returns
// the exit code.
int selected_logs(const LogsOptions& options, ApiClient& client);

// Names on stderr what was not printed ("index 3", a pod), with the reason. Returns the exit code:
// that of the first reason, or `code` if nothing is missing.
int report_unread(const std::map<std::string, Error>& unread, int code);

}  // namespace muster::cli
