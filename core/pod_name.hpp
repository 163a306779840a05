// Pod names and uids: derived from the job and the pod's key, so that no table of them is kept.
//
// A uid carries a bijective mix of (index, attempt): no two pods of a job ever share one. The five
// last characters of a name are a permutation of the pod's number keyed by the job's uid, not a
// hash: of 10^5 hashed pods about 350 would share a name. An Indexed pod's number is its attempt
// (its index stands in the name), a NonIndexed one's its index; after 27^5 (14.3 million) numbers
// the names begin again.
#pragma once

#include "core/ids.hpp"

#include <string>
#include <string_view>

namespace muster::core {

// RFC 4122 text, version 4 by its looks.
std::string pod_uid(std::string_view job_uid, PodKey pod);

// JOB-INDEX-xxxxx, or JOB-xxxxx for NonIndexed; the part before the five is at most 58 characters,
// the job's name is cut and the index never (job-semantics 4.6).
std::string pod_name(std::string_view job_name, std::string_view job_uid, bool indexed, PodKey pod);

// JOB-INDEX, or the pod's name for NonIndexed.
std::string pod_hostname(std::string_view job_name, std::string_view job_uid, bool indexed,
                         PodKey pod);

}  // namespace muster::core
