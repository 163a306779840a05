// Discovery: finds the coordinator from the client's settings.
//
// --api, else MUSTER_API, else the key `api` of a configuration file, else 127.0.0.1:7117. An
// address is HOST:PORT, http://HOST:PORT, https://HOST:PORT, unix:PATH, or a bare port on
// localhost. Several, separated by commas, are tried in turn.
#pragma once

#include "base/result.hpp"
#include "client/connect/http.hpp"
#include "client/settings/config.hpp"
#include "client/settings/target.hpp"

#include <memory>
#include <string>

namespace muster::cli {

inline constexpr char kDefaultApi[] = "127.0.0.1:7117";

// Of one address. invalid: it is not one.
Result<std::string> normal_address(const std::string& text);
// Of one or several, separated by commas. invalid: names the one that is not an address.
Result<std::string> normal_addresses(const std::string& text);

// Where muster keeps a user's files: below this variable, such as XDG_CONFIG_HOME, or below HOME.
std::string user_folder(const char* variable, const char* below_home);

// Reads the client's settings; invalid: an address or duration cannot be parsed.
Result<Target> target_of(const Settings& client);

std::unique_ptr<ApiClient> connect(const Target& target);

// The target with the one of its addresses that answers, for what can name only one; an only
// address is not asked. unavailable: none answers.
Result<Target> narrowed(const Target& target);

// For a request whose answer takes long: its limit is an hour, once a coordinator has answered
// another one within the usual limit.
Status allow_long_answers(ApiClient& client, const Target& target);

}  // namespace muster::cli
