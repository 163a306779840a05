#include "client/connect/token.hpp"

#include "client/settings/files.hpp"
#include "core/trust.hpp"
#include "trust/munge/credential.hpp"

#include <algorithm>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::cli {

Result<UserToken> parse_token(const std::string& text) {
  UserToken token;
  const size_t end = std::min(text.find('\n'), text.size());
  token.bearer = text.substr(0, end);
  token.authority = text.substr(std::min(end + 1, text.size()));
  if (core::Bearer::parse(token.bearer).id.empty() ||
      token.authority.find("BEGIN CERTIFICATE") == token.authority.npos)
    return invalid("it is not a user token from `muster token create`");
  return token;
}

Result<UserToken> read_token(const LogIn& log_in) {
  const std::string& path = log_in.token_file;
  if (path.empty()) return invalid("a token is needed, but HOME is not set: use --token-file");
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    std::string what_then =
        "; create one on the coordinator's machine: `muster token create --out F`";
    if (!log_in.token_named && munge::load().ok())
      what_then += ". To log in by munge, put the certificate of the cluster's authority at " +
                   log_in.ca_file + " or use --ca-file";
    return invalid("no token at " + path + what_then);
  }
  if (S_ISREG(info.st_mode) && (info.st_mode & 077) != 0)
    return invalid(path + " can be read by other users: chmod 600 " + path);
  auto text = read_file(path);
  if (!text.ok()) return text.error();
  auto token = parse_token(*text);
  if (!token.ok()) return invalid(path + ": " + token.error().message);
  return token;
}

bool logs_in_by_munge(const LogIn& log_in) {
  return !log_in.token_named && access(log_in.token_file.c_str(), F_OK) != 0 &&
         access(log_in.ca_file.c_str(), F_OK) == 0;
}

Result<std::string> read_authority(const std::string& path) {
  auto text = read_file(path);
  if (text.ok() && text->find("BEGIN CERTIFICATE") == text->npos)
    return invalid(path + ": it is not a certificate in PEM");
  return text;
}

}  // namespace muster::cli
