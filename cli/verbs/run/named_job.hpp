// Named job: creates a job, and decides what happens if another one has its name.
#pragma once

#include "base/result.hpp"
#include "client/connect/http.hpp"
#include "client/inputs/wishes.hpp"
#include "client/terminal/json.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace muster::cli {

// The name with its number, shortened so that it stays a valid name.
std::string numbered_name(const std::string& name, uint32_t number);

// The lowest number from 2 on such that `taken` does not hold for it and its successors, as long as
// numbers are taken without gaps: asks few times.
Result<uint32_t> free_number(const std::function<Result<bool>(uint32_t)>& taken);

// `create` creates the job under the name that it is given.
Result<Json> create_named(ApiClient& client, const std::string& ns, const std::string& name,
                          IfExists exists,
                          const std::function<Result<Json>(const std::string&)>& create);

}  // namespace muster::cli
