// PodOutput: shows what the pods of a run print while they run.
//
// With several pods, each line starts with its index ("3 | "; in a NonIndexed job with the pod's
// name) and is written as a whole. What a pod prints to stdout goes to stdout, and stderr to
// stderr. Order is kept within one stream of one pod. An unterminated last line is shown when the
// pod ends.
//
// With in_order, an index is shown live once all before it have settled; earlier output stays in
// the log and is read from there later. With files (pod_files.hpp), each pod has its own.
//
// A pod that prints nothing costs almost nothing: inotify reports which local files grow, and one
// small response from a coordinator shows that a log is empty.
#pragma once

#include "client/connect/http.hpp"
#include "client/follow/pod_files.hpp"
#include "client/follow/printer.hpp"
#include "client/news/attempt_feed.hpp"
#include "client/terminal/json.hpp"
#include "core/index_set.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::cli {

// How output is shown.
struct OutputWishes {
  bool prefixed = false;                        // start each line with its pod
  bool in_order = false;                        // show indexes in order
  PodFiles* files = nullptr;                    // write the streams that they take to files
  std::function<std::string()> node = nullptr;  // name of the local agent's node
  std::optional<bool> err{};                    // only stderr, or only stdout
  // The rest applies to a coordinator only. `as_log`: all on stdout, with the attempt in the prefix
  // ("3#1 | "), starting with what the newest attempts have printed so far.
  bool as_log = false;
  int64_t live_max = 16;                 // running pods whose output is shown live
  std::optional<core::IndexSet> only{};  // these indexes
  std::optional<int64_t> tail{};         // last lines of the output that exists at the first look
};

class PodOutput {
 public:
  virtual ~PodOutput() = default;
  // Takes what was printed since the last call. `ended`: the attempts that have ended since.
  // `over`: nothing more will be printed.
  virtual void look(const Json& job, const std::vector<EndedAttempt>& ended, bool over) = 0;
  virtual bool wants_ended() const = 0;
  virtual Millis pause_max() const = 0;  // between two polls
  void flush(const std::function<void()>& first) { printer_.flush(first); }
  // The pods that have ended and whose output could not be read when the job was over, and why.
  const std::map<std::string, Error>& unread() const { return unread_; }

 protected:
  Printer printer_;
  std::map<std::string, Error> unread_;  // by pod
};

// The turns of indexes whose output is shown in order: it is an index's turn once all before it
// have settled.
class Turns {
 public:
  explicit Turns(const Json& job);
  // The index whose output is shown live; past the last index: none is left.
  uint64_t now() const { return now_; }
  // Moves past settled indexes and calls `close` for each; `over`: for all that are left.
  void advance(const Json& job, bool over, const std::function<void(uint32_t)>& close);

 private:
  core::IndexSet own_;  // indexes that the job runs
  uint64_t now_;
};

// How to show what pods print: with names where several pods may print, always, never; or not at
// all.
enum class Shown { automatic, tagged, plain, none };
// Whether to start each line of this job with the pod that printed it.
bool prefixed(Shown shown, const Json& job);
// Whether this job has, or may have, more than one pod at a time or in a row.
bool has_several_pods(const Json& job);

// For an agent on this machine that keeps its logs in `dir`. Skips existing output: an earlier run
// has shown it, or it is in the logs. Files are brought up to date.
std::unique_ptr<PodOutput> output_of_files(const std::string& dir, const Json& job,
                                           OutputWishes wishes);

// For a coordinator. Shows running pods live while they are few, and all others when they end.
std::unique_ptr<PodOutput> output_of_api(ApiClient& client, const std::string& ns, const Json& job,
                                         OutputWishes wishes);

}  // namespace muster::cli
