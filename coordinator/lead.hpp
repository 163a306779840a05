// Lead: what a coordinator that is one of several knows of the others (standby/). One that is alone
// has none.
#pragma once

#include "api/http/passed_peer.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "core/standby/figures.hpp"
#include "storage/journal/journal.hpp"
#include "trust/tls/identity.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::coordinator {

using core::standby::LeadChange;
using core::standby::LeadFigures;
using core::standby::MemberFigures;

// Why a coordinator ends that has lost the lead.
inline constexpr char kMayNotLead[] =
    "the lease of the lead has run out, so another coordinator may lead by now: ending, with "
    "nothing "
    "answered since";

// Called on any thread.
struct Served {
  // Takes a client's connection that another coordinator passes on.
  std::function<void(Fd socket, api::PassedPeer peer)> admit;
  // Why the holder of this certificate may not take part; nothing if it may.
  std::function<std::optional<std::string>(const tls::Identity& who)> refuses;
};

class Lead {
 public:
  virtual ~Lead() = default;
  virtual uint64_t term() const = 0;  // the epoch of this start
  // The journal to serve, once. It begins to replicate with its first commit.
  virtual std::unique_ptr<storage::Journal> journal() = 0;

  // Any thread may call these.
  // Ends the process if another coordinator may lead by now, so that nothing may be answered.
  virtual void must_lead() const = 0;
  virtual void figures(std::function<void(LeadFigures)> done) = 0;
  // Hands over the lead to this member (demote: to any), or forgets one that is not connected.
  // `done` is called on any thread once it is decided, whereupon a hand-over follows at once; or
  // once the store has forgotten it. not_found: there is no such member. conflict: it cannot be
  // done now, with the reason. unavailable: the store does not answer.
  virtual void change(LeadChange change, std::string member, std::function<void(Status)> done) = 0;

  // What the coordinator does for the others from now on; empty functions: nothing any more, and
  // those that were given before are not called again once this returns.
  virtual void serve(Served served) = 0;
};

}  // namespace muster::coordinator
