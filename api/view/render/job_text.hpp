// Job text: a Job as JSON, built from its owner's text without parsing it.
//
// The owner's row is compact JSON that we dumped ourselves, so scanning quotes and brackets is
// enough to find its metadata. Any other text is parsed. Both ways produce the same bytes.
#pragma once

#include "base/text/json.hpp"
#include "core/job/fold/job.hpp"

#include <cstdint>
#include <string>

namespace muster::api {

// Each appends to `out`.
void append_job(std::string& out, const core::Job& job, uint64_t version);
void append_job_metadata(std::string& out, const core::Job& job, uint64_t version);
// Only what other users may see: name, owner, size, counts.
void append_job_summary(std::string& out, const core::Job& job, uint64_t version);
void append_summary_metadata(std::string& out, const core::Job& job, uint64_t version);
void append_job_status(std::string& out, const core::Job& job);
// The same as JSON values.
OrderedJson job_json(const core::Job& job, uint64_t version);
OrderedJson job_status(const core::Job& job);

}  // namespace muster::api
