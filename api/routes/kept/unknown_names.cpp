#include "api/routes/kept/unknown_names.hpp"

#include <utility>

namespace muster::api {

kj::Promise<void> warn_of_unknown_users(Exchange& exchange, kj::Timer& timer, Directory& directory,
                                        const std::string& where,
                                        const std::vector<std::string>& users) {
  kj::Vector<kj::Promise<void>> lookups;
  for (const std::string& user : users)
    lookups.add(timer.timeoutAfter(kAccountPatience, directory.find_name(user))
                    .then(
                        [&exchange, where, user](const Result<uid_t>& found) {
                          if (!found.ok() && found.error().code == Errc::not_found)
                            exchange.warnings.push_back(where + ": there is no user " + user +
                                                        " now");
                        },
                        [](kj::Exception&&) {}));  // not known
  return kj::joinPromises(lookups.releaseAsArray());
}

kj::Promise<void> warn_of_unknown(Exchange& exchange, kj::Timer& timer, Directory& directory,
                                  const core::Window& window) {
  const std::string where = "reservation " + window.name;
  kj::Vector<kj::Promise<void>> lookups;
  lookups.add(warn_of_unknown_users(exchange, timer, directory, where, window.users));
  for (const auto& [name, gid] : window.groups) {
    if (name == std::to_string(gid)) continue;  // the group was given by its number
    lookups.add(
        timer.timeoutAfter(kAccountPatience, directory.find_group(name))
            .then(
                [&exchange, where, name = name, gid = gid](const Result<gid_t>& found) {
                  if (found.ok() && *found != gid)
                    exchange.warnings.push_back(
                        where + ": the gid of group " + name + " is " + std::to_string(*found) +
                        " on the coordinator's machine, not " + std::to_string(gid));
                  else if (!found.ok() && found.error().code == Errc::not_found)
                    exchange.warnings.push_back(where + ": there is no group " + name + " now");
                },
                [](kj::Exception&&) {}));
  }
  return kj::joinPromises(lookups.releaseAsArray());
}

}  // namespace muster::api
