// Asks each address by itself: a client of all of them would stop at the first that answers.
#include "base/network/address_list.hpp"
#include "base/network/not_leader.hpp"
#include "base/text/time_text.hpp"
#include "base/version.hpp"
#include "cli/doctor/look.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/text.hpp"
#include "core/trust.hpp"

#include <algorithm>
#include <unistd.h>

namespace muster::cli::doctor {
namespace {

constexpr Millis kPatienceMs = 5'000;  // for each answer
constexpr char kOfMuster[] = "+muster.";

// When the coordinator says that our token expires.
std::optional<Millis> token_left(ApiClient& client, const LogIn& log_in) {
  const auto token = read_token(log_in);
  if (!token) return std::nullopt;
  const std::string id(core::Bearer::parse(token->bearer).id);
  const auto list = object(client, "/apis/muster.dev/v1/tokens");
  if (!list) return std::nullopt;
  for (const Json& one : at(*list, {"items"})) {
    if (text_at(one, {"id"}) != id) continue;
    if (const auto until = parse_time(text_at(one, {"expirationTimestamp"})))
      return *until - wall_now();
  }
  return std::nullopt;
}

void look_at_version(const Response& answer, Millis asked, Millis answered, AddressFacts& facts) {
  const std::string text = text_at(answer.json, {"gitVersion"});
  const size_t own = text.find(kOfMuster);
  facts.version = own == text.npos ? text : text.substr(own + sizeof kOfMuster - 1);
  if (!answer.date_ms) return;
  // It was somewhere in that second when the answer was written.
  facts.clock_off_ms = *answer.date_ms + 500 - (asked + answered) / 2;
  facts.clock_error_ms = 500 + (answered - asked + 1) / 2;
}

AddressFacts look_at_address(const std::string& address, const Target& target, TokenFacts& token) {
  AddressFacts facts{.address = address};
  const bool encrypted = address.starts_with(kHttps);
  facts.host = look_up(address);
  if (!facts.host.error.empty()) return facts;
  if (encrypted && !token.by_munge && !token.error.empty()) {
    facts.not_asked = "it wants a token";
    return facts;
  }
  ApiClient client(address, "", target.log_in);
  client.set_timeout(std::min(target.request_timeout_ms, kPatienceMs));
  const Millis asked = wall_now();
  const auto version = client.get("/version");
  facts.reply = reply_of(version, address);
  if (!facts.reply.serves()) return facts;
  look_at_version(*version, asked, wall_now(), facts);
  facts.reply = reply_of(client.get("/readyz"), address);
  if (!facts.reply.serves()) return facts;
  if (encrypted && !token.by_munge && !token.left_ms)
    token.left_ms = token_left(client, target.log_in);
  return facts;
}

}  // namespace

Reply reply_of(const Result<Response>& response, const std::string& address) {
  Reply reply;
  if (!response) {
    reply.error = one_line(response.error().message);
    const std::string known = "cannot reach the coordinator at " + address + ": ";
    if (reply.error.starts_with(known)) reply.error.erase(0, known.size());
    return reply;
  }
  if (response->ok()) return reply;
  const std::string said = one_line(refusal(*response).message);
  if (response->status == 503 && response->body.find(kNotLeader) != std::string::npos)
    reply.follows = true;
  else if (response->status == 503)
    reply.not_ready = said;
  else if (response->status == 401 || response->status == 403)
    reply.refused = said;
  else
    reply.error = said;
  return reply;
}

ClientFacts look_at_client(const Target& target) {
  ClientFacts facts{.own_version = kVersion, .origin = target.origin};
  const std::vector<std::string> addresses = split_addresses(target.api);
  const LogIn& log_in = target.log_in;
  TokenFacts& token = facts.token;
  token.needed = std::any_of(addresses.begin(), addresses.end(), [](const std::string& address) {
    return address.starts_with(kHttps);
  });
  token.path = log_in.token_file;
  token.there = access(log_in.token_file.c_str(), F_OK) == 0;
  token.by_munge = token.needed && logs_in_by_munge(log_in);
  if (token.by_munge) {
    facts.authority = look_at_certificate(log_in.ca_file);
    facts.munge = look_at_munge(log_in.munge_socket);
  } else if (token.needed || token.there) {
    if (const auto read = read_token(log_in); !read) token.error = read.error().message;
  }
  for (const std::string& address : addresses)
    facts.addresses.push_back(look_at_address(address, target, token));
  facts.limits = look_at_limits(0, "this shell");
  return facts;
}

}  // namespace muster::cli::doctor
