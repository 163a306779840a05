// Pod JSON: renders a job's template once and writes each pod around it.
//
// A list of 10^5 pods repeats the same 2 kB 10^5 times. Building a JSON tree for each takes most of
// a minute; pasting text takes a fraction of a second. A PodWriter holds the rendered pieces of one
// job.
#pragma once

#include "api/view/model/view.hpp"
#include "api/view/render/pod_runs.hpp"
#include "core/pod_end.hpp"
#include "core/spec/values/well_known.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::api {

// Stored as an annotation of a pod that a client has written to, and shown as its managedFields.
constexpr std::string_view kManagersKey = "muster.dev/managed-fields";
// Annotations that muster itself sets on pods.
constexpr std::string_view kOwnAnnotations[] = {core::kCompletionIndexKey,
                                                core::kIndexFailureCountKey,
                                                core::kIndexIgnoredFailureCountKey,
                                                "muster.dev/pid",
                                                "muster.dev/cpus",
                                                kRunsKey,
                                                kManagersKey};

// Why a pod ended, for its status.reason; empty if it ended by itself.
std::string_view pod_reason(core::EndCause cause);
// Why a container ended, for its state.terminated.reason.
std::string_view container_reason(core::EndCause cause, int32_t exit_code);

class PodWriter {
 public:
  explicit PodWriter(core::JobObjectPtr object);

  // Appends the whole Pod. `unplaced`: why it has no node; empty: it has not waited long.
  void pod(std::string& out, const View& view, const Shown& shown,
           std::string_view unplaced = {}) const;
  // Appends its metadata alone, as `"metadata":{…}`.
  void metadata(std::string& out, const Shown& shown) const;
  const core::JobObjectPtr& object() const { return object_; }

 private:
  void status(std::string& out, const View& view, const Shown& shown,
              std::string_view unplaced) const;
  void containers(std::string& out, const core::Pod& pod, std::string_view member,
                  const std::vector<core::Container>& list, size_t first,
                  const std::string& missing) const;
  struct Status;
  Status status_of(const core::Pod& pod, size_t at, const std::string& missing) const;

  // The members of spec of a pod with these steps.
  std::string spec_with(core::Steps steps) const;
  // The template's labels or annotations with these changes, without those that metadata() adds for
  // each pod.
  std::string members(bool labels, const std::vector<core::PodMetaChange>& changes) const;

  core::JobObjectPtr object_;
  bool uses_configs_ = false;
  std::string labels_, annotations_, finalizers_, owner_, spec_;  // inner texts, no outer braces
};

// Caches the writers of recently rendered jobs.
class PodWriters {
 public:
  const PodWriter& of(const core::Job& job);

 private:
  static constexpr size_t kMax = 64;
  std::unordered_map<JobId, std::unique_ptr<PodWriter>> writers_;
};

}  // namespace muster::api
