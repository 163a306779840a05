// Job text: a Job as JSON, made from the text that its owner wrote without parsing it.
//
// The owner's row is compact JSON that we dumped ourselves, so its metadata can be found by looking
// at quotes and brackets. What is not of that form is parsed: both ways come to the same
// bytes.
#pragma once

#include "core/job/job.hpp"
#include "text/json.hpp"

#include <cstdint>
#include <string>

namespace muster::api {

// Each appends to `out`.
void append_job(std::string& out, const core::Job& job, uint64_t version);
void append_job_metadata(std::string& out, const core::Job& job, uint64_t version);
void append_job_status(std::string& out, const core::Job& job);
// The same as values.
OrderedJson job_json(const core::Job& job, uint64_t version);
OrderedJson job_status(const core::Job& job);

}  // namespace muster::api
