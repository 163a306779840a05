// Connections, pages, discovery and refusals of the HTTP server.
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api {
namespace {

using namespace testing;

TEST_F(ServerTest, ServesPageToBrowsers) {
  const Answer page = get("/", "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n");
  EXPECT_EQ(page.code, 200);
  EXPECT_EQ(page.body, kPage);
  EXPECT_TRUE(page.body.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.body.ends_with("</html>\n")) << "whole";
  for (const char* line : {"Content-Type: text/html; charset=utf-8", "Cache-Control: no-cache",
                           "Content-Security-Policy: default-src 'none';", "connect-src 'self'",
                           "frame-ancestors 'none'", "X-Content-Type-Options: nosniff"})
    EXPECT_NE(page.head.find(line), std::string::npos) << line;
  EXPECT_EQ(get("/").body, kPage) << "a client that names nothing";
  EXPECT_EQ(get("/index.html").body, kPage);
  const Answer api = get("/", "Accept: application/json, */*\r\n");
  EXPECT_NE(api.head.find("Content-Type: application/json"), std::string::npos)
      << "a client of the API";
  EXPECT_NE(api.head.find("\r\nDate: "), std::string::npos);
  EXPECT_TRUE(call(request("POST", "/", "Content-Type: application/json\r\n", "{}"))
                  .is_status("MethodNotAllowed"));
  EXPECT_TRUE(call("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
                  .is_status("Forbidden"));
  server.set_ready(false, "recovering");
  EXPECT_EQ(get("/").code, 200) << "the page itself tells what it waits for";
}

TEST_F(ServerTest, PageIsNotModifiedForMatchingEtag) {
  const Answer page = get("/");
  const size_t at = page.head.find("ETag: ");
  ASSERT_NE(at, std::string::npos);
  const std::string etag = page.head.substr(at + 6, page.head.find('\r', at) - at - 6);
  EXPECT_EQ(etag, "\"" + std::string(kPageHash) + "\"");
  auto client = connect(request("GET", "/", "If-None-Match: W/\"x\", " + etag + "\r\n"));
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return client->raw.find("\r\n\r\n") != std::string::npos; }));
  EXPECT_TRUE(client->raw.starts_with("HTTP/1.1 304 ")) << client->raw;
  EXPECT_TRUE(client->raw.ends_with("\r\n\r\n")) << "no body";
  EXPECT_EQ(get("/", "If-None-Match: \"other\"\r\n").code, 200);
}

TEST_F(ServerTest, RefusalsHaveStatusOfTheirReason) {
  EXPECT_TRUE(get(kJobs + "/none").is_status("NotFound"));
  EXPECT_TRUE(get("/nowhere").is_status("NotFound"));
  EXPECT_TRUE(get("/api/v1/namespaces/default/jobs").is_status("NotFound"));
  EXPECT_TRUE(call(request("PUT", kPods)).is_status("MethodNotAllowed"));
  EXPECT_EQ(call(request("POST", "/version", "Content-Type: application/json\r\n", "{}")).code,
            405);
  EXPECT_TRUE(post(kJobs, kManifest, "text/plain").is_status("UnsupportedMediaType"));
  EXPECT_EQ(call(request("POST", kJobs, "", kManifest)).code, 415) << "no type at all";
  EXPECT_TRUE(post(kJobs, "{").is_status("BadRequest"));
  EXPECT_TRUE(get(kPods + "?labelSelector=%3D").is_status("BadRequest"));
  EXPECT_TRUE(get(kPods + "?fieldSelector=spec.x%3D1").is_status("BadRequest"));
  EXPECT_TRUE(get(kPods + "/%zz").is_status("BadRequest"));
  std::string invalid = kManifest;
  invalid.replace(invalid.find("\"completions\":2"), 15, "\"completions\":-2");
  const Answer a = post(kJobs, invalid);
  EXPECT_EQ(a.code, 422);
  EXPECT_TRUE(a.is_status("Invalid")) << a.body;
  EXPECT_EQ(a.json()["details"]["causes"][0]["field"], "spec.completions");
  std::string unknown = kManifest;
  unknown.insert(unknown.find("\"completions\""), "\"colour\":\"red\",");
  EXPECT_EQ(post(kJobs + "?fieldValidation=Strict", unknown).code, 400);
  const Answer warned = post(kJobs, unknown);
  EXPECT_EQ(warned.code, 201);
  EXPECT_NE(warned.head.find("Warning: 299 - "), std::string::npos) << warned.head;
  EXPECT_TRUE(post(kJobs, kManifest).is_status("AlreadyExists"));
}

TEST_F(ServerTest, BackendErrorsBecomeHttpStatus) {
  backend.refuse = Error{Errc::unavailable, "the disk is full", {}};
  const Answer a = post(kJobs, kManifest);
  EXPECT_TRUE(a.is_status("ServiceUnavailable"));
  EXPECT_NE(a.head.find("Retry-After"), std::string::npos);
  backend.refuse = Error{Errc::overloaded, "too many jobs", {}};
  EXPECT_TRUE(post(kJobs, kManifest).is_status("TooManyRequests"));
  backend.refuse = Error{Errc::exists, "", {}};
  EXPECT_TRUE(post(kJobs, kManifest).is_status("AlreadyExists"));
}

TEST_F(ServerTest, BodyAboveMaximumIsRefused) {
  const std::string big(kBodyMax + 1, ' ');
  EXPECT_TRUE(post(kJobs, big).is_status("RequestEntityTooLarge"));
  std::string chunked =
      "POST " + kJobs +
      " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: "
      "chunked\r\nConnection: close\r\n\r\n";
  char size[16];
  snprintf(size, sizeof size, "%zx\r\n", big.size());
  chunked += size + big + "\r\n0\r\n\r\n";
  EXPECT_TRUE(call(chunked).is_status("RequestEntityTooLarge"));
}

// The first `sent` bytes of a body of a mebibyte.
std::string unfinished(size_t sent) {
  return "POST " + kJobs +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
         "Content-Length: 1048576\r\n\r\n" +
         std::string(sent, ' ');
}

class P10Bodies : public ServerTest {
 protected:
  P10Bodies() : ServerTest([](ServerOptions& o) { o.bodies_max = 600 << 10; }) {}
};

TEST_F(P10Bodies, UnfinishedBodiesShareOneBudget) {
  std::vector<kj::Own<Client>> held;
  for (int i = 0; i < 4; ++i) held.push_back(connect(unfinished(130'000)));
  const auto is_refused = [](const kj::Own<Client>& one) { return whole(one->raw); };
  std::vector<kj::Promise<void>> reading;
  for (auto& one : held) reading.push_back(one->read().eagerlyEvaluate([](kj::Exception&&) {}));
  ASSERT_TRUE(until([&] { return std::ranges::any_of(held, is_refused); }));
  const auto refused = std::ranges::find_if(held, is_refused);
  const Answer answer = parsed((*refused)->raw);
  EXPECT_EQ(answer.code, 429);
  EXPECT_TRUE(answer.is_status("TooManyRequests")) << answer.body;
  EXPECT_NE(answer.head.find("Retry-After: 1"), std::string::npos) << answer.head;
  EXPECT_NE(answer.body.find("at most 600 KiB are for one user and 600 KiB for all together"),
            std::string::npos)
      << answer.body;
  EXPECT_EQ(get(kJobs).code, 200) << "what has no body is served";
  // Nothing is lost once they are gone.
  reading.clear();
  held.clear();
  EXPECT_TRUE(
      until([&] { return post(kJobs, kManifest + std::string(400'000, ' ')).code == 201; }));
}

TEST_F(P10Bodies, AnnouncedLengthReservesNothing) {
  std::vector<kj::Own<Client>> held;
  for (int i = 0; i < 7; ++i) held.push_back(connect(unfinished(1)));
  const Answer made = post(kJobs, kManifest);
  EXPECT_EQ(made.code, 201) << made.body;
}

class P10SlowBodies : public ServerTest {
 protected:
  P10SlowBodies() : ServerTest([](ServerOptions& o) { o.body_time = 50 * kj::MILLISECONDS; }) {}
};

TEST_F(P10SlowBodies, SlowBodyTimesOutHoweverShortItsPauses) {
  const Answer late = call(unfinished(1));
  EXPECT_TRUE(late.is_status("Timeout")) << late.body;
}

class P10Watches : public ServerTest {
 protected:
  P10Watches() : ServerTest([](ServerOptions& o) { o.watches_max = 2; }) {}
};

TEST_F(P10Watches, AreLimited) {
  const std::string watch = request("GET", kJobs + "?watch=1");
  std::vector<kj::Own<Client>> held;
  std::vector<kj::Promise<void>> reading;
  for (int i = 0; i < 2; ++i) {
    held.push_back(connect(watch));
    reading.push_back(held.back()->read().eagerlyEvaluate([](kj::Exception&&) {}));
    ASSERT_TRUE(until([&] { return held.back()->raw.starts_with("HTTP/1.1 200"); }));
  }
  const Answer refused = get(kJobs + "?watch=1");
  EXPECT_TRUE(refused.is_status("TooManyRequests")) << refused.body;
  EXPECT_EQ(refused.code, 429);
  EXPECT_NE(refused.body.find("at most 2 are for one user"), std::string::npos) << refused.body;
  EXPECT_EQ(get(kJobs).code, 200) << "lists are not watches";
}

TEST_F(ServerTest, P10UsersGetTurnsRoundRobin) {
  StreamContext& streams = server.streams();
  std::string turns;
  std::vector<kj::Promise<void>> waiting;
  for (const char* who : {"a", "a", "a", "b", "c"})
    waiting.push_back(
        streams.turn(who).then([&turns, who] { turns += who; }).eagerlyEvaluate(nullptr));
  EXPECT_TRUE(until([&] { return turns.size() == 5; }));
  EXPECT_EQ(turns, "abcaa");
}

TEST_F(ServerTest, P10AManifestOfThreeMebibytesIsAccepted) {
  const Answer made = post(kJobs, kManifest + std::string(kBodyMax - 1024, ' '));
  EXPECT_EQ(made.code, 201) << made.body;
}

TEST_F(ServerTest, ForeignHostsAndOriginsAreForbidden) {
  auto with = [&](const std::string& headers) {
    return call("GET " + kJobs + " HTTP/1.1\r\n" + headers + "Connection: close\r\n\r\n").code;
  };
  EXPECT_EQ(with("Host: 127.0.0.1:7117\r\n"), 200);
  EXPECT_EQ(with("Host: localhost:7117\r\n"), 200);
  EXPECT_EQ(with("Host: [::1]:7117\r\n"), 200);
  EXPECT_EQ(with("Host: evil.example:7117\r\n"), 403);
  EXPECT_EQ(with("Host: localhost.evil.example\r\n"), 403);
  EXPECT_EQ(with("Host: 127.0.0.1:7117\r\nOrigin: http://127.0.0.1:7117\r\n"), 200);
  EXPECT_EQ(with("Host: 127.0.0.1:7117\r\nOrigin: http://127.0.0.1:8080\r\n"), 403);
  EXPECT_EQ(with("Host: 127.0.0.1:7117\r\nOrigin: null\r\n"), 403);
}

TEST_F(ServerTest, P09MalformedHostsAndCrossSiteRequestsAreForbidden) {
  auto code = [&](const std::string& path, const std::string& headers) {
    return call("GET " + path + " HTTP/1.1\r\n" + headers + "Connection: close\r\n\r\n").code;
  };
  const std::string host = "Host: 127.0.0.1:7117\r\n";
  for (const char* evil : {"localhost:evil", "localhost:", "localhost:0", "localhost:65536",
                           "localhost:-1", "localhost:7117:7117", "a@localhost",
                           "127.0.0.1.evil.example", "[::1", "[::1]evil", "[evil]:7117"})
    EXPECT_EQ(code(kJobs, std::string("Host: ") + evil + "\r\n"), 403) << evil;
  const std::string navigates = "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
  for (const char* site : {"cross-site", "same-site", "another"}) {
    const std::string from = host + "Sec-Fetch-Site: " + site + "\r\n";
    EXPECT_EQ(code(kJobs, from), 403) << site;
    EXPECT_EQ(code(kJobs, from + navigates + "Accept: text/html\r\n"), 403) << "the API, by a link";
    EXPECT_EQ(code("/", from), 403) << "the page, by a script";
    EXPECT_EQ(code("/", from + "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n"), 403);
    EXPECT_EQ(code("/", from + navigates + "Accept: text/html\r\n"), 200) << "the page, by a link";
  }
  for (const char* site : {"none", "same-origin"})
    EXPECT_EQ(code(kJobs, host + "Sec-Fetch-Site: " + site + "\r\n"), 200) << site;
}

TEST_F(ServerTest, P09AMalformedBodyIsABadRequestAndEndsTheConnection) {
  const std::string head =
      "POST " + kJobs + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  const std::string next = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n";
  for (const std::string& rest :
       {chunked + "-1\r\n{}\r\n0\r\n\r\n", chunked + "zz\r\n{}\r\n0\r\n\r\n",
        chunked + "\r\n{}\r\n0\r\n\r\n", chunked + "2\r\n{}--\r\n0\r\n\r\n",
        std::string("Content-Length: many\r\n\r\n{}"), std::string("Content-Length: -2\r\n\r\n{}"),
        std::string("Content-Length: +2\r\n\r\n{}"),
        "Content-Length: 2\r\n" + chunked + "2\r\n{}\r\n0\r\n\r\n",
        std::string("Transfer-Encoding: gzip\r\n\r\n{}")}) {
    auto client = connect(head + rest + next);
    auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
    ASSERT_TRUE(until([&] { return client->ended; })) << rest;
    const Answer answer = parsed(client->raw);
    EXPECT_TRUE(answer.is_status("BadRequest")) << rest << "\n" << client->raw;
    EXPECT_NE(answer.head.find("X-Content-Type-Options: nosniff"), std::string::npos) << rest;
    EXPECT_EQ(client->raw.find("200 OK"), std::string::npos)
        << "nothing after it is read: " << rest;
  }
  EXPECT_EQ(backend.creates, 0);
}

TEST_F(ServerTest, P13ConnectionEndsOnConnectionClose) {
  const std::string get = "GET " + kJobs + " HTTP/1.1\r\nHost: localhost\r\n";
  auto client =
      connect(get + "\r\n" + get + "Connection: keep-alive, Close\r\n\r\n" + get + "\r\n");
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return client->ended; }));
  size_t answers = 0;
  for (size_t at = 0; (at = client->raw.find("HTTP/1.1 200", at)) != std::string::npos; ++at)
    ++answers;
  EXPECT_EQ(answers, 2u) << client->raw;
  EXPECT_NE(client->raw.find("Connection: close"), std::string::npos);
}

TEST_F(ServerTest, P09EveryAnswerHasNosniffHeader) {
  auto marked = [&](const std::string& raw) {
    return call(raw).head.find("X-Content-Type-Options: nosniff") != std::string::npos;
  };
  for (const char* path : {"/", "/healthz", "/version", "/nowhere", "/openapi/v2", "/apis"})
    EXPECT_TRUE(marked(request("GET", path))) << path;
  EXPECT_TRUE(marked(request("GET", kJobs)));
  EXPECT_TRUE(marked(request("GET", kJobs + "?watch=true&timeoutSeconds=1"))) << "a stream";
  EXPECT_TRUE(marked(request("POST", kJobs, "", kManifest))) << "a refusal";
  EXPECT_TRUE(marked("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
  EXPECT_TRUE(marked("NONSENSE\r\n\r\n")) << "no HTTP";
}

TEST_F(ServerTest, P09ThePagesScriptIsNamedByItsHash) {
  const Answer page = get("/");
  EXPECT_NE(page.head.find("script-src '" + std::string(kPageScriptHash) + "';"),
            std::string::npos);
  EXPECT_EQ(page.head.find("script-src 'unsafe-inline'"), std::string::npos);
  EXPECT_EQ(kPageScriptHash.size(), std::string("sha256-").size() + 44);
}

TEST_F(ServerTest, AnswersServiceUnavailableUntilReady) {
  server.set_ready(false, "folding 12 jobs");
  const Answer a = get(kJobs);
  EXPECT_TRUE(a.is_status("ServiceUnavailable"));
  EXPECT_EQ(a.json()["message"], "folding 12 jobs");
  EXPECT_NE(a.head.find("Retry-After"), std::string::npos);
  EXPECT_EQ(get("/readyz").code, 503);
  EXPECT_EQ(get("/healthz").code, 200);
  EXPECT_EQ(get("/version").code, 200);
  server.set_ready(true, "");
  EXPECT_EQ(get("/readyz").code, 200);
}

TEST_F(ServerTest, ServesDiscoveryDocuments) {
  for (const char* path : {"/version", "/api", "/apis", "/apis/batch", "/api/v1", "/apis/batch/v1",
                           "/openapi/v3", "/openapi/v3/apis/batch/v1?hash=x"}) {
    const Answer a = get(path);
    EXPECT_EQ(a.code, 200) << path;
    EXPECT_TRUE(a.json().is_object()) << path << a.body;
  }
  EXPECT_TRUE(get("/api").json()["versions"].is_array());
  EXPECT_EQ(get("/api/v1").json()["resources"].size(), 12u);
  EXPECT_EQ(get("/apis/batch/v1").json()["resources"][0]["verbs"].size(), 8u);
}

TEST_F(ServerTest, DiscoveryDocumentIsNotModifiedForMatchingEtag) {
  const std::string path = "/openapi/v3/apis/batch/v1";
  const Answer first = get(path);
  const size_t at = first.head.find("ETag: ");
  ASSERT_NE(at, std::string::npos) << first.head;
  const std::string etag = first.head.substr(at + 6, first.head.find('\r', at) - at - 6);
  EXPECT_EQ(get(path, "If-None-Match: " + etag + "\r\n").code, 304);
  EXPECT_EQ(get(path, "If-None-Match: \"other\"\r\n").code, 200);
}

TEST_F(ServerTest, OpenApiV2IsServedOnlyAsProtobuf) {
  EXPECT_EQ(get("/openapi/v2", "Accept: application/json\r\n").code, 406);
  const char* protobuf = "Accept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf\r\n";
  EXPECT_EQ(get("/openapi/v2", protobuf).code, 200);
}

TEST_F(ServerTest, AccessReviewAllowsAllWithoutRoles) {
  const std::string reviews = "/apis/authorization.k8s.io/v1/";
  const Answer one =
      post(reviews + "selfsubjectaccessreviews",
           R"({"spec":{"resourceAttributes":{"verb":"delete","resource":"nodes","name":"n"}}})");
  EXPECT_EQ(one.code, 201);
  EXPECT_EQ(one.json()["status"]["allowed"], true);
  EXPECT_EQ(post(reviews + "selfsubjectaccessreviews", "{}").code, 400);
  EXPECT_EQ(post(reviews + "selfsubjectrulesreviews", "{}").json()["status"]["incomplete"], false);
  EXPECT_EQ(get(reviews + "selfsubjectaccessreviews").code, 405);
}

TEST_F(ServerTest, OnlyDeleteNeedsNoContentType) {
  feed.admit(1, make_job("a", uid_of(1), 1));
  const std::string options = R"({"propagationPolicy":"Foreground"})";
  EXPECT_EQ(call(request("POST", kJobs, "", kManifest)).code, 415);
  EXPECT_EQ(call(request("DELETE", kJobs + "/a", "", options)).code, 200);
  EXPECT_EQ(backend.last_propagation, Propagation::foreground);
}

TEST_F(ServerTest, UnsupportedRequestNamesAlternative) {
  const std::string pods = "/api/v1/namespaces/default/pods";
  for (const auto& [method, path] :
       {std::pair{"POST", pods}, {"POST", pods + "/x/attach"}, {"GET", pods + "/x/portforward"}}) {
    const Answer a = call(request(method, path));
    EXPECT_EQ(a.code, 405) << path;
    EXPECT_GT(a.json()["message"].get<std::string>().size(), 20u) << path;
  }
  EXPECT_NE(post(pods, "{}").body.find("kubectl create job"), std::string::npos);
  EXPECT_NE(call(request("POST", pods + "/x/attach")).body.find("kubectl logs -f"),
            std::string::npos);
}

TEST_F(ServerTest, MethodNotAllowedHasAllowHeader) {
  const Answer a = call(request("PUT", kPods));
  EXPECT_TRUE(a.is_status("MethodNotAllowed"));
  EXPECT_NE(a.head.find("Allow: DELETE, GET"), std::string::npos) << a.head;
}

TEST_F(ServerTest, KeepsConnectionsOpen) {
  const std::string one = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  auto client = connect(one + one + one);
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  auto answers = [&] {
    size_t n = 0;
    for (size_t at = 0; (at = client->raw.find("200 OK", at)) != std::string::npos; ++at) ++n;
    return n;
  };
  EXPECT_TRUE(until([&] { return answers() == 3; })) << client->raw;
}

TEST_F(ServerTest, ServesItsOwnUserOverLoopback) {
  auto address = io.provider->getNetwork().parseAddress("127.0.0.1", 0).wait(io.waitScope);
  auto port = address->listen();
  const unsigned number = port->getPort();
  auto serving = server.serve(kj::mv(port)).eagerlyEvaluate(nullptr);
  auto client = kj::heap<Client>();
  client->stream =
      io.provider->getNetwork()
          .parseAddress("127.0.0.1", number)
          .then([](kj::Own<kj::NetworkAddress> a) { return a->connect().attach(kj::mv(a)); })
          .wait(io.waitScope);
  const std::string text = request("GET", kJobs);
  client->stream->write(text.data(), text.size()).wait(io.waitScope);
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return whole(client->raw); }));
  EXPECT_EQ(parsed(client->raw).code, 200);
}

TEST_F(ServerTest, P06AnIdleConnectionMakesRoomForANewOne) {
  std::vector<kj::Own<Client>> idle;
  std::vector<kj::Promise<void>> reading;
  auto address = io.provider->getNetwork().parseAddress("127.0.0.1", 0).wait(io.waitScope);
  auto port = address->listen();
  const unsigned number = port->getPort();
  auto serving = server.serve(kj::mv(port)).eagerlyEvaluate(nullptr);
  auto open = [&](const std::string& text) {
    auto client = kj::heap<Client>();
    client->stream =
        io.provider->getNetwork()
            .parseAddress("127.0.0.1", number)
            .then([](kj::Own<kj::NetworkAddress> a) { return a->connect().attach(kj::mv(a)); })
            .wait(io.waitScope);
    if (!text.empty()) client->stream->write(text.data(), text.size()).wait(io.waitScope);
    reading.push_back(client->read().eagerlyEvaluate([](kj::Exception&&) {}));
    idle.push_back(kj::mv(client));
    return idle.back().get();
  };
  const std::string watch = request("GET", kJobs + "?watch=true&timeoutSeconds=60");
  Client* watcher = open(watch);
  ASSERT_TRUE(until([&] { return watcher->raw.find("200 OK") != std::string::npos; }));
  Client* first = open("");
  for (int i = 0; i < 10; ++i) open("");
  Client* last = open(request("GET", "/healthz"));
  EXPECT_TRUE(until([&] { return whole(last->raw); })) << "it got the place of a silent one";
  EXPECT_TRUE(until([&] { return first->ended; })) << "that one has waited longest";
  EXPECT_FALSE(watcher->ended) << "one in use stays";
  for (int i = 0; i < 5; ++i) {
    Client* more = open(watch);
    ASSERT_TRUE(until([&] { return more->raw.find("200 OK") != std::string::npos; })) << i;
  }
  Client* beyond = open(watch);
  EXPECT_TRUE(until([&] { return beyond->raw.find("503 Service") != std::string::npos; }))
      << "all that one user may have are in use";
  EXPECT_FALSE(watcher->ended);
  reading.clear();
  idle.clear();
}

}  // namespace
}  // namespace muster::api
