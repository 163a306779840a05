// TrustedServers: which users may serve us on this machine.
//
// Any user may listen on a free loopback port, or put a socket in /tmp, and pose as the
// coordinator. So a client asks the kernel who serves the other end of a connection over loopback
// or a Unix socket before it sends a byte. It trusts root, its own user, the owner of /run/muster,
// which only root can create, and the user that the setting coordinator-user names. A Unix socket
// may also belong to the owner of its directory if nobody else could have put it there: then its
// path says who is meant.
//
// On another machine only TLS identifies a server. An agent, which obeys its coordinator, refuses
// to connect there without it unless told otherwise (Remote).
#pragma once

#include "base/peer/peer_uid.hpp"
#include "base/result.hpp"

#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>

namespace muster {

// Where the daemons of a site have their sockets.
inline constexpr char kSiteRuntimeDir[] = "/run/muster";

// For one thread.
class TrustedServers {
 public:
  // Whether a server on another machine is accepted without further checks.
  enum class Remote { accepted, refused };

  // `coordinator_user`: a name or uid; empty: none. `site_dir`: kSiteRuntimeDir, except in tests.
  explicit TrustedServers(std::string coordinator_user = "", Remote remote = Remote::accepted,
                          std::string site_dir = kSiteRuntimeDir);

  bool trust(uid_t user) const;
  // The error for a server on another machine; absent: `address` is not the IP address of one, or
  // such servers are accepted.
  std::optional<Error> refuses_address(const std::string& address) const;
  // Judges the server of a connected socket, to which nothing has been sent yet. `invalid`: it is
  // on this machine and is not trusted, or the kernel does not say whose it is, or it is on another
  // machine and refused; says who it is and what to do. `address`: as configured, for the message.
  Status check(int fd, const std::string& address);

 private:
  std::string coordinator_user_;
  Remote remote_;
  std::string site_dir_;
  std::unique_ptr<PeerLookup> lookup_;  // null: not needed yet
};

}  // namespace muster
