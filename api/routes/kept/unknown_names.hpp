// Warnings of users and groups that an object names and that do not exist on the coordinator's
// machine: a typing error there would otherwise show only as pods that wait.
#pragma once

#include "api/access/directory.hpp"
#include "api/request/exchange.hpp"
#include "core/spec/values/window.hpp"

#include <kj/timer.h>

#include <string>
#include <vector>

namespace muster::api {

// Adds the warning "WHERE: there is no user NAME now" for each of these that does not exist. A user
// database that does not answer within kAccountPatience is not waited for.
kj::Promise<void> warn_of_unknown_users(Exchange& exchange, kj::Timer& timer, Directory& directory,
                                        const std::string& where,
                                        const std::vector<std::string>& users);

// Likewise for whom a node is reserved: users, and groups that do not exist or have another gid,
// which is what counts.
kj::Promise<void> warn_of_unknown(Exchange& exchange, kj::Timer& timer, Directory& directory,
                                  const core::Window& window);

}  // namespace muster::api
