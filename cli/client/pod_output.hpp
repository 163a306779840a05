// What the pods of a run print, shown while they run.
//
// Lines of several pods are led by their index ("3 | "; of a NonIndexed job by the pod's name),
// each written as a whole; what a pod prints to stdout goes to stdout and what it prints to stderr
// to stderr. Within one stream of one pod the order is kept. A last line without its line break is
// shown when the pod has ended.
//
// A pod that prints nothing costs next to nothing: here the kernel tells which files grow
// (inotify), and of a coordinator one small answer says that a log is empty.
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

// Puts lines together and writes them out.
class Printer {
 public:
  // One stream of one pod.
  struct Stream {
    std::string lead;  // "3 | "; empty: bytes go on as they come
    bool err = false;
    std::string partial{};  // a line that is not complete
    int64_t offset = 0;     // bytes that were taken
  };
  void take(Stream& stream, std::string_view data);
  // The pod has ended.
  void finish(Stream& stream);
  // Writes what was taken; `first` is called when there is something.
  void flush(const std::function<void()>& first);

 private:
  std::string out_, err_;
};

class PodOutput {
 public:
  virtual ~PodOutput() = default;
  // Takes what was printed since; `ended` are the attempts that were closed meanwhile. `over`:
  // nothing will be printed any more.
  virtual void look(const Json& job, const std::vector<EndedAttempt>& ended, bool over) = 0;
  virtual bool wants_ended() const = 0;
  virtual Millis pause_max() const = 0;  // between two looks
  void flush(const std::function<void()>& first) { printer_.flush(first); }

 protected:
  Printer printer_;
};

// Whether the lines of this job's pods are to be led by who prints them.
bool prefixed(RunOptions::Shown shown, const Json& job);

// Of an agent on this machine that keeps its logs in `dir`. What is there already was shown by an
// earlier run, or is in the logs.
std::unique_ptr<PodOutput> output_of_files(const std::string& dir, const Json& job, bool prefixed);

// Of a coordinator: pods that run are looked at as long as they are few, all others when they end.
std::unique_ptr<PodOutput> output_of_api(ApiClient& client, const std::string& ns, const Json& job,
                                         bool prefixed);

}  // namespace muster::cli
