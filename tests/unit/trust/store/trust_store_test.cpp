// TrustStore: who is admitted, with rows that become durable when the test says so.
#include "trust/store/trust_store.hpp"

#include "storage/codec/codec.hpp"
#include "storage/journal/keys.hpp"
#include "trust/tls/bundle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace muster::coordinator {
namespace {

using Kind = tls::Identity::Kind;

class TrustStoreTest : public testing::Test {
 protected:
  TrustStoreTest() {
    store_.write_with([this](std::vector<storage::Row> rows, std::function<void()> durable) {
      rows_.insert(rows_.end(), rows.begin(), rows.end());
      pending_.push_back(std::move(durable));
    });
    store_.on_revoked([this](const std::string& node) { dropped_.push_back(node); });
  }

  void sync() {
    while (!pending_.empty()) {
      auto durable = std::move(pending_.front());
      pending_.pop_front();
      durable();
    }
  }

  TrustStore::Made make(NewToken wanted) {
    std::optional<Result<TrustStore::Made>> made;
    store_.make(std::move(wanted),
                [&made](Result<TrustStore::Made> one) { made = std::move(one); });
    sync();
    return **made;
  }
  TrustStore::Made user_token(uint32_t uid = 1000, Millis life_ms = 60'000) {
    return make({core::TokenKind::user, "alice", uid, "root", life_ms});
  }
  TrustStore::Made node_token(const std::string& node = "c01") {
    return make({core::TokenKind::node, node, 0, "root", 60'000});
  }
  TrustStore::Made coordinator_token() {
    return make({core::TokenKind::coordinator, "head2:7119", 0, "root", 60'000});
  }
  static std::string bearer(const TrustStore::Made& made) {
    return made.text.substr(0, made.text.find('\n'));
  }
  std::optional<uint32_t> uid_of(const std::string& text) {
    const auto token = store_.token_of(text);
    return token ? std::optional(token->uid) : std::nullopt;
  }
  TrustStore::Made pool_token(uint32_t uses, const core::NodeClaims& claims = {}) {
    return make({core::TokenKind::pool, "hpc", 0, "root", 60'000, claims, uses});
  }
  // Joins as this node, with a new key. Returns why that was refused; empty: it was not.
  std::string joins(const TrustStore::Made& made, const std::string& node) {
    const auto answer = certify(holder(made), *tls::make_request(tls::make_key()), node);
    if (!answer.ok()) return answer.error().message;
    EXPECT_EQ(tls::Identity::parse(tls::read_certificate(*answer)->common_name)->node, node);
    return "";
  }
  // The identity of this join token's holder, as the coordinator's port sees it.
  static tls::Identity holder(const TrustStore::Made& made) {
    const auto bundle = tls::read_bundle(made.text);
    return *tls::Identity::parse(tls::read_certificate(bundle->own.certificate)->common_name);
  }
  Result<std::string> certify(const tls::Identity& who, const std::string& request,
                              const std::string& node = "") {
    std::optional<Result<std::string>> answer;
    store_.certify(who, node, request,
                   [&answer](Result<std::string> one) { answer = std::move(one); });
    sync();
    return *answer;
  }

  Millis now_ = 1'800'000'000'000;
  TrustStore store_{{}, tls::Authority::make("test", now_), kDayMs, [this] { return now_; }};
  std::vector<storage::Row> rows_;
  std::deque<std::function<void()>> pending_;
  std::vector<std::string> dropped_;
};

TEST_F(TrustStoreTest, UserTokenIsValidUntilItExpires) {
  const auto made = user_token();
  EXPECT_EQ(uid_of(bearer(made)), 1000u);
  std::string other = bearer(made);
  other.back() = other.back() == '0' ? '1' : '0';
  EXPECT_EQ(uid_of(other), std::nullopt);
  for (const char* text : {"", ".", "0123456789abcdef", "x.y"})
    EXPECT_EQ(uid_of(text), std::nullopt) << text;
  now_ += 59'999;
  EXPECT_EQ(uid_of(bearer(made)), 1000u);
  now_ += 1;
  EXPECT_EQ(uid_of(bearer(made)), std::nullopt);
  EXPECT_TRUE(store_.list().empty());
}

TEST_F(TrustStoreTest, StoredRowsDoNotSufficeToUseToken) {
  const auto made = user_token();
  const std::string secret = bearer(made).substr(core::kTokenIdDigits + 1);
  ASSERT_EQ(secret.size(), core::kTokenSecretDigits);
  for (const auto& row : rows_) EXPECT_EQ(row.value.value_or("").find(secret), std::string::npos);
  EXPECT_EQ(uid_of(made.token.id + "." + made.token.hash), std::nullopt);
}

TEST_F(TrustStoreTest, TokenIsIssuedOnlyOnceDurable) {
  std::optional<Result<TrustStore::Made>> made;
  store_.make({core::TokenKind::user, "alice", 1000, "root", 60'000},
              [&made](Result<TrustStore::Made> one) { made = std::move(one); });
  EXPECT_FALSE(made) << "its maker has not got it yet";
  EXPECT_TRUE(store_.list().empty());
  sync();
  EXPECT_EQ(uid_of(bearer(**made)), 1000u);
}

TEST_F(TrustStoreTest, ARevokedTokenIsRefusedAtOnce) {
  const auto made = user_token();
  bool done = false;
  store_.revoke(made.token.id, [&done](const Status& s) { done = s.ok(); });
  EXPECT_EQ(uid_of(bearer(made)), std::nullopt);
  EXPECT_FALSE(done) << "not before it is durable";
  std::optional<Status> again;
  store_.revoke(made.token.id, [&again](Status s) { again = std::move(s); });
  EXPECT_FALSE(again) << "that it is gone is not durable either";
  sync();
  EXPECT_TRUE(done);
  EXPECT_EQ(again->error().code, Errc::not_found);
}

TEST_F(TrustStoreTest, AJoinTokenIsGoodForOneKey) {
  const auto who = holder(node_token());
  EXPECT_EQ(who.node, "c01");
  EXPECT_EQ(store_.refuses(who), std::nullopt);
  const std::string request = *tls::make_request(tls::make_key());
  const auto first = certify(who, request);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(tls::read_certificate(*first)->common_name, "node:c01");
  EXPECT_TRUE(certify(who, request).ok()) << "the answer may have been lost";
  const auto other = certify(who, *tls::make_request(tls::make_key()));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message, "its join token has been used");
}

TEST_F(TrustStoreTest, TheUseOfAJoinTokenIsDurableBeforeItsCertificateIsOut) {
  const auto who = holder(node_token());
  bool answered = false;
  store_.certify(who, "", *tls::make_request(tls::make_key()),
                 [&answered](const Result<std::string>&) { answered = true; });
  EXPECT_FALSE(answered);
  sync();
  EXPECT_TRUE(answered);
}

TEST_F(TrustStoreTest, JoinTokenOfAnotherNodeIsRefused) {
  auto who = holder(node_token());
  who.node = "c02";
  EXPECT_NE(store_.refuses(who), std::nullopt);
  EXPECT_FALSE(certify(who, *tls::make_request(tls::make_key())).ok());
}

TEST_F(TrustStoreTest, P13ACoordinatorsTokenIsGoodUntilItExpiresOrIsRevoked) {
  const auto made = coordinator_token(), other = coordinator_token();
  EXPECT_EQ(made.token.kind, core::TokenKind::coordinator);
  const auto who = holder(made);
  EXPECT_EQ(who, (tls::Identity{Kind::coordinator, "", made.token.id, 0}));
  EXPECT_EQ(store_.refuses(who), std::nullopt);
  EXPECT_EQ(store_.refuses(who), std::nullopt) << "it may connect again";
  store_.revoke(made.token.id, [](const Status&) {});
  EXPECT_EQ(store_.refuses(who), "its join token is unknown, or was revoked");
  EXPECT_EQ(store_.refuses(holder(other)), std::nullopt);
  sync();
  now_ += 60'000;
  EXPECT_EQ(store_.refuses(holder(other)), "its join token has expired");
}

TEST_F(TrustStoreTest, P13OnlyACoordinatorsTokenMakesACoordinator) {
  const auto of_node = node_token(), of_user = user_token(), right = coordinator_token();
  const std::string unknown = "its join token is unknown, or was revoked";
  for (const std::string& id :
       {of_node.token.id, of_user.token.id, std::string("0123456789abcdef")})
    EXPECT_EQ(store_.refuses({Kind::coordinator, "", id, 0}), unknown) << id;
  EXPECT_EQ(store_.refuses({Kind::join, "head2", right.token.id, 0}), unknown)
      << "nor does it make a node";
  EXPECT_EQ(uid_of(right.token.id + "." + right.token.hash), std::nullopt) << "nor a user";
  EXPECT_EQ(store_.refuses({Kind::coordinator, "", "", 0}), std::nullopt)
      << "one that has the authority's key needs none";
}

TEST_F(TrustStoreTest, RevokingANodeRefusesItsCertificatesAndTokens) {
  const tls::Identity node{Kind::node, "c01", "", 0};
  const auto unused = holder(node_token());
  const auto other = holder(node_token("c02"));
  EXPECT_EQ(store_.refuses(node), std::nullopt);
  store_.revoke_node("c01", [](const Status&) {});
  EXPECT_EQ(dropped_, std::vector<std::string>{"c01"});
  EXPECT_NE(store_.refuses(node), std::nullopt);
  EXPECT_NE(store_.refuses(unused), std::nullopt);
  EXPECT_FALSE(certify(node, *tls::make_request(tls::make_key())).ok())
      << "a connection that is still open must not get a new one";
  EXPECT_EQ(store_.refuses(other), std::nullopt);
  EXPECT_EQ(store_.refuses({Kind::node, "c02", "", 0}), std::nullopt);
  sync();
  // A new token leads to a certificate of the next generation.
  const auto again = certify(holder(node_token()), *tls::make_request(tls::make_key()));
  ASSERT_TRUE(again.ok());
  const auto who = tls::Identity::parse(tls::read_certificate(*again)->common_name);
  EXPECT_EQ(who->generation, static_cast<uint64_t>(now_ / 1000));
  EXPECT_EQ(store_.refuses(*who), std::nullopt);
  EXPECT_NE(store_.refuses({Kind::node, "c01", "", who->generation + 1}), std::nullopt)
      << "nor one from the future";
  // Revoked twice in the same second.
  store_.revoke_node("c01", [](const Status&) {});
  EXPECT_NE(store_.refuses(*who), std::nullopt);
}

// Otherwise a restart would find the token again.
TEST_F(TrustStoreTest, RowsComeInTheOrderOfTheChanges) {
  const auto made = node_token();
  ASSERT_TRUE(certify(holder(made), *tls::make_request(tls::make_key())).ok());
  rows_.clear();
  const auto who = holder(node_token());
  store_.certify(who, "", *tls::make_request(tls::make_key()), [](const Result<std::string>&) {});
  store_.revoke_node("c01", [](const Status&) {});
  ASSERT_GE(rows_.size(), 3u);
  EXPECT_EQ(rows_.back().value, std::nullopt) << "the last word about a token is that it is gone";
  rows_.clear();
  sync();
}

TEST_F(TrustStoreTest, P06UsedJoinTokenSetsClaimsOfNode) {
  EXPECT_EQ(store_.claims_of("c01"), std::nullopt);
  const core::NodeClaims claims{.labels = {"gpu=*"}, .slots_max = 8, .resources_max = {{"a/b", 2}}};
  const auto made = make({core::TokenKind::node, "c01", 0, "root", 60'000, claims});
  EXPECT_EQ(store_.claims_of("c01"), std::nullopt);
  const std::string request = *tls::make_request(tls::make_key());
  ASSERT_TRUE(certify(holder(made), request).ok());
  EXPECT_EQ(store_.claims_of("c01"), claims);
  const auto row = std::find_if(rows_.begin(), rows_.end(), [](const storage::Row& one) {
    return one.key == std::string(storage::keys::kClaims) + "c01";
  });
  ASSERT_NE(row, rows_.end());
  EXPECT_EQ(*storage::decode_claims(*row->value), claims);
  // A later change stays when the same agent asks once more with the token.
  store_.allow("c01", {.slots_max = 1}, [](const Status& status) { EXPECT_TRUE(status.ok()); });
  EXPECT_TRUE(dropped_.empty()) << "not before it is durable";
  sync();
  EXPECT_EQ(dropped_, std::vector<std::string>{"c01"});
  ASSERT_TRUE(certify(holder(made), request).ok());
  EXPECT_EQ(store_.claims_of("c01"), core::NodeClaims{.slots_max = 1});
}

TEST_F(TrustStoreTest, P13APoolsTokenIsGoodForSoManyNodesOfThatPool) {
  const auto made = pool_token(2);
  const auto who = holder(made);
  EXPECT_EQ(who, (tls::Identity{Kind::pool, "hpc", made.token.id, 0}));
  EXPECT_EQ(store_.refuses(who), std::nullopt);
  const std::string request = *tls::make_request(tls::make_key());
  ASSERT_TRUE(certify(who, request, "hpc-1-0").ok());
  ASSERT_TRUE(certify(who, request, "hpc-1-0").ok()) << "it did not get the answer";
  for (const char* other : {"", "hpc", "hpc-", "hpc1", "c01", "gpu-1", "hpc-A", "hpc-\n", "hpc-:1"})
    EXPECT_NE(joins(made, other), "") << other;
  EXPECT_EQ(store_.find(made.token.id)->used_keys.size(), 1u);
  EXPECT_EQ(joins(made, "hpc-1-1"), "");
  EXPECT_EQ(joins(made, "hpc-1-2"), "its join token has already been used by 2 nodes, its limit");
  ASSERT_TRUE(certify(who, request, "hpc-1-0").ok()) << "still the same node";
  EXPECT_EQ(store_.refuses({Kind::join, "hpc", made.token.id, 0}),
            "its join token is unknown, or was revoked")
      << "it is no token of a node called hpc";
}

TEST_F(TrustStoreTest, P13APoolTakesOverNoNodeThatJoinedOtherwise) {
  ASSERT_EQ(joins(node_token("hpc-7"), "hpc-7"), "");
  EXPECT_EQ(joins(pool_token(9), "hpc-7"),
            "there is a node called hpc-7 that has not joined with a token of this pool");
  ASSERT_EQ(joins(pool_token(9), "hpc-8"), "");
  EXPECT_EQ(joins(pool_token(9), "hpc-8"), "") << "a node of the pool may join again";
  ASSERT_TRUE(store_.claims_of("hpc-8"));
  store_.allow("hpc-8", {.slots_max = 1}, [](const Status&) {});
  sync();
  EXPECT_EQ(store_.claims_of("hpc-8")->slots_max, 1u);
  EXPECT_EQ(joins(pool_token(9), "hpc-8"), "") << "also after its claims were changed";
}

TEST_F(TrustStoreTest, P06APoolsTokenSetsClaimsOfItsNodes) {
  const auto made = pool_token(2, {.labels = {"gpu=*"}, .slots_max = 8});
  ASSERT_EQ(joins(made, "hpc-1"), "");
  const core::NodeClaims claims{.labels = {"gpu=*"}, .slots_max = 8, .pool = "hpc"};
  EXPECT_EQ(store_.claims_of("hpc-1"), claims);
  const auto key = std::string(storage::keys::kTokens) + made.token.id;
  const auto row = std::find_if(rows_.rbegin(), rows_.rend(),
                                [&key](const storage::Row& one) { return one.key == key; });
  ASSERT_NE(row, rows_.rend());
  EXPECT_EQ(*storage::decode_token(*row->value), *store_.find(made.token.id));
  store_.revoke(made.token.id, [](const Status&) {});
  sync();
  EXPECT_EQ(joins(made, "hpc-2"), "its join token is unknown, or was revoked");
  EXPECT_EQ(store_.refuses({Kind::node, "hpc-1", "", 0}), std::nullopt) << "it has its own";
}

// A backup does not have revocations made after it; revoking once more must be enough.
TEST_F(TrustStoreTest, AfterARestoreOneRevocationRefusesAllCertificates) {
  TrustStore before({}, tls::Authority::make("test", now_), kDayMs, [this] { return now_; });
  before.write_with([](std::vector<storage::Row>, std::function<void()> durable) { durable(); });
  std::vector<uint64_t> issued = {0};
  for (int i = 0; i < 3; ++i) {
    now_ += 1'000;
    before.revoke_node("c01", [](const Status&) {});
    issued.push_back(static_cast<uint64_t>(now_ / 1000));
    EXPECT_EQ(before.refuses({Kind::node, "c01", "", issued.back()}), std::nullopt);
  }
  now_ += 1'000;
  store_.revoke_node("c01", [](const Status&) {});  // this store has none of those
  for (const uint64_t generation : issued)
    EXPECT_NE(store_.refuses({Kind::node, "c01", "", generation}), std::nullopt) << generation;
}

TEST_F(TrustStoreTest, ANodeRenewsItsOwnCertificate) {
  const auto renewed = certify({Kind::node, "c01", "", 0}, *tls::make_request(tls::make_key()));
  ASSERT_TRUE(renewed.ok());
  EXPECT_EQ(tls::read_certificate(*renewed)->common_name, "node:c01");
  EXPECT_EQ(tls::read_certificate(*renewed)->until_ms, now_ + kDayMs);
}

TEST_F(TrustStoreTest, TokensPerUserAreBounded) {
  for (size_t i = 0; i < core::kTokensOfOneMax; ++i) user_token();
  std::optional<Result<TrustStore::Made>> made;
  auto one_more = [&](uint32_t uid) {
    store_.make({core::TokenKind::user, "alice", uid, "root", 60'000},
                [&made](Result<TrustStore::Made> one) { made = std::move(one); });
    sync();
    return made->ok();
  };
  EXPECT_FALSE(one_more(1000));
  EXPECT_EQ(made->error().code, Errc::overloaded);
  EXPECT_TRUE(one_more(1001)) << "another user";
  rows_.clear();
  now_ += 60'000;
  EXPECT_TRUE(one_more(1000)) << "the others have expired";
  EXPECT_EQ(rows_.size(), 1 + core::kTokensOfOneMax + 1) << "and their rows go";
}

}  // namespace
}  // namespace muster::coordinator
