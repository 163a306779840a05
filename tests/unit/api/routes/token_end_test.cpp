// Long-running requests from other machines end when their token does.
#include "core/pod_name.hpp"
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api::testing {
namespace {

constexpr uid_t kTokenUser = 2001;

class TokenEndTest : public ServerTest {
 protected:
  TokenEndTest()
      : ServerTest([](ServerOptions& o) {
          o.roles = {{"hpc"}, {}, {}, {}};
          o.read_account = [](uid_t uid) { return Account{{uid, uid, "alice"}, {"hpc"}}; };
        }) {
    serve_remote();
    backend.valid_token = "good";
    backend.token_uid = kTokenUser;
    server.streams().token_gap = 5 * kj::MILLISECONDS;
    server.streams().watch_idle = 60 * kj::SECONDS;
  }
  kj::Own<Client> get_remote(const std::string& path) {
    return connect_remote(request("GET", path, "Authorization: Bearer good\r\n"));
  }
  // Runs a pod of one of alice's jobs.
  void run_pod() {
    uid = kTokenUser;
    EXPECT_EQ(post(kJobs, kManifest).code, 201);
    feed.create(100, 0, 1);
    feed.bind(100, {0, 0}, 7);
    feed.start(100, {0, 0});
    pod_ = core::pod_name("new", view.job("default", "new")->job->object().meta.uid, true, {0, 0});
  }

  std::string pod_;
};

TEST_F(TokenEndTest, AWatchEndsAndItsClientIsRefusedWhenItComesBack) {
  auto client = get_remote("/apis/batch/v1/jobs?watch=1&timeoutSeconds=600");
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return client->raw.find("200 OK") != std::string::npos; }));
  const int asked = backend.tokens_asked;
  ASSERT_TRUE(until([&] { return backend.tokens_asked > asked + 3; }));
  EXPECT_FALSE(client->ended || whole(client->raw)) << "its token is valid: " << client->raw;
  backend.valid_token = "another";
  ASSERT_TRUE(until([&] { return whole(client->raw); }));
  auto again = get_remote("/apis/batch/v1/jobs?watch=1&timeoutSeconds=600");
  auto refused = again->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return whole(again->raw); }));
  EXPECT_EQ(parsed(again->raw).code, 401);
}

TEST_F(TokenEndTest, AFollowedLogIsCut) {
  run_pod();
  backend.running = true;
  auto client = get_remote(kPods + "/" + pod_ + "/log?follow=true&stream=Stdout");
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return client->raw.find("three") != std::string::npos; })) << client->raw;
  backend.valid_token.clear();
  ASSERT_TRUE(until([&] { return client->ended; }));
  EXPECT_FALSE(whole(client->raw)) << "what is cut must not pass for complete";
  const int reads = backend.reads;
  io.provider->getTimer().afterDelay(20 * kj::MILLISECONDS).wait(io.waitScope);
  EXPECT_EQ(backend.reads, reads) << "nobody reads it any more";
}

TEST_F(TokenEndTest, ARequestThatWaitsForItsAnswerIsCut) {
  run_pod();
  backend.hold_exec = true;
  const std::string session(32, 'a');
  auto client = get_remote("/apis/muster.dev/v1/namespaces/default/pods/" + pod_ +
                           "/exec?session=" + session);
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return backend.exec_held.size() == 1; })) << client->raw;
  backend.valid_token.clear();
  ASSERT_TRUE(until([&] { return client->ended; }));
  EXPECT_EQ(client->raw, "");
  backend.exec_held.front()(ExecOutput{});  // too late: no effect
  EXPECT_EQ(get("/healthz").code, 200);
}

}  // namespace
}  // namespace muster::api::testing
