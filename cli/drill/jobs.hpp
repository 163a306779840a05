// Jobs: those that a drill submits beside its canary, and how all of them go again.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "cli/client/http.hpp"

#include <string>

namespace muster::cli::drill {

// A suspended job, which runs nothing.
std::string tiny_job(const std::string& name);

// Deletes the jobs whose names begin like this, and waits until they are gone; asks again while the
// API is away. unavailable: not all are gone in time.
Status delete_jobs(ApiClient& client, const std::string& ns, const std::string& prefix,
                   Millis patience_ms);

}  // namespace muster::cli::drill
