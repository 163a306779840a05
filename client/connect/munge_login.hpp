// MungeLogin: exchanges a munge credential for a user's token.
//
// The token is kept in the cache folder, readable only by its user, and replaced after two thirds
// of its lifetime, so thousands of commands create one token an hour. Concurrent commands wait for
// the one that logs in. A token that cannot be cached is used once. Root running with another
// user's HOME does not use that user's token.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "client/connect/response.hpp"
#include "client/connect/token.hpp"
#include "client/settings/log_in.hpp"

#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>

namespace muster::cli {

class MungeLogin {
 public:
  // Sends a request without a token: a POST with the body, or a GET if there is none.
  using Ask = std::function<Result<Response>(const char* path, const std::string* body)>;

  // Makes a credential, with this payload, that only user `reader` can decode.
  using Encode = std::function<Result<std::string>(uid_t reader, const std::string& payload)>;

  // `api`: the coordinator's address. `authority`: the issuer of the coordinator's certificate.
  // `encode`: replaces munge's daemon in tests.
  MungeLogin(std::string api, std::string authority, const LogIn& log_in, Encode encode = {});

  // A token that stays valid for a while, other than `refused` (empty: none). invalid: the
  // coordinator refuses to log the user in; unavailable.
  Result<UserToken> token(const Ask& ask, const std::string& refused) const;

 private:
  struct Cached {
    UserToken token;
    Millis since = 0, life = 0;  // by this machine's clock, which may differ from the coordinator's
  };
  std::optional<Cached> cached(const std::string& refused) const;
  Result<Cached> exchange(const Ask& ask) const;
  Result<Cached> exchange_once(const Ask& ask, bool& restarted) const;

  const std::string api_, authority_;
  const Encode encode_;
  const std::string path_;  // of the cached token
};

}  // namespace muster::cli
