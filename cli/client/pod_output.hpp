// PodOutput: shows what the pods of a run print while they run.
//
// With several pods, each line starts with its index ("3 | "; in a NonIndexed job with the pod's
// name) and is written as a whole. What a pod prints to stdout goes to stdout, and stderr to
// stderr. Order is kept within one stream of one pod. An unterminated last line is shown when the
// pod ends.
//
// A pod that prints nothing costs next to nothing: inotify reports which local files grow, and one
// small response of a coordinator shows that a log is empty.
#pragma once

#include "cli/client/attempt_feed.hpp"
#include "cli/client/http.hpp"
#include "cli/output/json.hpp"
#include "cli/settings/options.hpp"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

// Assembles lines and writes them.
class Printer {
 public:
  // One stream of one pod.
  struct Stream {
    std::string lead;  // "3 | "; empty: bytes are written as they arrive
    bool err = false;
    std::string partial{};  // an incomplete line
    int64_t offset = 0;     // bytes taken so far
  };
  void take(Stream& stream, std::string_view data);
  // The pod has ended.
  void finish(Stream& stream);
  // Writes what was taken; calls `first` before, if there is anything to write.
  void flush(const std::function<void()>& first);

 private:
  std::string out_, err_;
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

 protected:
  Printer printer_;
};

// Whether to start each line of this job with the pod that printed it.
bool prefixed(RunOptions::Shown shown, const Json& job);

// For an agent on this machine that keeps its logs in `dir`. Skips what is already there: an
// earlier run has shown it, or it is in the logs.
std::unique_ptr<PodOutput> output_of_files(const std::string& dir, const Json& job, bool prefixed);

// For a coordinator. Shows running pods live while there are few of them, all others when they end.
std::unique_ptr<PodOutput> output_of_api(ApiClient& client, const std::string& ns, const Json& job,
                                         bool prefixed);

}  // namespace muster::cli
