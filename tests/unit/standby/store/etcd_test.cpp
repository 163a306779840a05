// The store in real etcd servers.
#include "standby/store/etcd.hpp"

#include "etcd_cluster.hpp"
#include "standby/store/endpoint.hpp"
#include "standby/store/etcd_messages.hpp"
#include "trust/tls/certificates.hpp"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::standby {
namespace {

constexpr Millis kPatience = 30'000;  // for what takes milliseconds, on a machine under load

class EtcdTest : public testing::Test {
 protected:
  ~EtcdTest() noexcept override = default;

  void start(size_t members) {
    cluster_.emplace(members);
    cluster_->start_all();
    if (HasFatalFailure()) return;
    open(cluster_->urls());
    await_answers();
  }
  void open(std::vector<std::string> urls, Millis timeout_ms = 1000) {
    EtcdOptions options;
    options.urls = std::move(urls);
    options.timeout_ms = timeout_ms;
    store_ = opened(std::move(options));
  }
  kj::Own<Store> opened(EtcdOptions options) {
    auto made =
        etcd_store(io_.provider->getNetwork(), io_.provider->getTimer(), std::move(options));
    EXPECT_TRUE(made.ok()) << made.error().message;
    return kj::mv(*made);
  }
  // Until all members have started and elected a leader.
  void await_answers() {
    const Millis end = boot_now() + kPatience;
    for (;;) {
      auto seen = wait(store_->read());
      if (seen) return;
      if (cluster_->has_failed()) {
        cluster_->start_again_elsewhere();
        open(cluster_->urls());
      }
      ASSERT_LT(boot_now(), end) << seen.error().message << "\n" << cluster_->log(0);
      io_.provider->getTimer().afterDelay(20 * kj::MILLISECONDS).wait(io_.waitScope);
    }
  }
  template <class T>
  T wait(kj::Promise<T> promise) {
    return promise.wait(io_.waitScope);
  }
  StoreSeen read() {
    auto seen = wait(store_->read());
    EXPECT_TRUE(seen.ok()) << seen.error().message;
    return seen ? *seen : StoreSeen{};
  }
  StoreChanged change(StoreChange change) {
    auto changed = wait(store_->change(std::move(change)));
    EXPECT_TRUE(changed.ok()) << changed.error().message;
    return changed ? *changed : StoreChanged{};
  }
  uint64_t grant(Millis life_ms) {
    auto lease = wait(store_->grant(life_ms));
    EXPECT_TRUE(lease.ok()) << lease.error().message;
    return lease ? *lease : 0;
  }

  // Until the lease is renewed, which etcd may be too busy for while it elects a leader.
  void await_renewal(uint64_t lease) {
    const Millis end = boot_now() + kPatience;
    for (;;) {
      auto renewed = wait(store_->renew(lease));
      if (renewed) {
        EXPECT_TRUE(*renewed);
        return;
      }
      ASSERT_LT(boot_now(), end) << renewed.error().message;
    }
  }
  // An administrator's request, which etcd must accept.
  void post(const char* path, const Json& body) {
    const HttpNames names;
    Endpoint endpoint(io_.provider->getNetwork(), names, *parse_etcd_url(cluster_->url(0)),
                      nullptr);
    bool sent = false;
    const auto answer = wait(endpoint.ask({path, dumped(body), ""}, sent));
    ASSERT_EQ(answer.status, 200u) << answer.body;
  }

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  std::optional<EtcdCluster> cluster_;
  kj::Own<Store> store_;
};

StoreChange taking(const StoreSeen& seen, std::string configuration, std::string member,
                   uint64_t lease) {
  return {seen.configuration ? seen.configuration->revision : 0,
          seen.leader ? seen.leader->created : 0, std::move(configuration),
          StoreChange::Key{std::move(member), lease}};
}

TEST_F(EtcdTest, ChangesAreMadeWhereTheirGuardsHold) {
  start(1);
  ASSERT_NE(store_.get(), nullptr);
  EXPECT_EQ(read(), StoreSeen{});

  const std::string binary("\0\xff{}\n", 5);
  const uint64_t lease = grant(10'000);
  const StoreChanged first = change(taking({}, binary, "a", lease));
  EXPECT_TRUE(first.applied);
  ASSERT_TRUE(first.now.configuration && first.now.leader);
  EXPECT_EQ(first.now.configuration->value, binary);
  EXPECT_EQ(first.now.configuration->lease, 0u);
  EXPECT_EQ(first.now.leader->value, "a");
  EXPECT_EQ(first.now.leader->lease, lease);
  EXPECT_EQ(first.now.leader->created, first.now.leader->revision);
  EXPECT_EQ(read(), first.now);

  // Another member that has seen nothing yet.
  const StoreChanged second = change(taking({}, "2", "b", lease));
  EXPECT_FALSE(second.applied);
  EXPECT_EQ(second.now, first.now);

  // Each guard alone.
  StoreChange old{first.now.configuration->revision, first.now.leader->created + 1, "3"};
  EXPECT_FALSE(change(old).applied);
  old = {first.now.configuration->revision - 1, first.now.leader->created, "3"};
  EXPECT_FALSE(change(old).applied);
  EXPECT_EQ(read(), first.now);

  // The value of a key changes; its creation does not.
  const StoreChanged third =
      change({first.now.configuration->revision, first.now.leader->created, "3"});
  EXPECT_TRUE(third.applied);
  EXPECT_EQ(third.now.configuration->created, first.now.configuration->created);
  EXPECT_GT(third.now.configuration->revision, first.now.configuration->revision);
  EXPECT_EQ(third.now.leader, first.now.leader);

  StoreChange leaves{third.now.configuration->revision, third.now.leader->created};
  leaves.resigns = true;
  const StoreChanged fourth = change(leaves);
  EXPECT_TRUE(fourth.applied);
  EXPECT_FALSE(fourth.now.leader);
  EXPECT_EQ(fourth.now.configuration, third.now.configuration);
}

TEST_F(EtcdTest, LeaseEndsWithItsKeyUnlessItIsRenewed) {
  start(1);
  ASSERT_NE(store_.get(), nullptr);
  const uint64_t kept = grant(1000), other = grant(60'000);
  EXPECT_TRUE(change(taking({}, "c", "a", kept)).applied);
  // Renewed for three times as long as it lasts.
  const Millis end = boot_now() + 6'000;
  while (boot_now() < end) {
    auto renewed = wait(store_->renew(kept));
    ASSERT_TRUE(renewed.ok()) << renewed.error().message;
    ASSERT_TRUE(*renewed);
    io_.provider->getTimer().afterDelay(50 * kj::MILLISECONDS).wait(io_.waitScope);
  }
  EXPECT_TRUE(read().leader);
  const Millis patience = boot_now() + kPatience;
  while (read().leader) ASSERT_LT(boot_now(), patience);
  auto renewed = wait(store_->renew(kept));
  ASSERT_TRUE(renewed.ok()) << renewed.error().message;
  EXPECT_FALSE(*renewed);
  EXPECT_TRUE(read().configuration);

  // A key can't be put under it any more.
  auto late = wait(store_->change(taking(read(), "d", "a", kept)));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Errc::not_found);
  EXPECT_EQ(read().configuration->value, "c");

  EXPECT_TRUE(change(taking(read(), "d", "b", other)).applied);
  EXPECT_TRUE(wait(store_->revoke(other)).ok());
  EXPECT_FALSE(read().leader);
  EXPECT_TRUE(wait(store_->revoke(other)).ok());
}

TEST_F(EtcdTest, WithoutAQuorumNothingIsAnsweredAndNothingHangs) {
  start(3);
  ASSERT_NE(store_.get(), nullptr);
  const uint64_t lease = grant(60'000);
  const StoreChanged made = change(taking({}, "c", "a", lease));
  ASSERT_TRUE(made.applied);

  // One member less: the others elect another leader, if it led.
  cluster_->kill(0);
  await_answers();
  EXPECT_EQ(read(), made.now);
  await_renewal(lease);

  cluster_->kill(1);
  for (int i = 0; i < 3; ++i) {
    const Millis begin = boot_now();
    auto seen = wait(store_->read());
    ASSERT_FALSE(seen.ok());
    EXPECT_EQ(seen.error().code, Errc::unavailable);
    EXPECT_LT(boot_now() - begin, kPatience);  // one alone waits for 7 s
  }
  auto renewed = wait(store_->renew(lease));
  ASSERT_FALSE(renewed.ok());
  EXPECT_EQ(renewed.error().code, Errc::unavailable);
  StoreChange leaves{made.now.configuration->revision, made.now.leader->created};
  leaves.resigns = true;
  auto changed = wait(store_->change(leaves));
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().code, Errc::unavailable);

  cluster_->start(0);
  cluster_->start(1);
  await_answers();
  // What was answered is there; whether the last change was made was not said.
  const StoreSeen seen = read();
  EXPECT_EQ(seen.configuration, made.now.configuration);
  if (seen.leader) {
    EXPECT_EQ(seen.leader, made.now.leader);
  }
}

TEST_F(EtcdTest, FrozenMembersAreLeft) {
  start(3);
  ASSERT_NE(store_.get(), nullptr);
  open(cluster_->urls(), 300);
  const uint64_t lease = grant(60'000);
  for (size_t i = 0; i < 3; ++i) {
    cluster_->signal(i, SIGSTOP);
    await_answers();
    await_renewal(lease);
    cluster_->signal(i, SIGCONT);
    await_answers();
  }
}

TEST_F(EtcdTest, UsersAndPasswords) {
  start(1);
  ASSERT_NE(store_.get(), nullptr);
  ASSERT_TRUE(change({0, 0, "c"}).applied);
  EtcdOptions options;
  options.urls = cluster_->urls();
  options.user = "muster";
  options.password = "secret";
  auto early = wait(opened(options)->read());
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().message, "etcd at " + cluster_->url(0) +
                                       " refused: etcdserver: authentication is not enabled; log "
                                       "in without a user and a password");
  post("/v3/auth/user/add", {{"name", "root"}, {"password", "r"}});
  post("/v3/auth/user/grant", {{"user", "root"}, {"role", "root"}});
  post("/v3/auth/user/add", {{"name", "muster"}, {"password", "secret"}});
  post("/v3/auth/role/add", {{"name", "site"}});
  post("/v3/auth/role/grant", {{"name", "site"},
                               {"perm",
                                {{"permType", "READWRITE"},
                                 {"key", tls::base64("/muster/")},
                                 {"range_end", tls::base64("/muster0")}}}});
  post("/v3/auth/user/grant", {{"user", "muster"}, {"role", "site"}});
  post("/v3/auth/enable", Json::object());

  kj::Own<Store> ours = opened(options);
  auto seen = wait(ours->read());
  ASSERT_TRUE(seen.ok()) << seen.error().message;
  EXPECT_EQ(seen->configuration->value, "c");
  auto lease = wait(ours->grant(60'000));
  ASSERT_TRUE(lease.ok()) << lease.error().message;
  EXPECT_TRUE(wait(ours->change(taking(*seen, "d", "a", *lease))).value().applied);
  EXPECT_TRUE(wait(ours->renew(*lease)).value());

  auto nobody = wait(store_->read());
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error().code, Errc::invalid);
  EXPECT_EQ(nobody.error().message,
            "etcd at " + cluster_->url(0) + " refused: etcdserver: user name is empty");
  options.password = "guess";
  auto guessed = wait(opened(options)->read());
  ASSERT_FALSE(guessed.ok());
  EXPECT_EQ(guessed.error().code, Errc::invalid);
  options.password = "secret";
  options.prefix = "/other/";
  auto other = wait(opened(options)->read());
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, Errc::invalid);
  EXPECT_EQ(other.error().message,
            "etcd at " + cluster_->url(0) + " refused: etcdserver: permission denied");

  // Tokens do not outlive the server that made them.
  cluster_->kill(0);
  cluster_->start(0);
  const Millis end = boot_now() + kPatience;
  do {
    seen = wait(ours->read());
    ASSERT_LT(boot_now(), end) << seen.error().message;
  } while (!seen);
  EXPECT_EQ(seen->configuration->value, "d");
}

// A certificate for these names, which is its own authority, and its key: NAME.pem, NAME.key.
void certify(const std::string& name, const std::string& names) {
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=etcd "
      "-addext subjectAltName=" +
      names + " -keyout " + name + ".key -out " + name + ".pem 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT: of our own making
}

TEST_F(EtcdTest, Certificates) {
  std::string dir = testing::TempDir() + "muster-certificates-XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  certify(dir + "/a", "IP:127.0.0.1");
  certify(dir + "/b", "DNS:localhost");
  const std::vector<std::string> flags{"--cert-file=" + dir + "/a.pem",
                                       "--key-file=" + dir + "/a.key",
                                       "--trusted-ca-file=" + dir + "/a.pem", "--client-cert-auth"};
  EtcdOptions options;
  options.ca_certificate = dir + "/both.pem";  // more than one authority
  std::ofstream(options.ca_certificate)
      << std::ifstream(dir + "/b.pem").rdbuf() << std::ifstream(dir + "/a.pem").rdbuf();
  options.certificate = dir + "/a.pem";
  options.key = dir + "/a.key";
  cluster_.emplace(1, flags, "https");
  cluster_->start_all();
  if (HasFatalFailure()) return;
  options.urls = cluster_->urls();
  store_ = opened(options);
  const Millis end = boot_now() + kPatience;
  for (auto seen = wait(store_->read()); !seen; seen = wait(store_->read())) {
    if (cluster_->has_failed()) {
      cluster_->start_again_elsewhere();
      options.urls = cluster_->urls();
      store_ = opened(options);
    }
    ASSERT_LT(boot_now(), end) << seen.error().message << "\n" << cluster_->log(0);
  }
  const uint64_t lease = grant(60'000);
  EXPECT_TRUE(change(taking({}, "c", "a", lease)).applied);
  await_renewal(lease);

  const std::string url = cluster_->url(0);
  const std::string port = url.substr(url.rfind(':'));
  const auto met = [&](EtcdOptions changed) {
    auto seen = wait(opened(std::move(changed))->read());
    return seen ? "" : seen.error().message;
  };
  const std::string none = "etcd gives no answer: ";
  EtcdOptions other = options;
  other.urls = {"https://localhost" + port};
  EXPECT_EQ(met(other),
            none + other.urls[0] + ": its certificate is not trusted: hostname mismatch");
  other = options;
  other.ca_certificate = dir + "/b.pem";
  EXPECT_EQ(met(other), none + url + ": its certificate is not trusted: self-signed certificate");
  other.ca_certificate = "";
  EXPECT_EQ(met(other), none + url + ": its certificate is not trusted: self-signed certificate");
  other = options;
  const std::string rejected =
      none + url +
      ": it rejects our certificate, or requires one: --store-cert and --store-key need one of an "
      "authority that etcd trusts";
  other.certificate = other.key = "";
  EXPECT_EQ(met(other), rejected);
  other = options;
  other.certificate = dir + "/b.pem";
  other.key = dir + "/b.key";
  EXPECT_EQ(met(other), rejected);
  other = options;
  other.urls = {"http://127.0.0.1" + port};
  EXPECT_EQ(met(other), none + other.urls[0] +
                            ": the connection broke; if it uses TLS, its URL begins with https://");

  // Files.
  const auto unopened = [&](const EtcdOptions& changed) {
    auto made = etcd_store(io_.provider->getNetwork(), io_.provider->getTimer(), changed);
    return made ? "" : made.error().message;
  };
  other = options;
  other.ca_certificate = dir + "/none.pem";
  EXPECT_EQ(unopened(other), dir + "/none.pem: cannot be read");
  other.ca_certificate = dir + "/a.key";
  EXPECT_EQ(unopened(other), dir + "/a.key: there is no certificate in PEM format in it");
  other = options;
  other.key = dir + "/b.key";
  EXPECT_EQ(unopened(other), dir + "/b.key: this is not the key of the certificate in " + dir +
                                 "/a.pem, or one of them is not in PEM format");
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace muster::standby
