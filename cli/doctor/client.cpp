#include "cli/doctor/client.hpp"

#include "client/terminal/text.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace muster::cli::doctor {
namespace {

constexpr Millis kSlowName = 1'000;
constexpr Millis kClockWarnMs = 2'000, kClockMaxMs = 300'000;  // munge's credentials live 5 minutes
constexpr Millis kTokenSoonMs = 3'600'000;
constexpr Millis kAuthoritySoonMs = Millis{30} * 86'400'000;
constexpr uint64_t kFilesOfClient = 256;

bool is_serving(const AddressFacts& address) {
  return address.not_asked.empty() && address.host.error.empty() && address.reply.serves();
}

void judge_clock(const AddressFacts& address, Findings& out) {
  if (!address.clock_off_ms) {
    out.unknown("clock", address.address + " does not tell the time",
                "compare the clocks by hand, or upgrade the coordinator");
    return;
  }
  const Millis off = std::abs(*address.clock_off_ms);
  const Millis least = std::max<Millis>(0, off - address.clock_error_ms);
  if (least <= kClockWarnMs) {
    out.ok("clock", "within " + short_span(std::max<Millis>(1'000, off + address.clock_error_ms)) +
                        " of the coordinator's");
    return;
  }
  const std::string found = "this machine's clock is " + short_span(off) +
                            (*address.clock_off_ms > 0 ? " behind" : " ahead of") +
                            " the coordinator's";
  if (least <= kClockMaxMs)
    out.warn("clock", found, "run NTP on both machines (chrony, systemd-timesyncd)");
  else
    out.problem("clock",
                found +
                    ": munge credentials and new certificates of one look expired or not yet "
                    "valid to the other",
                "run NTP on both machines (chrony, systemd-timesyncd)");
}

void judge_version(const AddressFacts& address, const std::string& own, Findings& out) {
  if (address.version == own)
    out.ok("version", "this executable and the coordinator are " + own);
  else
    out.warn("version", "the coordinator is " + address.version + ", this executable " + own,
             "upgrade the older one; docs/upgrade.md says which versions work together");
}

// Messages such as "no token at X; create one": what is wrong, and what to do.
std::pair<std::string, std::string> split_message(const std::string& message,
                                                  const std::string& otherwise) {
  for (const std::string_view mark : {"; ", ": chmod "})
    if (const size_t at = message.find(mark); at != std::string::npos)
      return {message.substr(0, at), message.substr(at + 2)};
  return {message, otherwise};
}

// `served`: another address serves.
void judge_address(const AddressFacts& address, bool served, const std::string& origin,
                   Findings& out) {
  const std::string check = "coordinator";
  const Level bad = served ? Level::warning : Level::problem;
  judge_host(address.host, bad, out);
  if (!address.host.error.empty()) return;
  if (!address.not_asked.empty()) {
    out.unknown(check, address.address + " was not asked: " + address.not_asked,
                "correct the token first");
  } else if (!address.reply.error.empty()) {
    out.add(bad, check, address.address + ": " + address.reply.error,
            "start the coordinator there, open the port in the firewall, or correct the address (" +
                origin + ")");
  } else if (address.reply.follows && served) {
    out.ok(check, address.address + " follows another coordinator");
  } else if (address.reply.follows) {
    out.problem(check, address.address + " answers, but does not lead",
                "name all coordinators of the cluster, and see `muster get coordinators`");
  } else if (!address.reply.refused.empty()) {
    out.add(bad, check, address.address + " refuses us: " + address.reply.refused,
            address.address.starts_with("https")
                ? "get a new token on the coordinator's machine (`muster token create --out F`), "
                  "or ask its operators for a role"
                : "ask its operators for a role (--users), or run this as the coordinator's user");
  } else if (!address.reply.not_ready.empty()) {
    out.add(bad, check, address.address + " is not ready: " + address.reply.not_ready,
            "wait, and see its log if this does not change");
  } else {
    out.ok(check, address.address + " serves");
  }
}

void judge_token(const TokenFacts& token, Findings& out) {
  if (token.by_munge || (!token.needed && !token.there)) return;
  const std::string create =
      "create one on the coordinator's machine: `muster token create --out F`";
  if (!token.error.empty()) {
    const auto [found, advice] = split_message(token.error, create);
    out.add(token.needed ? Level::problem : Level::warning, "token", found, advice);
  } else if (token.left_ms && *token.left_ms <= 0) {
    out.problem("token", token.path + " has expired", create);
  } else if (token.left_ms && *token.left_ms < kTokenSoonMs) {
    out.warn("token", token.path + " expires in " + short_span(*token.left_ms), create);
  } else {
    out.ok("token", token.path + (token.left_ms ? " is valid for " + short_span(*token.left_ms)
                                                : " is readable by its owner only"));
  }
}

}  // namespace

void judge_host(const HostFacts& facts, Level bad, Findings& out) {
  if (facts.host.empty()) return;
  const std::string check = "name " + facts.host;
  if (!facts.error.empty())
    out.add(bad, check, "cannot be resolved: " + facts.error,
            "correct the name, or see /etc/hosts, /etc/resolv.conf and /etc/nsswitch.conf");
  else if (facts.took_ms >= kSlowName)
    out.warn(check, "takes " + short_span(facts.took_ms) + " to resolve",
             "see whether all servers in /etc/resolv.conf answer");
  else
    out.ok(check, facts.addresses);
}

void judge_munge(const MungeFacts& facts, Findings& out) {
  if (!facts.error.empty())
    out.problem("munge", facts.error,
                "start munged here, with the key of the coordinator's machine in "
                "/etc/munge/munge.key");
  else
    out.ok("munge", "makes credentials");
}

void judge_certificate(const CertificateFacts& facts, const std::string& check, Millis soon_ms,
                       const std::string& renew, Findings& out) {
  if (!facts.may_read)
    out.unknown(check, facts.path + ": " + facts.error, "run this as root or as its owner");
  else if (!facts.there)
    out.problem(check, facts.path + " does not exist", renew);
  else if (!facts.error.empty())
    out.problem(check, facts.path + ": " + facts.error, renew);
  else if (facts.begins_in_ms > 0)
    out.problem(check, facts.path + " is not valid for another " + short_span(facts.begins_in_ms),
                "correct this machine's clock, or that of the machine that issued it");
  else if (facts.left_ms <= 0)
    out.problem(check, facts.path + " expired " + short_span(-facts.left_ms) + " ago", renew);
  else if (facts.left_ms < soon_ms)
    out.warn(check, facts.path + " expires in " + short_span(facts.left_ms), renew);
  else
    out.ok(check, facts.path + " is valid for " + short_span(facts.left_ms));
}

void judge_client(const ClientFacts& facts, Findings& out) {
  const auto serving = std::find_if(facts.addresses.begin(), facts.addresses.end(), is_serving);
  const bool served = serving != facts.addresses.end();
  for (const AddressFacts& address : facts.addresses)
    judge_address(address, served && &address != &*serving, facts.origin, out);
  if (facts.authority)
    judge_certificate(*facts.authority, "authority", kAuthoritySoonMs,
                      "copy the certificate of the cluster's authority from the coordinator's "
                      "machine",
                      out);
  if (facts.munge) judge_munge(*facts.munge, out);
  judge_token(facts.token, out);
  if (served) {
    judge_version(*serving, facts.own_version, out);
    judge_clock(*serving, out);
  }
  judge_open_files(facts.limits, kFilesOfClient, "which is little for following many pods",
                   "raise it: ulimit -n", out);
}

}  // namespace muster::cli::doctor
