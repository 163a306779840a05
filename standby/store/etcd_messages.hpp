// Messages of etcd's HTTP/JSON gateway, version 3: the requests that a Store makes, and what their
// answers say. Pure.
//
// Keys and values are base64, 64-bit numbers are strings, and members that are 0, false or empty
// are left out. An error is {"error": TEXT, "code": gRPC's code}; in a stream, {"error": {...}}.
#pragma once

#include "base/text/json.hpp"
#include "standby/store/store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::standby {

constexpr char kTxnPath[] = "/v3/kv/txn";
constexpr char kGrantPath[] = "/v3/lease/grant";
constexpr char kRenewPath[] = "/v3/lease/keepalive";
constexpr char kRevokePath[] = "/v3/lease/revoke";
constexpr char kLogInPath[] = "/v3/auth/authenticate";

// The names of both keys, in plain text.
struct EtcdKeys {
  std::string configuration, leader;
  explicit EtcdKeys(const std::string& prefix)
      : configuration(prefix + "configuration"), leader(prefix + "leader") {}
};

// etcd counts the life of a lease in seconds: rounded up, at least 1.
uint64_t seconds_of(Millis life_ms);

// Bodies of requests.
std::string read_request(const EtcdKeys& keys);
std::string change_request(const EtcdKeys& keys, const StoreChange& change);
std::string grant_request(Millis life_ms);
std::string lease_request(uint64_t lease);  // to renew and to revoke
std::string log_in_request(const std::string& user, const std::string& password);

// What an endpoint has answered.
struct EtcdAnswer {
  enum class Kind {
    said,     // an answer of etcd to the request
    refused,  // etcd did not do it, and says so
    unclear,  // not known whether it was done, or not an answer of etcd at all
  };
  Kind kind = Kind::unclear;
  Json body;             // of `said`
  uint64_t cluster = 0;  // likewise: the id of the etcd cluster
  uint64_t term = 0;     // likewise: of etcd's own election, as the member knew it
  int code = 0;          // of `refused`: gRPC's
  std::string why;       // unless `said`

  bool needs_log_in() const;   // the token was missing, or is no longer valid
  bool not_found() const;      // there is no such lease
  bool without_users() const;  // log-in refused: authentication is not enabled
};
EtcdAnswer read_answer(unsigned status, std::string_view body);

// A number of an answer; 0 if it is left out, nullopt if it is not a number.
std::optional<uint64_t> number_of(const Json& object, const char* name);

// What the answer to read_request() or change_request() says; nullopt: it does not answer that.
std::optional<StoreChanged> changed_of(const Json& body, const EtcdKeys& keys);

// Whether the state is the one that this change makes. A change that was made and of which the
// answer was lost is recognized by it.
bool shows(const StoreSeen& seen, const StoreChange& change);

std::optional<std::string> from_base64(std::string_view text);  // RFC 4648, with its padding

}  // namespace muster::standby
