#include "cli/client/token.hpp"

#include "cli/settings/files.hpp"
#include "core/trust.hpp"

#include <algorithm>
#include <sys/stat.h>

namespace muster::cli {

Result<UserToken> parse_token(const std::string& text) {
  UserToken token;
  const size_t end = std::min(text.find('\n'), text.size());
  token.bearer = text.substr(0, end);
  token.authority = text.substr(std::min(end + 1, text.size()));
  if (core::Bearer::parse(token.bearer).id.empty() ||
      token.authority.find("BEGIN CERTIFICATE") == token.authority.npos)
    return invalid("it is not a user's token, as `muster token create` writes it");
  return token;
}

Result<UserToken> read_token(const std::string& path) {
  if (path.empty()) return invalid("a token is needed, and HOME is not set: give --token-file");
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0)
    return invalid("there is no token at " + path +
                   "; on the coordinator's machine, `muster token create --out F` makes one");
  if (S_ISREG(info.st_mode) && (info.st_mode & 077) != 0)
    return invalid(path + " is open to other users: chmod 600 " + path);
  auto text = read_file(path);
  if (!text.ok()) return text.error();
  auto token = parse_token(*text);
  if (!token.ok()) return invalid(path + ": " + token.error().message);
  return token;
}

}  // namespace muster::cli
