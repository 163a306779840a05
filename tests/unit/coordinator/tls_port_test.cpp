// The agents' TLS port of a complete coordinator, attacked by clients with incomplete credentials.
#include "agents_port.hpp"
#include "base/clock.hpp"
#include "trust/tls/certificates.hpp"

#include <fstream>
#include <utility>

namespace muster::coordinator {
namespace {

constexpr Millis kHourMs = 3'600'000;

class TlsPortTest : public AgentsPortTest {
 protected:
  ~TlsPortTest() noexcept override = default;
  // Uses an authority of the test's own, which can sign anything.
  void prepare(Options& options) override {
    options.listen_tls = "127.0.0.1:0";
    options.ca_certificate = dir_ + "/ca.pem";
    options.ca_key = dir_ + "/ca.key";
    std::ofstream(options.ca_certificate) << authority_.pems().certificate;
    std::ofstream(options.ca_key) << authority_.pems().key;
  }

  tls::KeyPair issued(const std::string& name, Millis life_ms = kHourMs) {
    return authority_.issue({name, {}, false, wall_now(), life_ms});
  }
  // Keeps its context alive.
  struct Client {
    kj::Own<kj::TlsContext> context;
    Caller caller;
    Client(TlsPortTest& test, const std::optional<tls::KeyPair>& own)
        : context(tls::client_context(own, test.authority_.pems().certificate)),
          caller(test.io_, test.coordinator_->listen_tls_address(), context.get()) {}
  };
  // Why a client with this certificate gets no answer, or "" if it gets one.
  std::string thrown(const std::optional<tls::KeyPair>& own) {
    const auto exception = kj::runCatchingExceptions([&] {
      Client client(*this, own);
      call(client.caller, "c01");
    });
    KJ_IF_MAYBE (e, exception) {
      return tls::explained(*e).value_or(e->getDescription().cStr());
    }
    return "";
  }
  // Why a registration as `node` is refused, or "" if it is welcome.
  std::string refused(const tls::KeyPair& own, const std::string& node) {
    Client client(*this, own);
    auto answer = call(client.caller, node);
    return answer.getResult().isRefused()
               ? std::string(answer.getResult().getRefused().getMessage().cStr())
               : "";
  }
  capnp::Response<wire::Coordinator::CertifyResults> certify(Caller& caller) {
    const std::string der = *tls::make_request(tls::make_key());
    auto request = caller.coordinator().certifyRequest();
    request.setRequest(kj::arrayPtr(reinterpret_cast<const kj::byte*>(der.data()), der.size()));
    return request.send().wait(io_.waitScope);
  }

  tls::Authority authority_ = tls::Authority::make("the site's", wall_now());
};

TEST_F(TlsPortTest, ANodeRegistersWithItsCertificate) {
  EXPECT_EQ(refused(issued("node:c01"), "c01"), "");
}

TEST_F(TlsPortTest, CertificateOfAnotherNodeIsRefused) {
  EXPECT_NE(refused(issued("node:c01"), "c02").find("its certificate is for node:c01"),
            std::string::npos);
  EXPECT_NE(refused(issued("node:c01"), "c01.site").find("node:c01"), std::string::npos);
}

TEST_F(TlsPortTest, RevokedCertificateIsRefusedWithReason) {
  EXPECT_NE(refused(issued("node:c01:1"), "c01").find("has been revoked"), std::string::npos);
}

TEST_F(TlsPortTest, CertificatesForOtherNamesAreRefused) {
  for (const char* name : {"www.site", "user:alice", "node:", "muster-coordinator"})
    EXPECT_NE(thrown(issued(name)), "") << name;
}

TEST_F(TlsPortTest, MissingOrForeignCertificateIsRefused) {
  EXPECT_NE(thrown(std::nullopt), "");
  const auto other = tls::Authority::make("the site's", wall_now());
  EXPECT_NE(thrown(other.issue({"node:c01", {}, false, wall_now(), kHourMs})), "");
}

TEST_F(TlsPortTest, AnExpiredCertificateIsRefused) {
  EXPECT_NE(thrown(authority_.issue({"node:c01", {}, false, wall_now() - kHourMs, kHourMs / 2})),
            "");
}

TEST_F(TlsPortTest, AConnectionEndsWhenItsCertificateExpires) {
  const Millis begun = wall_now();
  Client brief(*this, issued("node:c01", 2'000)), lasting(*this, issued("node:c02"));
  for (auto& [client, node] : {std::pair(&brief, "c01"), std::pair(&lasting, "c02")})
    ASSERT_FALSE(call(client->caller, node).getResult().isRefused()) << node;
  bool late = false;
  auto ended = brief.caller.network.onDisconnect().exclusiveJoin(
      io_.provider->getTimer().afterDelay(20 * kj::SECONDS).then([&late] { late = true; }));
  ended.wait(io_.waitScope);
  EXPECT_FALSE(late);
  // X.509 times are in seconds; timers count milliseconds of another clock.
  EXPECT_GE(wall_now() + 50, (begun + 2'000) / 1'000 * 1'000);
  EXPECT_EQ(thrown(issued("node:c01")), "") << "with a new certificate it may come back";
  EXPECT_TRUE(certify(lasting.caller).getResult().isCertificate());
}

TEST_F(TlsPortTest, P24AConnectionOutlivesTheCertificateThatWasRenewedOnIt) {
  Client brief(*this, issued("node:c01", 2'000));
  ASSERT_FALSE(call(brief.caller, "c01").getResult().isRefused());
  const auto answer = certify(brief.caller);
  ASSERT_TRUE(answer.getResult().isCertificate());
  bool ended = false;
  auto watching =
      brief.caller.network.onDisconnect().then([&ended] { ended = true; }).eagerlyEvaluate(nullptr);
  const Millis until = wall_now() + 2'500;
  while (!ended && wall_now() < until)
    io_.provider->getTimer().afterDelay(20 * kj::MILLISECONDS).wait(io_.waitScope);
  EXPECT_FALSE(ended) << "the first certificate has expired, its successor has not";
  EXPECT_TRUE(certify(brief.caller).getResult().isCertificate());
}

TEST_F(TlsPortTest, ServerCertificateIsRefusedForClient) {
  EXPECT_NE(thrown(authority_.issue({"node:c01", {}, true, wall_now(), kHourMs})), "");
}

TEST_F(TlsPortTest, PlainTextIsRefused) {
  Caller plain(io_, coordinator_->listen_tls_address());
  EXPECT_TRUE(kj::runCatchingExceptions([&] { call(plain, "c01"); }) != nullptr);
}

TEST_F(TlsPortTest, UnknownJoinTokenIsRefused) {
  Client client(*this, issued("join:0123456789abcdef:c01"));
  EXPECT_NE(refused(issued("join:0123456789abcdef:c01"), "c01"), "");
  const auto answer = certify(client.caller);
  ASSERT_TRUE(answer.getResult().isRefused());
  EXPECT_EQ(answer.getResult().getRefused(), "its join token is unknown, or was revoked");
}

TEST_F(TlsPortTest, ANodeGetsACertificateOfItselfAndALocalAgentNone) {
  Client client(*this, issued("node:c01"));
  const auto answer = certify(client.caller);
  ASSERT_TRUE(answer.getResult().isCertificate());
  const auto facts = tls::read_certificate(answer.getResult().getCertificate().cStr());
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->common_name, "node:c01");
  Caller local = caller();
  EXPECT_TRUE(certify(local).getResult().isRefused());
}

}  // namespace
}  // namespace muster::coordinator
