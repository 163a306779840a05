// The store at endpoints that fail, lie, or know better.
#include "fake_endpoint.hpp"
#include "standby/store/etcd.hpp"
#include "standby/store/etcd_messages.hpp"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <memory>
#include <utility>

namespace muster::standby {
namespace {

constexpr Millis kShort = 200;    // the time limit where an endpoint is silent
constexpr Millis kLong = 60'000;  // and where none is: no test waits for it

const EtcdKeys kKeys("/muster/");

Json header(uint64_t term = 2, uint64_t cluster = 7) {
  return {{"cluster_id", std::to_string(cluster)},
          {"member_id", "8"},
          {"revision", "5"},
          {"raft_term", std::to_string(term)}};
}

Json range(const std::string& key, const std::optional<StoreRow>& row) {
  Json range{{"header", {{"revision", "5"}}}};
  if (row)
    range["kvs"] = Json::array({{{"key", tls::base64(key)},
                                 {"value", tls::base64(row->value)},
                                 {"mod_revision", std::to_string(row->revision)},
                                 {"create_revision", std::to_string(row->created)},
                                 {"version", "1"},
                                 {"lease", std::to_string(row->lease)}}});
  return {{"response_range", range}};
}

// The answer to a transaction.
Json txn(bool succeeded, const StoreSeen& seen, uint64_t term = 2, uint64_t cluster = 7) {
  Json answer{{"header", header(term, cluster)},
              {"responses", Json::array({range(kKeys.configuration, seen.configuration),
                                         range(kKeys.leader, seen.leader)})}};
  if (succeeded) answer["succeeded"] = true;
  return answer;
}

Reply refusal(const char* status, int code, const std::string& text) {
  return http(dumped(Json{{"error", text}, {"message", text}, {"code", code}}), status);
}

Reply renewed(uint64_t lease, uint64_t seconds, uint64_t term = 2) {
  Json result{{"header", header(term)}, {"ID", std::to_string(lease)}};
  if (seconds != 0) result["TTL"] = std::to_string(seconds);
  const std::string line = dumped(Json{{"result", result}}) + "\n";
  char size[20];
  snprintf(size, sizeof size, "%zx", line.size());
  // The stream does not end.
  return {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(size) + "\r\n" +
              line + "\r\n",
          true};
}

const StoreSeen kSeen{StoreRow{"one", 4, 1, 0}, StoreRow{"a", 3, 3, 77}};

class EtcdFaultsTest : public testing::Test {
 protected:
  ~EtcdFaultsTest() noexcept override = default;

  FakeEndpoint& fake(FakeEndpoint::Handler handler) {
    fakes_.push_back(std::make_unique<FakeEndpoint>(io_, std::move(handler)));
    urls_.push_back(fakes_.back()->url());
    return *fakes_.back();
  }
  void refusing() {
    refusing_.push_back(std::make_unique<RefusingPort>());
    urls_.push_back(refusing_.back()->url());
  }
  FakeEndpoint& good(const StoreSeen& seen = kSeen) {
    return fake([seen](const FakeEndpoint::Request&) { return http(dumped(txn(true, seen))); });
  }
  void open(Millis timeout_ms, std::string user = "", std::string password = "") {
    EtcdOptions options;
    options.urls = urls_;
    options.timeout_ms = timeout_ms;
    options.user = std::move(user);
    options.password = std::move(password);
    auto made =
        etcd_store(io_.provider->getNetwork(), io_.provider->getTimer(), std::move(options));
    ASSERT_TRUE(made.ok()) << made.error().message;
    store_ = kj::mv(*made);
  }
  template <class T>
  T wait(kj::Promise<T> promise) {
    return promise.wait(io_.waitScope);
  }
  std::string error_of_read() {
    auto seen = wait(store_->read());
    if (seen) return "";
    return (seen.error().code == Errc::unavailable ? "" : "not unavailable: ") +
           seen.error().message;
  }

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  std::vector<std::unique_ptr<FakeEndpoint>> fakes_;
  std::vector<std::unique_ptr<RefusingPort>> refusing_;
  std::vector<std::string> urls_;
  kj::Own<Store> store_;
};

TEST_F(EtcdFaultsTest, LogInThatIsNotAnsweredLeavesNoDoubt) {
  fake([](const FakeEndpoint::Request&) { return Reply{"", false, true}; });
  FakeEndpoint& two = fake([](const FakeEndpoint::Request& request) {
    if (request.path == kLogInPath) return http(dumped(Json{{"header", header()}, {"token", "t"}}));
    return http(dumped(txn(false, kSeen)));
  });
  open(kLong, "muster", "secret");
  auto changed = wait(store_->change({9, 9, "x"}));
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  EXPECT_FALSE(changed->applied);
  // An answer without a token is no log-in.
  two.answer_with([](const FakeEndpoint::Request&) {
    return http(dumped(Json{{"header", header()}}));
  });
  open(kLong, "muster", "secret");
  const Status revoked = wait(store_->revoke(77));
  ASSERT_FALSE(revoked.ok());
  EXPECT_EQ(revoked.error().code, Errc::unavailable);
}

struct Bad {
  const char* name;
  std::function<Reply()> reply;
  const char* why;  // part of the error
  Millis timeout_ms = kLong;
};

std::string big() {
  return std::string((1 << 20) + 1, ' ');
}

Reply with(Json answer, std::initializer_list<const char*> path, const Json& value) {
  Json* at = &answer;
  for (const char* name : path) {
    const bool index = at->is_array();
    at = index ? &(*at)[static_cast<size_t>(std::atoi(name))] : &(*at)[name];
  }
  *at = value;
  return http(dumped(answer));
}

const Bad kBad[] = {
    {"closes",
     [] {
       return Reply{"", false, true};
     },
     "the connection broke"},
    {"no HTTP",
     [] {
       return Reply{"hello\r\n\r\n", false, true};
     },
     ""},
    {"HTTP of nothing", [] { return http(""); }, "what etcd does not send: \"\""},
    {"HTML", [] { return http("<html>\x1b[1m", "200 OK", "text/html"); },
     "it answered HTTP 200 with what etcd does not send: \"<html>\\x1b[1m\""},
    {"503", [] { return http("try later", "503 Service Unavailable", "text/plain"); },
     "it answered HTTP 503"},
    {"404", [] { return http("Not Found", "404 Not Found", "text/plain"); }, "HTTP 404"},
    {"JSON of others", [] { return http("{\"kind\": \"Status\"}"); }, "what etcd does not send"},
    {"half of JSON", [] { return http("{\"header\":"); }, "what etcd does not send"},
    {"a list", [] { return http("[]"); }, "what etcd does not send"},
    {"cut off",
     [] {
       return Reply{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"head", false, true};
     },
     "connection"},
    {"too large", [] { return http(big()); }, "its answer is larger than 1 MiB"},
    {"endless",
     [] {
       return Reply{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n" + big(),
                    true};
     },
     "its answer is larger than 1 MiB"},
    {"silent",
     [] {
       return Reply{"", true};
     },
     "no answer within 200 ms", kShort},
    {"silent after the header",
     [] {
       return Reply{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", true};
     },
     "no answer within 200 ms", kShort},
    {"silent within the header",
     [] {
       return Reply{"HTTP/1.1 200 OK\r\nContent-Le", true};
     },
     "no answer within 200 ms", kShort},
    {"no leader", [] { return refusal("503 Service Unavailable", 14, "etcdserver: no leader"); },
     "etcdserver: no leader"},
    {"timed out",
     [] { return refusal("503 Service Unavailable", 14, "etcdserver: request timed out"); },
     "etcdserver: request timed out"},
    {"no header", [] { return with(txn(true, kSeen), {"header"}, Json::object()); },
     "what etcd does not send"},
    {"other keys",
     [] {
       return with(txn(true, kSeen), {"responses", "1", "response_range", "kvs", "0", "key"},
                   tls::base64("/muster/other"));
     },
     "does not fit the request"},
    {"a number that is none",
     [] {
       return with(txn(true, kSeen),
                   {"responses", "0", "response_range", "kvs", "0", "mod_revision"}, "4x");
     },
     "does not fit the request"},
    {"a number as a number",
     [] {
       return with(txn(true, kSeen),
                   {"responses", "0", "response_range", "kvs", "0", "mod_revision"}, 4);
     },
     "does not fit the request"},
    {"not base64",
     [] {
       return with(txn(true, kSeen), {"responses", "0", "response_range", "kvs", "0", "value"},
                   "b25l!");
     },
     "does not fit the request"},
    {"no responses", [] { return with(txn(true, kSeen), {"responses"}, Json::array()); },
     "does not fit the request"},
    {"a guard of a read fails", [] { return http(dumped(txn(false, kSeen))); },
     "does not fit the request"},
};

TEST_F(EtcdFaultsTest, BadEndpointAloneMakesTheStoreUnavailable) {
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(bad.name);
    urls_.clear();
    FakeEndpoint& one = fake([&](const FakeEndpoint::Request&) { return bad.reply(); });
    open(bad.timeout_ms);
    const std::string error = error_of_read();
    EXPECT_NE(error.find(bad.why), error.npos) << error;
    EXPECT_TRUE(error.starts_with("etcd gives no answer: " + one.url() + ": ")) << error;
  }
}

TEST_F(EtcdFaultsTest, BadEndpointIsLeftForAGoodOne) {
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(bad.name);
    urls_.clear();
    FakeEndpoint& one = fake([&](const FakeEndpoint::Request&) { return bad.reply(); });
    FakeEndpoint& two = good();
    open(bad.timeout_ms);
    for (int i = 0; i < 3; ++i) {
      auto seen = wait(store_->read());
      ASSERT_TRUE(seen.ok()) << seen.error().message;
      EXPECT_EQ(*seen, kSeen);
    }
    EXPECT_EQ(one.requests().size(), 1u);
    EXPECT_EQ(two.requests().size(), 3u);
    EXPECT_EQ(two.connections(), 1u);
  }
}

TEST_F(EtcdFaultsTest, CallEndsAfterTwiceTheTimeLimitAndTheNextOneGoesOn) {
  for (int i = 0; i < 4; ++i) fake([](const FakeEndpoint::Request&) { return Reply{"", true}; });
  good();
  open(kShort);
  EXPECT_NE(error_of_read(), "");
  EXPECT_EQ(fakes_[1]->requests().size(), 1u);
  EXPECT_EQ(fakes_[2]->requests().size(), 0u);
  EXPECT_NE(error_of_read(), "");
  EXPECT_EQ(fakes_[0]->requests().size(), 1u);
  EXPECT_EQ(fakes_[3]->requests().size(), 1u);
  EXPECT_EQ(error_of_read(), "");
}

TEST_F(EtcdFaultsTest, RefusedConnectionsCostNoTime) {
  for (int i = 0; i < 20; ++i) refusing();
  good();
  open(kLong);
  EXPECT_EQ(error_of_read(), "");
  urls_.pop_back();
  open(kLong);
  const std::string error = error_of_read();
  EXPECT_TRUE(error.starts_with("etcd gives no answer: " + urls_[0] + ": connection refused; " +
                                urls_[1] + ": connection refused; "))
      << error;
}

TEST_F(EtcdFaultsTest, UnknownHost) {
  urls_ = {"http://no-such-host.invalid:2379"};  // RFC 6761: never exists
  open(kLong);
  const std::string error = error_of_read();
  EXPECT_TRUE(error.starts_with("etcd gives no answer: " + urls_[0] + ": its host is not known: "))
      << error;
}

TEST_F(EtcdFaultsTest, ConnectionIsUsedUntilTheServerEndsIt) {
  FakeEndpoint& one = good();
  open(kLong);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(error_of_read(), "");
  EXPECT_EQ(one.connections(), 1u);
  one.hang_up();
  EXPECT_EQ(error_of_read(), "");
  EXPECT_EQ(one.connections(), 2u);
  // Two calls at once.
  auto first = store_->read(), second = store_->read();
  EXPECT_TRUE(wait(kj::mv(first)).ok());
  EXPECT_TRUE(wait(kj::mv(second)).ok());
  EXPECT_EQ(one.connections(), 3u);
  EXPECT_EQ(error_of_read(), "");
  EXPECT_EQ(one.connections(), 3u);
}

TEST_F(EtcdFaultsTest, ErrorsWithTrailersEndTheConnection) {
  bool fails = true;
  FakeEndpoint& one = fake([&fails](const FakeEndpoint::Request&) {
    if (!std::exchange(fails, false)) return http(dumped(txn(true, kSeen)));
    return Reply{
        "HTTP/1.1 503 Service Unavailable\r\nTrailer: T\r\nTransfer-Encoding: chunked\r\n\r\n"
        "21\r\n{\"message\":\"no leader\",\"code\":14}\r\n0\r\nT: x\r\n\r\n"};
  });
  open(kLong);
  const std::string error = error_of_read();
  EXPECT_TRUE(error.ends_with(": no leader")) << error;
  EXPECT_EQ(error_of_read(), "");
  EXPECT_EQ(one.connections(), 2u);
}

TEST_F(EtcdFaultsTest, AnotherClusterIsNotBelieved) {
  good();
  FakeEndpoint& two =
      fake([](const FakeEndpoint::Request&) { return http(dumped(txn(true, {}, 2, 9))); });
  open(kLong);
  EXPECT_EQ(error_of_read(), "");
  fakes_[0].reset();
  const std::string error = error_of_read();
  EXPECT_NE(error.find(two.url() + ": it belongs to another etcd cluster than " + urls_[0]),
            error.npos)
      << error;
}

// What is known about a change after an endpoint got it and did not answer.
TEST_F(EtcdFaultsTest, LostAnswerToAChange) {
  const StoreChange both{4, 0, "two", StoreChange::Key{"b", 78}};
  const StoreChange only{4, 3, "two"};
  const StoreChange again{4, 0, "one", StoreChange::Key{"b", 78}};
  StoreChange leaves{4, 3};
  leaves.resigns = true;
  const StoreRow old{"one", 4, 1, 0}, newer{"two", 6, 1, 0}, newest{"three", 7, 1, 0};
  const StoreRow mine{"b", 6, 6, 78}, others{"a", 3, 3, 77}, later{"b", 9, 9, 79};
  struct Case {
    const char* name;
    StoreChange change;
    Reply second;        // of the second endpoint
    const char* expect;  // if the first one got it
    const char* unsent;  // if not
  };
  const Case cases[] = {
      {"made by the second", both, http(dumped(txn(true, {newer, mine}))), "applied", "applied"},
      {"made by the first", both, http(dumped(txn(false, {newer, mine}))), "applied",
       "not applied"},
      {"made and superseded, or never", both, http(dumped(txn(false, {newest, mine}))), "unknown",
       "not applied"},
      {"the key under another lease", both, http(dumped(txn(false, {newer, later}))), "unknown",
       "not applied"},
      {"the same from before", again, http(dumped(txn(false, {old, StoreRow{"b", 3, 3, 78}}))),
       "unknown", "not applied"},
      {"another leader", both, http(dumped(txn(false, {old, others}))), "unknown", "not applied"},
      {"configuration by the first", only, http(dumped(txn(false, {newer, others}))), "applied",
       "not applied"},
      {"another configuration", only, http(dumped(txn(false, {newest, others}))), "unknown",
       "not applied"},
      {"under another leader", only, http(dumped(txn(false, {newer, later}))), "unknown",
       "not applied"},
      {"resigned at the first", leaves, http(dumped(txn(false, {old, std::nullopt}))), "applied",
       "not applied"},
      {"resigned, or removed", leaves, http(dumped(txn(false, {newer, std::nullopt}))), "unknown",
       "not applied"},
      {"the lease is gone", both, refusal("404 Not Found", 5, "requested lease not found"),
       "unknown", "no lease"},
      {"refused", both, refusal("403 Forbidden", 7, "permission denied"), "unknown", "refused"},
  };
  for (const bool sent : {true, false}) {
    for (const Case& c : cases) {
      SCOPED_TRACE(std::string(c.name) + (sent ? ", sent" : ", not sent"));
      urls_.clear();
      if (sent)
        fake([](const FakeEndpoint::Request&) { return Reply{"", false, true}; });
      else
        refusing();
      FakeEndpoint& second = fake([&c](const FakeEndpoint::Request&) { return c.second; });
      open(kLong);
      auto changed = wait(store_->change(c.change));
      std::string met;
      if (changed)
        met = changed->applied ? "applied" : "not applied";
      else
        met = changed.error().code == Errc::unavailable ? "unknown"
              : changed.error().code == Errc::not_found ? "no lease"
                                                        : "refused";
      EXPECT_EQ(met, sent ? c.expect : c.unsent);
      EXPECT_EQ(second.requests().size(), 1u);
    }
  }
}

TEST_F(EtcdFaultsTest, RenewalCountsInTheTermOfTheReadThatFollows) {
  struct Case {
    const char* name;
    std::vector<uint64_t> terms;  // of renewals and reads by turns
    const char* expect;
  };
  for (const Case& c : {Case{"same term", {2, 2}, "true"},
                        Case{"a new leader of etcd, then the same", {2, 3, 3, 3}, "true"},
                        Case{"elections", {2, 3, 3, 4}, "etcd is electing a leader"},
                        Case{"an old member renews", {2, 3, 2, 3}, "etcd is electing a leader"}}) {
    SCOPED_TRACE(c.name);
    urls_.clear();
    size_t n = 0;
    FakeEndpoint& one = fake([&](const FakeEndpoint::Request& request) {
      const uint64_t term = c.terms.at(n++);
      return request.path == kRenewPath ? renewed(77, 3, term) : http(dumped(txn(true, {}, term)));
    });
    open(kLong);
    auto renewed = wait(store_->renew(77));
    EXPECT_EQ(renewed ? (*renewed ? "true" : "false") : renewed.error().message, c.expect);
    EXPECT_EQ(n, c.terms.size());
    EXPECT_EQ(one.requests()[0].body, "{\"ID\":\"77\"}");
  }
}

TEST_F(EtcdFaultsTest, RenewalOfALeaseThatIsGone) {
  struct Case {
    const char* name;
    Reply reply;
    const char* expect;
  };
  for (const Case& c :
       {Case{"no time left", renewed(77, 0), "false"},
        Case{"not found", refusal("404 Not Found", 5, "requested lease not found"), "false"},
        Case{"error in the stream",
             http("{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":\"no leader\"}}\n"),
             "unavailable"},
        Case{"not found in the stream",
             http("{\"error\":{\"grpc_code\":5,\"http_code\":404,\"message\":\"no lease\"}}\n"),
             "false"},
        Case{"another lease", renewed(78, 3), "unavailable"}}) {
    SCOPED_TRACE(c.name);
    urls_.clear();
    fake([&](const FakeEndpoint::Request&) { return c.reply; });
    open(kLong);
    auto renewed = wait(store_->renew(77));
    EXPECT_EQ(renewed                                     ? (*renewed ? "true" : "false")
              : renewed.error().code == Errc::unavailable ? "unavailable"
                                                          : "refused",
              c.expect);
  }
}

TEST_F(EtcdFaultsTest, GrantsLastAtLeastAsLongAsAsked) {
  uint64_t seconds = 3;
  FakeEndpoint& one = fake([&seconds](const FakeEndpoint::Request&) {
    return http(dumped(Json{{"header", header()}, {"ID", "77"}, {"TTL", std::to_string(seconds)}}));
  });
  open(kLong);
  auto lease = wait(store_->grant(2'001));
  ASSERT_TRUE(lease.ok()) << lease.error().message;
  EXPECT_EQ(*lease, 77u);
  EXPECT_EQ(one.requests()[0].body, "{\"TTL\":\"3\"}");
  seconds = 2;
  lease = wait(store_->grant(2'001));
  ASSERT_FALSE(lease.ok());
  EXPECT_EQ(lease.error().code, Errc::unavailable);
}

TEST_F(EtcdFaultsTest, LogsInAgainWhenItsTokenHasExpired) {
  int logins = 0;
  std::string valid;
  FakeEndpoint& one = fake([&](const FakeEndpoint::Request& request) {
    if (request.path == kLogInPath) {
      valid = "token" + std::to_string(++logins);
      return http(dumped(Json{{"header", header()}, {"token", valid}}));
    }
    if (request.token != valid)
      return refusal("401 Unauthorized", 16, "etcdserver: invalid auth token");
    return http(dumped(txn(true, kSeen)));
  });
  open(kLong, "muster", "secret");
  EXPECT_EQ(error_of_read(), "");
  EXPECT_EQ(error_of_read(), "");
  EXPECT_EQ(logins, 1);
  EXPECT_EQ(one.requests()[0].body, "{\"name\":\"muster\",\"password\":\"secret\"}");
  EXPECT_EQ(one.requests()[0].token, "");
  valid = "none";
  EXPECT_EQ(error_of_read(), "");
  EXPECT_EQ(logins, 2);
  // An endpoint that accepts no token is not asked forever.
  one.answer_with([&](const FakeEndpoint::Request& request) {
    if (request.path == kLogInPath) return http(dumped(Json{{"header", header()}, {"token", "t"}}));
    return refusal("401 Unauthorized", 16, "etcdserver: invalid auth token");
  });
  EXPECT_EQ(error_of_read(),
            "not unavailable: etcd at " + one.url() + " refused: etcdserver: invalid auth token");
}

}  // namespace
}  // namespace muster::standby
