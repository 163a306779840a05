// EtcdOptions: where etcd is and how to log in there; what --store says.
//
//   store  = "etcd:" url *("," url)
//   url    = ("http" / "https") "://" host [":" port] [prefix]     port: 2379 if absent
//   host   = name / IPv4 / "[" IPv6 "]"
//   prefix = 1*("/" 1*(letter / digit / "-" / "_" / "."))          the same in all URLs that have
//   one
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::standby {

struct EtcdOptions {
  std::vector<std::string> urls;    // "http://HOST:PORT" or "https://HOST:PORT"; at least one
  std::string prefix = "/muster/";  // of all keys; begins and ends with a slash
  std::string ca_certificate;       // PEM file; empty: the authorities that the system trusts
  std::string certificate, key;     // PEM files of the client's certificate; empty: none
  std::string user, password;       // of etcd's own users; empty: none
  Millis timeout_ms = 1000;  // for an answer of one endpoint; a call takes at most twice that
};

// One endpoint.
struct EtcdUrl {
  bool tls = false;
  std::string host;  // without brackets
  uint16_t port = 2379;

  std::string text() const;     // "https://[::1]:2379"
  std::string address() const;  // "[::1]:2379"
};

// A URL without a prefix. `invalid` says what is wrong with it, but not where it is from.
Result<EtcdUrl> parse_etcd_url(std::string_view text);

// The value of --store. `invalid` names the flag.
Result<EtcdOptions> parse_store(std::string_view text);

}  // namespace muster::standby
