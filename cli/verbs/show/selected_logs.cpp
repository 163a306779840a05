// muster logs -l: what all pods with certain labels print, each line with its pod.
#include "cli/verbs/show/logs.hpp"
#include "client/connect/objects.hpp"
#include "client/follow/log_streams.hpp"
#include "client/follow/signals.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace muster::cli {
namespace {

constexpr int64_t kTail = 10;  // lines of each pod without --tail, as with kubectl
constexpr Millis kPause = 250;
constexpr int64_t kListShare = 5;  // the pause is at least this many times the list's duration

class SelectedLogs {
 public:
  SelectedLogs(const LogsOptions& options, ApiClient& client) : o_(options), client_(client) {}

  int run() {
    Signals signals;
    Millis answered = boot_now();
    for (bool first = true;; first = false) {
      const Millis begin = boot_now();
      auto pods = object(client_, object_path(Kind::pod, o_.target.ns) +
                                      "?labelSelector=" + url_encoded(o_.selector));
      if (!pods &&
          (first || pods.error().code != Errc::unavailable || begin - answered > kAbsenceMax))
        return fail(pods.error());
      if (pods) {
        answered = boot_now();
        const bool open = look(at(*pods, {"items"}), first);
        if (first && seen_.empty())
          return fail(kNotFound,
                      "no pod in namespace " + o_.target.ns + " has the labels " + o_.selector);
        if (client_.met_foreign()) return fail(*client_.met_foreign());
        if (!o_.follow || (!open && jobs_over())) return report_unread(unread_, kDone);
      }
      if (signals.next(std::max(kPause, kListShare * (boot_now() - begin))) != 0)
        return kInterrupted;
    }
  }

 private:
  struct Pod {
    LogStreams streams;
    bool over = false;
  };

  // Prints what is new; returns whether any of these pods has not ended.
  bool look(const Json& pods, bool first) {
    const bool prefixed = o_.prefix.value_or(true);
    const auto tail = first ? std::optional(o_.tail.value_or(kTail)) : std::nullopt;
    int64_t live = 0;
    bool open = false;
    for (const Json& pod : pods) {
      const std::string name = text_at(pod, {"metadata", "name"});
      const std::string phase = text_at(pod, {"status", "phase"});
      const bool over = phase == "Succeeded" || phase == "Failed";
      open = open || !over;
      jobs_.insert(text_at(pod, {"metadata", "labels", "batch.kubernetes.io/job-name"}));
      const auto [at_pod, fresh] = seen_.try_emplace(name);
      Pod& one = at_pod->second;
      if (fresh) one.streams = new_streams(pod, prefixed ? name + " | " : "");
      if (one.over || phase == "Pending") continue;
      if (!over && o_.follow && ++live > o_.live_max) continue;
      Status read = take_log(client_, object_path(Kind::pod, o_.target.ns, name) + "/log?",
                             one.streams, printer_, tail, over);
      unread_.erase(name);
      if (!read) unread_.emplace(name, read.error());
      one.over = over && read;
      if (one.over || !o_.follow) {
        for (auto& [key, stream] : one.streams) printer_.finish(stream);
        one.streams.clear();
      }
      printer_.flush({});
    }
    return open;
  }

  LogStreams new_streams(const Json& pod, const std::string& lead) const {
    LogStreams streams;
    for (const char* list : {"initContainers", "containers"}) {
      for (const Json& container : at(pod, {"spec", list})) {
        for (const bool err : {false, true})
          if (err == o_.err.value_or(err))
            streams[{text_at(container, {"name"}), err}] = {.lead = lead};
      }
    }
    return streams;
  }

  // A failed pod may be replaced by another one.
  bool jobs_over() {
    return std::all_of(jobs_.begin(), jobs_.end(), [this](const std::string& job) {
      if (job.empty()) return true;
      auto now = object(client_, object_path(Kind::job, o_.target.ns, job));
      return now ? end_of(*now) != JobEnd::none : now.error().code == Errc::not_found;
    });
  }

  const LogsOptions& o_;
  ApiClient& client_;
  Printer printer_;
  std::map<std::string, Pod> seen_;  // by name
  std::set<std::string> jobs_;
  std::map<std::string, Error> unread_;  // why the log of a pod could not be read at the last look
};

}  // namespace

int selected_logs(const LogsOptions& options, ApiClient& client) {
  return SelectedLogs(options, client).run();
}

}  // namespace muster::cli
