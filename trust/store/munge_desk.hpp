// MungeDesk: finds out who made a munge credential, on its own thread.
//
// Decoding asks a daemon, which may be slow, stopped or gone. So callers wait for a bounded time,
// their number is bounded in total and per address, and nothing else is blocked. Invariant: a
// credential is accepted at most once, and only if it was made for this run of this coordinator
// (trust/munge/claim.hpp).
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "trust/munge/claim.hpp"
#include "trust/munge/credential.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <thread>

namespace muster::coordinator {

class MungeDesk {
 public:
  static constexpr size_t kWaitingMax = 64, kWaitingOfOneMax = 16;
  static constexpr Millis kPatienceMs = 5'000;     // requests that waited longer are not served
  static constexpr Millis kLifeMaxMs = 3'600'000;  // of a credential; munge's own limit

  using Decode = std::function<Result<munge::Decoded>(const std::string& credential)>;
  explicit MungeDesk(Decode decode, std::function<Millis()> now = wall_now,
                     std::function<Millis()> elapsed = boot_now);
  // Does not wait for a daemon that does not answer.
  ~MungeDesk();
  MungeDesk(const MungeDesk&) = delete;
  MungeDesk& operator=(const MungeDesk&) = delete;

  // From any thread, like all that follows. From now on, credentials for this cluster are accepted.
  void open(const std::string& cluster);
  // The audience that credentials must be made for; nothing before open().
  std::optional<munge::Audience> audience() const;
  // Calls `done` once, on any thread, with the uid that made the credential, or drops it. invalid:
  // it is refused; the reason is for the log. unavailable, overloaded. `from`: who sent it.
  void judge(std::string credential, const std::string& from,
             const std::function<void(Result<uid_t>)>& done);

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared);

  // Outlives the desk while the thread waits for the daemon.
  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace muster::coordinator
