// Token: a user's token in a file, as `muster token create` prints it: the token on the first line,
// then the certificate of the cluster's authority (PEM).
#pragma once

#include "base/result.hpp"
#include "client/settings/log_in.hpp"

#include <string>

namespace muster::cli {

struct UserToken {
  std::string bearer;
  std::string authority;  // PEM
  std::string until{};    // when it expires, as the API writes it; empty: not known
};

// `invalid`: it cannot be read, is open to other users, or is not a token; says what to do.
Result<UserToken> read_token(const LogIn& log_in);
// Parses the text of such a file.
Result<UserToken> parse_token(const std::string& text);

// Whether to log in by munge: there is no token file, but there is an authority's certificate.
bool logs_in_by_munge(const LogIn& log_in);
// Reads that certificate.
Result<std::string> read_authority(const std::string& path);

}  // namespace muster::cli
