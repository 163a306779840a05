// PassedPeer: a client of another coordinator, which passes the connection on.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>

namespace muster::api {

struct PassedPeer {
  std::optional<uid_t> uid;  // on that coordinator's machine; none: requests have tokens, over TLS
  std::string source;        // "unix", or an address without port
  std::string local_host;    // the address that the client has connected to, likewise
};

}  // namespace muster::api
