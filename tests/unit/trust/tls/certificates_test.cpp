// Certificates, identities and bundles.
#include "trust/tls/certificates.hpp"

#include "trust/tls/bundle.hpp"
#include "trust/tls/identity.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <openssl/err.h>
#include <sstream>
#include <unistd.h>

namespace muster::tls {
namespace {

constexpr Millis kNow = 1'800'000'000'000, kHour = 3'600'000, kDay = 24 * kHour;

Issue of_node(const std::string& name) {
  return {"node:" + name, {}, false, kNow, 30 * kDay};
}

// What the openssl tool says about a certificate: an independent opinion.
std::string openssl(const std::string& arguments, const std::string& pem) {
  char path[] = "/tmp/muster-pem-XXXXXX";
  const int fd = mkstemp(path);
  close(fd);
  std::ofstream(path) << pem;
  FILE* pipe = popen(("openssl " + arguments + " < " + path + " 2>&1").c_str(), "r");
  std::string text;
  char bytes[4096];
  for (size_t n; (n = fread(bytes, 1, sizeof bytes, pipe)) > 0;) text.append(bytes, n);
  pclose(pipe);
  unlink(path);
  return text;
}

TEST(Certificates, OfANodeAreForClientsOnly) {
  const Authority authority = Authority::make("test", kNow);
  const KeyPair pair = authority.issue(of_node("c01"));
  EXPECT_TRUE(fits(pair));
  const auto facts = read_certificate(pair.certificate);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->common_name, "node:c01");
  EXPECT_EQ(facts->from_ms, kNow - kClockSkewMs);
  EXPECT_EQ(facts->until_ms, kNow + 30 * kDay);
  const std::string text = openssl("x509 -noout -text", pair.certificate);
  EXPECT_NE(text.find("TLS Web Client Authentication"), text.npos) << text;
  EXPECT_EQ(text.find("TLS Web Server Authentication"), text.npos) << text;
  EXPECT_NE(text.find("CA:FALSE"), text.npos) << text;
  EXPECT_NE(text.find("NIST CURVE: P-256"), text.npos) << text;
}

TEST(Certificates, OfTheCoordinatorHaveItsNames) {
  const Authority authority = Authority::make("test", kNow);
  const KeyPair pair = authority.issue(
      {kServerName, {kServerName, "head.site", "10.0.0.7", "fd00::7"}, true, kNow, kDay});
  const std::string text = openssl("x509 -noout -text", pair.certificate);
  for (const char* part : {"TLS Web Server Authentication", "DNS:muster-coordinator",
                           "DNS:head.site", "IP Address:10.0.0.7", "IP Address:FD00:0:0:0:0:0:0:7"})
    EXPECT_NE(text.find(part), text.npos) << part << "\n" << text;
}

TEST(Certificates, HoldNodeNamesOfMaximumLength) {
  const Authority authority = Authority::make("test", kNow);
  const std::string name(253, 'a');
  const auto facts = read_certificate(authority.issue(of_node(name)).certificate);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->common_name, "node:" + name);
}

TEST(Certificates, AreIssuedForKeyOfRequest) {
  const Authority authority = Authority::make("test", kNow);
  const std::string key = make_key();
  const auto request = make_request(key);
  ASSERT_TRUE(request.ok());
  const auto certificate = authority.sign(*request, of_node("c01"));
  ASSERT_TRUE(certificate.ok()) << certificate.error().message;
  EXPECT_TRUE(fits({key, *certificate}));
  EXPECT_FALSE(fits({make_key(), *certificate}));
  EXPECT_EQ(*request_key_hash(*request), *request_key_hash(*make_request(key)));
  EXPECT_NE(*request_key_hash(*request), *request_key_hash(*make_request(make_key())));
}

TEST(Certificates, MalformedOrWeakRequestsAreRefused) {
  const Authority authority = Authority::make("test", kNow);
  std::string request = *make_request(make_key());
  EXPECT_FALSE(authority.sign("", of_node("c01")).ok());
  EXPECT_FALSE(authority.sign("garbage", of_node("c01")).ok());
  EXPECT_FALSE(authority.sign(request + "x", of_node("c01")).ok()) << "bytes behind it";
  EXPECT_FALSE(authority.sign(request.substr(0, request.size() / 2), of_node("c01")).ok());
  request.back() = static_cast<char>(request.back() ^ 1);
  EXPECT_FALSE(authority.sign(request, of_node("c01")).ok()) << "its signature is of another key";
  // Correctly signed, but with a key that is too weak.
  const std::string weak =
      openssl("req -new -newkey rsa:1024 -nodes -subj /CN=x -keyout /dev/null -outform DER", "");
  const auto refused = authority.sign(weak.substr(weak.find('\x30')), of_node("c01"));
  ASSERT_FALSE(refused.ok());
}

// KJ checks the same error queue for its connections: what one peer sends must not break others'.
TEST(Certificates, BrokenRequestsLeaveNoErrorsBehind) {
  const Authority authority = Authority::make("test", kNow);
  const std::string request = *make_request(make_key());
  for (size_t i = 0; i < request.size(); ++i) {
    std::string broken = request;
    broken[i] = static_cast<char>(broken[i] ^ 0x55);
    static_cast<void>(request_key_hash(broken));
    ASSERT_EQ(ERR_peek_error(), 0u) << i;
    static_cast<void>(authority.sign(broken, of_node("c01")));
    ASSERT_EQ(ERR_peek_error(), 0u) << i;
  }
}

TEST(Certificates, UnsuitableAuthorityIsRefused) {
  const std::string path = testing::TempDir() + "muster-ca-" + std::to_string(getpid());
  const auto made = [&path](const std::string& key) {
    const std::string command = "openssl req -x509 -newkey " + key +
                                " -nodes -subj /CN=x -days 9 -keyout " + path + ".key -out " +
                                path + ".pem 2>/dev/null";
    EXPECT_EQ(system(command.c_str()), 0);
    const auto text = [](const std::string& file) {
      std::ifstream in(file);
      std::stringstream out;
      out << in.rdbuf();
      unlink(file.c_str());
      return out.str();
    };
    return KeyPair{text(path + ".key"), text(path + ".pem")};
  };
  EXPECT_FALSE(Authority::load(made("ed25519")).ok());
  KeyPair rsa = made("rsa:2048");
  rsa.certificate.pop_back();  // without the final newline
  const auto loaded = Authority::load(rsa);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Bundle bundle{loaded->issue(of_node("c01")), loaded->pems().certificate};
  EXPECT_TRUE(read_bundle(bundle_text(bundle, "")).ok());
}

TEST(Certificates, AnAuthorityIsLoadedOnlyWithItsOwnKey) {
  const Authority one = Authority::make("one", kNow), other = Authority::make("other", kNow);
  EXPECT_TRUE(Authority::load(one.pems()).ok());
  EXPECT_FALSE(Authority::load({other.pems().key, one.pems().certificate}).ok());
  EXPECT_FALSE(Authority::load({one.pems().key, "garbage"}).ok());
  EXPECT_FALSE(Authority::load({"garbage", one.pems().certificate}).ok());
  EXPECT_FALSE(Authority::load(one.issue(of_node("c01"))).ok()) << "a member is no authority";
}

TEST(Identity, CommonNamesRoundTrip) {
  using Kind = Identity::Kind;
  const Identity node{Kind::node, "c01.site", "", 0}, again{Kind::node, "c01", "", 7},
      join{Kind::join, "c01", "0123456789abcdef", 0},
      pool{Kind::pool, "hpc", "0123456789abcdef", 0};
  for (const Identity& who : {node, again, join, pool})
    EXPECT_EQ(Identity::parse(who.common_name()), who);
  EXPECT_EQ(again.common_name(), "node:c01:7");
  for (const char* text :
       {"", "node:", "node", "c01", "node:c01:", "node:c01:x", "node:c01:0", "node:c01:1:2",
        "node:c01:99999999999999999999", "join:", "join:id", "join:id:", "join::c01",
        "join:id:c01:2", "pool:id", "pool::hpc", "user:alice", "Node:c01"})
    EXPECT_EQ(Identity::parse(text), std::nullopt) << text;
}

TEST(Bundle, RoundTrips) {
  const Authority authority = Authority::make("test", kNow);
  const Bundle bundle{authority.issue(of_node("c01")), authority.pems().certificate};
  const std::string text = bundle_text(bundle, "of c01");
  EXPECT_TRUE(text.starts_with("# of c01\n-----BEGIN CERTIFICATE-----\n"));
  const auto read = read_bundle(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->own.key, bundle.own.key);
  EXPECT_EQ(read->own.certificate, bundle.own.certificate);
  EXPECT_EQ(read->authority, bundle.authority);
  // Every part of the bundle is needed.
  for (size_t size = 0; size + 1 < text.size(); ++size)
    ASSERT_FALSE(read_bundle(text.substr(0, size)).ok()) << size;
  const KeyPair stranger = authority.issue(of_node("c02"));
  EXPECT_FALSE(
      read_bundle(bundle_text({{stranger.key, bundle.own.certificate}, bundle.authority}, ""))
          .ok());
}

TEST(Hashes, MatchKnownValues) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(base64("any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");
  EXPECT_EQ(base64(""), "");
}

}  // namespace
}  // namespace muster::tls
