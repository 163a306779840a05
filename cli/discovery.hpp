// Discovery: where the coordinator is.
//
// --api, else MUSTER_API, else the key `api` of ~/.config/muster/config.yaml, else 127.0.0.1:7117.
// An address is HOST:PORT, http://HOST:PORT or a port of this machine alone.
#pragma once

#include "base/result.hpp"
#include "cli/http.hpp"

#include <functional>
#include <string>

namespace muster::cli {

struct Endpoint {
  std::string address;  // HOST:PORT
  std::string origin;   // "from --api"
};

inline constexpr char kDefaultApi[] = "127.0.0.1:7117";

Result<std::string> normal_address(const std::string& text);

// `env` as getenv; invalid: an address or the config file cannot be read.
Result<Endpoint> discover(const std::string& flag,
                          const std::function<const char*(const char*)>& env);

// Of this process's environment.
Result<std::unique_ptr<ApiClient>> connect(const std::string& flag);

}  // namespace muster::cli
