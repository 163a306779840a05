// Token: a user's token in a file, as `muster token create` prints it: the token on the first line,
// then the certificate of the cluster's authority (PEM).
#pragma once

#include "base/result.hpp"

#include <string>

namespace muster::cli {

struct UserToken {
  std::string bearer;
  std::string authority;  // PEM
};

// `invalid`: it cannot be read, is open to other users, or is not a token; says what to do.
Result<UserToken> read_token(const std::string& path);
// Of the text of such a file.
Result<UserToken> parse_token(const std::string& text);

}  // namespace muster::cli
