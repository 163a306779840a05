// Jobs: what a drill submits besides its canary, and how all its jobs are deleted.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "client/connect/http.hpp"

#include <string>

namespace muster::cli::drill {

// A suspended job, so nothing runs.
std::string tiny_job(const std::string& name);

// Deletes the jobs whose names start with `prefix` and waits until they are gone. Retries while the
// API is down. unavailable: some were not gone in time.
Status delete_jobs(ApiClient& client, const std::string& ns, const std::string& prefix,
                   Millis patience_ms);

}  // namespace muster::cli::drill
