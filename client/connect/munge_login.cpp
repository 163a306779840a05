#include "client/connect/munge_login.hpp"

#include "base/fd.hpp"
#include "base/secret.hpp"
#include "base/text/time_text.hpp"
#include "client/settings/files.hpp"
#include "client/terminal/json.hpp"
#include "trust/munge/claim.hpp"
#include "trust/munge/credential.hpp"
#include "trust/tls/certificates.hpp"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster::cli {
namespace {

constexpr char kMungePath[] = "/apis/muster.dev/v1/munge";
// How long to wait while another command logs in. libmunge waits 10 s for its daemon.
constexpr Millis kLockPatience = 15'000, kLockPause = 20;

// Locks a file for as long as the descriptor is open. Returns none if that takes too long or the
// file system does not support locks.
Fd locked(const std::string& path) {
  Fd lock(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  const Millis begin = boot_now();
  while (lock && flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || boot_now() - begin > kLockPatience) return Fd();
    usleep(kLockPause * 1000);
  }
  return lock;
}

// Whether the file is ours and inaccessible to others.
bool is_private(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & 077) == 0;
}

// The message of a Status, else the HTTP code.
std::string said(const Response& response) {
  const std::string message = text_at(read_json(response.body), {"message"});
  return message.empty() ? "HTTP " + std::to_string(response.status) : message;
}

}  // namespace

MungeLogin::MungeLogin(std::string api, std::string authority, const LogIn& log_in, Encode encode)
    : api_(std::move(api)),
      authority_(std::move(authority)),
      encode_(
          encode
              ? std::move(encode)
              : [socket = log_in.munge_socket](
                    uid_t reader,
                    const std::string& payload) { return munge::encode(socket, reader, payload); }),
      path_(log_in.cache_folder + "/munge-" +
            tls::sha256_hex(api_ + "\n" + std::to_string(geteuid()) + "\n" + authority_)
                .substr(0, 16) +
            ".json") {}

Result<UserToken> MungeLogin::token(const Ask& ask, const std::string& refused) const {
  const auto fresh = [](const std::optional<Cached>& one) {
    return one && wall_now() - one->since < one->life / 3 * 2;
  };
  auto known = cached(refused);
  if (fresh(known)) return known->token;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  const Fd lock = locked(path_ + ".lock");
  known = cached(refused);  // another command may have logged in meanwhile
  if (fresh(known)) return known->token;
  auto made = exchange(ask);
  if (!made.ok()) {
    if (known) return known->token;  // it is still valid
    return made.error();
  }
  const Json json = {{"bearer", made->token.bearer},
                     {"until", made->token.until},
                     {"sinceMs", made->since},
                     {"lifeMs", made->life}};
  if (Status kept = write_file(path_, dumped(json)); !kept)
    std::cerr << "muster: cannot cache the token, so every command logs in again: "
              << kept.error().message << std::endl;
  return made->token;
}

std::optional<MungeLogin::Cached> MungeLogin::cached(const std::string& refused) const {
  if (!is_private(path_)) return std::nullopt;
  auto text = read_file(path_);
  if (!text.ok()) return std::nullopt;
  const Json json = read_json(*text);
  auto token = parse_token(text_at(json, {"bearer"}) + "\n" + authority_);
  if (!token.ok() || token->bearer == refused) return std::nullopt;
  token->until = text_at(json, {"until"});
  Cached one{std::move(*token), number_at(json, {"sinceMs"}), number_at(json, {"lifeMs"})};
  const Millis age = wall_now() - one.since;
  if (age < 0 || age >= one.life) return std::nullopt;
  return one;
}

Result<MungeLogin::Cached> MungeLogin::exchange(const Ask& ask) const {
  bool restarted = false;
  auto made = exchange_once(ask, restarted);
  // The coordinator may have restarted between the two requests.
  return made.ok() || !restarted ? made : exchange_once(ask, restarted);
}

Result<MungeLogin::Cached> MungeLogin::exchange_once(const Ask& ask, bool& restarted) const {
  auto asked = ask(kMungePath, nullptr);
  if (!asked.ok()) return asked.error();
  if (asked->status == 401 || asked->status == 404)
    return invalid("the coordinator at " + api_ +
                   " does not accept munge logins; on its machine, run `muster token create --out "
                   "F`, and copy F to ~/.config/muster/token");
  if (!asked->ok()) return Error{Errc::unavailable, api_ + ": " + said(*asked), {}};
  const Json audience = read_json(asked->body);
  const munge::Claim claim{{text_at(audience, {"cluster"}), text_at(audience, {"start"})},
                           random_hex(munge::kNonceDigits / 2)};
  const int64_t uid = number_at(audience, {"uid"}, -1);
  if (!munge::Claim::parse(claim.text()) || uid < 0 || uid > UINT32_MAX)
    return Error{Errc::unavailable, api_ + ": cannot parse the response", {}};
  auto credential = encode_(static_cast<uid_t>(uid), claim.text());
  if (!credential.ok())
    return Error{Errc::unavailable,
                 "cannot log in with munge: " + credential.error().message +
                     "; without munge, run `muster token create --out F` on the coordinator's "
                     "machine, and copy F to ~/.config/muster/token",
                 {}};
  const std::string body = dumped(Json{{"credential", *credential}});
  const Millis since = wall_now();
  auto answer = ask(kMungePath, &body);
  if (!answer.ok()) return answer.error();
  if (answer->status == 401) {
    restarted = true;
    return invalid(api_ + ": " + said(*answer) +
                   "; its log says why: the munge keys or the clocks may differ");
  }
  if (answer->status == 503) return Error{Errc::unavailable, api_ + ": " + said(*answer), {}};
  if (!answer->ok()) return invalid(api_ + ": " + said(*answer));
  const Json json = read_json(answer->body);
  auto token = parse_token(text_at(json, {"text"}));
  const auto from = parse_time(text_at(json, {"creationTimestamp"}));
  const auto until = parse_time(text_at(json, {"expirationTimestamp"}));
  if (!token.ok() || !from || !until)
    return Error{Errc::unavailable, api_ + ": cannot parse the response", {}};
  token->authority = authority_;
  token->until = text_at(json, {"expirationTimestamp"});
  return Cached{std::move(*token), since, *until - *from};
}

}  // namespace muster::cli
