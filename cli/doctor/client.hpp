// The client: whether a coordinator answers, as whom, and by which clock.
#pragma once

#include "cli/doctor/limits.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::cli::doctor {

// A coordinator's name, looked up.
struct HostFacts {
  std::string host;     // empty: an IP address or a Unix socket, which need no look-up
  std::string error{};  // empty: it has addresses
  std::string addresses{};
  Millis took_ms = 0;
};

// What a coordinator made of our requests; all empty: it serves us.
struct Reply {
  std::string error{};      // why there was none
  bool follows = false;     // it is one of several, and does not lead
  std::string refused{};    // 401 or 403: what it says
  std::string not_ready{};  // what it waits for
  bool serves() const { return error.empty() && !follows && refused.empty() && not_ready.empty(); }
};

struct AddressFacts {
  std::string address;  // "https://head:7443"
  HostFacts host{};
  std::string not_asked{};  // why; empty: it was asked
  Reply reply{};
  std::string version{};
  // Its clock minus ours, and how far that may be off; nullopt: it does not say.
  std::optional<Millis> clock_off_ms{};
  Millis clock_error_ms = 0;
};

struct TokenFacts {
  bool needed = false;    // an address is https
  bool by_munge = false;  // one is made from a munge credential
  std::string path{};
  bool there = false;
  std::string error{};              // why it cannot be used
  std::optional<Millis> left_ms{};  // until it expires, as the coordinator says; nullopt: not known
};

struct CertificateFacts {
  std::string path;
  bool there = false;
  std::string error{};      // empty: it was read
  bool may_read = true;     // false: only others may
  Millis left_ms = 0;       // until it expires; less than 0: it has
  Millis begins_in_ms = 0;  // more than 0: it is not valid yet
};

struct MungeFacts {
  std::string socket{};  // empty: the default
  std::string error{};   // empty: a credential was made
  std::optional<Millis> took_ms{};
};

struct ClientFacts {
  std::string own_version;
  std::string origin{};  // where the addresses come from: "from --api"
  std::vector<AddressFacts> addresses{};
  TokenFacts token{};
  std::optional<CertificateFacts> authority{};  // --ca-file, for munge
  std::optional<MungeFacts> munge{};            // unset: not used
  LimitFacts limits{};
};

void judge_client(const ClientFacts& facts, Findings& out);

// Parts of it that are asked of daemons, too.
// `bad`: how bad it is if it has no address.
void judge_host(const HostFacts& facts, Level bad, Findings& out);
void judge_munge(const MungeFacts& facts, Findings& out);
// `soon_ms`: warn if less is left. `renew`: what to do.
void judge_certificate(const CertificateFacts& facts, const std::string& check, Millis soon_ms,
                       const std::string& renew, Findings& out);

}  // namespace muster::cli::doctor
