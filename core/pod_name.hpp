// Pod names and uids, derived from the job and the pod's key, so they need not be stored.
//
// A uid contains a bijective mix of (index, attempt), so no two pods of a job share one. The last
// five characters of a name are a permutation of the pod's number, keyed by the job's uid. A hash
// would not do: of 10^5 hashed pods about 350 would share a name. The number of an Indexed pod is
// its attempt (the name contains its index), that of a NonIndexed pod its index. Names repeat after
// 27^5 (14.3 million) numbers.
#pragma once

#include "core/ids.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::core {

// For the last five characters of generated names, as in Kubernetes: no vowels, hence no words.
constexpr std::string_view kNameAlphabet = "bcdfghjklmnpqrstvwxz2456789";

// RFC 4122 text that looks like version 4.
std::string pod_uid(std::string_view job_uid, PodKey pod);

// JOB-INDEX-xxxxx, or JOB-xxxxx for NonIndexed. At most 58 characters precede the last five; the
// job's name is cut to fit, the index never (job-semantics 4.6).
std::string pod_name(std::string_view job_name, std::string_view job_uid, bool indexed, PodKey pod);

// The attempt as users see it, as in MUSTER_ATTEMPT and the history: never the same for two pods of
// an index, nor for two pods of a NonIndexed job, whose pods have one sequence of numbers.
inline uint32_t shown_attempt(bool indexed, PodKey pod) {
  return indexed ? pod.attempt : pod.index;
}

// JOB-INDEX, or the pod's name for NonIndexed.
std::string pod_hostname(std::string_view job_name, std::string_view job_uid, bool indexed,
                         PodKey pod);

}  // namespace muster::core
