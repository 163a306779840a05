// The HTTP face, over a pipe or loopback, with a Backend that commits to the View at once.
#include "api/server.hpp"

#include "api/list_page.hpp"
#include "api/page.hpp"
#include "api/routes.hpp"
#include "view_fixture.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <tuple>
#include <unistd.h>

namespace muster::api {
namespace {

using namespace testing;

class FakeBackend final : public Backend {
 public:
  FakeBackend(View& view, Feeder& feed) : view_(view), feed_(feed) {}
  void create_job(core::JobObjectPtr job, std::function<void(Status)> done) override {
    ++creates;
    if (refuse) return done(*refuse);
    feed_.admit(next_++, std::move(job));
    done(Nothing{});
  }
  void delete_job(std::string ns, std::string name, std::string uid, Propagation propagation,
                  std::function<void(Status)> done) override {
    last_uid = uid;
    last_propagation = propagation;
    if (refuse) return done(*refuse);
    auto shown = view_.job(ns, name);
    if (!shown) return done(Error{Errc::not_found, "", {}});
    feed_.records(shown->job->id(),
                  {core::JobDeleted{kStart, propagation != Propagation::foreground,
                                    propagation == Propagation::orphan}});
    done(Nothing{});
  }
  void update_job(core::JobObjectPtr seen, core::JobObjectPtr job,
                  std::function<void(Status)> done) override {
    ++updates;
    auto shown = view_.job(seen->meta.ns, seen->meta.name);
    if (!shown) return done(Error{Errc::not_found, "", {}});
    const JobId id = shown->job->id();
    if (before_update) std::exchange(before_update, nullptr)(id);
    if (shown->job->object().json != seen->json) return done(Error{Errc::conflict, "", {}});
    feed_.records(
        id, {core::JobSpecChanged{kStart, job->meta.generation, job->spec.parallelism.value_or(1),
                                  job->spec.completions.value_or(-1), job}});
    done(Nothing{});
  }
  void write_status(core::StatusWrite write, std::function<void(Status)> done) override {
    ++updates;
    auto shown = view_.job(write.seen->meta.ns, write.seen->meta.name);
    const JobId id = shown->job->id();
    if (before_update) std::exchange(before_update, nullptr)(id);
    const core::JobState& state =
        view_.job(write.seen->meta.ns, write.seen->meta.name)->job->state();
    if (write.seen_json != (write.conditions ? state.own_conditions : state.external_status))
      return done(Error{Errc::conflict, "", {}});
    if (write.conditions)
      feed_.records(id, {core::ConditionsWritten{kStart, std::move(write.json)}});
    else
      feed_.records(id, {core::StatusWritten{kStart, std::move(write.json)}});
    if (write.object)
      feed_.records(
          id, {core::JobSpecChanged{kStart, write.object->meta.generation,
                                    write.object->spec.parallelism.value_or(1),
                                    write.object->spec.completions.value_or(-1), write.object}});
    done(Nothing{});
  }
  void delete_pods(JobId job, std::vector<PodKey> pods, bool evict, Millis grace_ms,
                   std::function<void(Status)> done) override {
    last_evict = evict;
    last_grace_ms = grace_ms;
    core::PodsStopping stopping{.at_ms = kStart, .by_job = false};
    for (PodKey pod : pods) stopping.pods.push_back({pod, core::Counted::failed, false, grace_ms});
    feed_.records(job, {stopping});
    done(Nothing{});
  }
  void write_pod(JobId job, core::PodConditionsWrite write,
                 std::function<void(Status)> done) override {
    for (core::PodCondition& condition : write.conditions)
      feed_.records(job, {core::PodConditionSet{kStart, write.pod, std::move(condition)}});
    if (!write.meta.empty())
      feed_.records(job, {core::PodMetaSet{kStart, write.pod, std::move(write.meta)}});
    done(Nothing{});
  }
  void change_node(std::string name, core::NodeSpec seen, core::NodeSpec spec,
                   std::function<void(Status)> done) override {
    core::NodeInfo node = *view_.node(name)->node;
    if (node.spec != seen) return done(Error{Errc::conflict, "", {}});
    node.spec = std::move(spec);
    feed_.node(std::move(node));
    done(Nothing{});
  }
  void delete_node(std::string name, std::function<void(Status)> done) override {
    core::NodeInfo node = *view_.node(name)->node;
    node.gone = node.deleted = true;
    feed_.node(std::move(node));
    done(Nothing{});
  }
  void write_kept(core::KeptPtr seen, core::KeptPtr next,
                  std::function<void(Status)> done) override {
    if (refuse) return done(*refuse);
    const core::Kept& one = seen ? *seen : *next;
    const auto shown = view_.kept(one.kind, one.ns, one.name);
    if (!seen && shown) return done(Error{Errc::exists, "", {}});
    if (seen && !shown) return done(Error{Errc::not_found, "", {}});
    if (seen && shown->version != seen->version) return done(Error{Errc::conflict, "", {}});
    feed_.kept(seen, next);
    done(Nothing{});
  }
  void read_log(LogRequest request, std::function<void(Result<LogChunk>)> done) override {
    ++reads;
    if (refuse) return done(*refuse);
    const std::string& text = request.stderr_stream ? err : out;
    LogChunk chunk{.found = true, .size = static_cast<int64_t>(text.size()), .running = running};
    chunk.offset = request.offset;
    if (request.offset < 0) {
      size_t at = text.size();
      for (int64_t lines = request.offset; lines < 0 && at > 0; ++lines) {
        const size_t end = text.rfind('\n', at - 1);
        const size_t before =
            end == std::string::npos || end == 0 ? std::string::npos : text.rfind('\n', end - 1);
        at = before == std::string::npos ? 0 : before + 1;
      }
      chunk.offset = static_cast<int64_t>(at);
    }
    chunk.data = text.substr(static_cast<size_t>(chunk.offset), std::min<size_t>(request.limit, 7));
    if (reads == grow_at) {
      out += "grown\n";
      running = false;
    }
    done(std::move(chunk));
  }

  Result<AttemptPage> read_attempts(const AttemptRequest& request) override {
    AttemptPage page;
    for (size_t i = request.from.first; i < closed.size(); ++i) {
      if (page.attempts.size() == request.limit) {
        page.next = std::pair(uint64_t{i}, 0u);
        break;
      }
      if (request.wanted(closed[i])) page.attempts.push_back(closed[i]);
      page.end = {i + 1, 0};
    }
    return page;
  }

  // Beside the API thread: here when the test says so.
  void compute(std::function<void()> work, std::function<void()> done) override {
    if (!hold_computing) return Backend::compute(std::move(work), std::move(done));
    held.emplace_back(std::move(work), std::move(done));
  }
  std::deque<std::pair<std::function<void()>, std::function<void()>>> held;
  bool hold_computing = false;

  std::vector<core::Pod> closed;
  std::optional<Error> refuse;
  std::string out = "one\ntwo\nthree\n", err = "oops\n", last_uid;
  bool running = false;
  int creates = 0, reads = 0, grow_at = -1, updates = 0;
  Propagation last_propagation = Propagation::background;
  bool last_evict = false;
  Millis last_grace_ms = 0;
  std::function<void(JobId)> before_update;  // once: what happens between look and write

 private:
  View& view_;
  Feeder& feed_;
  JobId next_ = 100;
};

struct Answer {
  int code = 0;
  std::string head, body;
  Json json() const { return Json::parse(body, nullptr, false); }
  bool is_status(const char* reason) const {
    const Json j = json();
    return j.is_object() && j["kind"] == "Status" && j["status"] == "Failure" &&
           j["reason"] == reason && j["code"] == code;
  }
};

std::string dechunked(std::string_view raw) {
  std::string body;
  while (!raw.empty()) {
    const size_t eol = raw.find("\r\n");
    if (eol == std::string_view::npos) break;
    const size_t n = std::stoul(std::string(raw.substr(0, eol)), nullptr, 16);
    if (n == 0 || raw.size() < eol + 2 + n) break;
    body += raw.substr(eol + 2, n);
    raw.remove_prefix(std::min(raw.size(), eol + 4 + n));
  }
  return body;
}

Answer parsed(const std::string& raw) {
  Answer answer;
  const size_t end = raw.find("\r\n\r\n");
  if (end == std::string::npos) return answer;
  answer.head = raw.substr(0, end);
  answer.code = std::stoi(answer.head.substr(9, 3));
  answer.body = raw.substr(end + 4);
  if (answer.head.find("chunked") != std::string::npos) answer.body = dechunked(answer.body);
  return answer;
}

// Has this answer come whole? (KJ keeps the connection open, whatever the client says.)
bool whole(const std::string& raw) {
  const size_t end = raw.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const std::string head = raw.substr(0, end);
  if (head.starts_with("HTTP/1.1 304")) return true;  // never has a body
  if (head.find("chunked") != std::string::npos)
    return raw.ends_with("\r\n0\r\n\r\n") || raw.ends_with("\r\n\r\n0\r\n\r\n");
  const size_t length = head.find("Content-Length: ");
  return length != std::string::npos &&
         raw.size() >= end + 4 + std::stoul(head.substr(length + 16));
}

// A client that reads while the loop turns.
struct Client {
  kj::Own<kj::AsyncIoStream> stream;
  std::string raw;
  char buffer[4096];
  bool ended = false;

  kj::Promise<void> read() {
    return stream->tryRead(buffer, 1, sizeof buffer).then([this](size_t n) -> kj::Promise<void> {
      raw.append(buffer, n);
      ended = n == 0;
      if (ended) return kj::READY_NOW;
      return read();
    });
  }
};

const char* kManifest =
    R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"new"},"spec":{"completionMode":"Indexed","completions":2,)"
    R"("parallelism":2,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","command":["true"]}]}}}})";
const std::string kJobs = "/apis/batch/v1/namespaces/default/jobs";
const std::string kPods = "/api/v1/namespaces/default/pods";

// All that lives on the loop. KJ's destructors may throw, a fixture's may not: it holds this by
// pointer.
struct Rig {
  Rig() : server(io.provider->getTimer(), view, backend, options()) {
    server.set_ready(true, "");
    server.streams().log_gap = 1 * kj::MILLISECONDS;
    server.streams().watch_gap = 1 * kj::MILLISECONDS;
  }
  ServerOptions options() {
    ServerOptions o;
    o.version = "1.2.3";
    o.random = [this] { return random += 0x9e3779b97f4a7c15u; };
    o.now = [] { return kStart; };
    o.connections_max = 8;
    return o;
  }
  struct Quiet final : kj::TaskSet::ErrorHandler {
    void taskFailed(kj::Exception&&) override {}  // a connection that the test has closed
  };

  kj::AsyncIoContext io = kj::setupAsyncIo();
  View view;
  Feeder feed{view};
  FakeBackend backend{view, feed};
  uint64_t random = 42;
  Server server;
  std::deque<std::string> sent;
  Quiet quiet;
  kj::TaskSet connections{quiet};
};

class ServerTest : public ::testing::Test {
 protected:
  ~ServerTest() override { delete rig_; }

  kj::Own<Client> connect(const std::string& request) {
    auto pipe = io.provider->newTwoWayPipe();
    connections_.add(server.serve_connection(kj::mv(pipe.ends[0])));
    auto client = kj::heap<Client>();
    client->stream = kj::mv(pipe.ends[1]);
    sent_.push_back(request);
    connections_.add(client->stream->write(sent_.back().data(), sent_.back().size()));
    return client;
  }

  static std::string request(const std::string& method, const std::string& path,
                             const std::string& headers = "", const std::string& body = "") {
    return method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1:7117\r\n" + headers +
           (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") +
           "Connection: close\r\n\r\n" + body;
  }

  Answer call(const std::string& raw_request) {
    auto client = connect(raw_request);
    auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
    EXPECT_TRUE(until([&] { return client->ended || whole(client->raw); }))
        << raw_request.substr(0, 200);
    return parsed(client->raw);
  }
  Answer get(const std::string& path, const std::string& headers = "") {
    return call(request("GET", path, headers));
  }
  Answer post(const std::string& path, const std::string& body,
              const std::string& type = "application/json") {
    return call(request("POST", path, "Content-Type: " + type + "\r\n", body));
  }

  // Turns the loop until the test holds, for at most 10 s.
  template <class F>
  bool until(F test) {
    const auto deadline = io.provider->getTimer().now() + 10 * kj::SECONDS;
    while (!test()) {
      if (io.provider->getTimer().now() > deadline) return false;
      io.provider->getTimer().afterDelay(1 * kj::MILLISECONDS).wait(io.waitScope);
    }
    return true;
  }

  Rig* rig_ = new Rig;
  kj::AsyncIoContext& io = rig_->io;
  View& view = rig_->view;
  Feeder& feed = rig_->feed;
  FakeBackend& backend = rig_->backend;
  Server& server = rig_->server;
  std::deque<std::string>& sent_ = rig_->sent;
  kj::TaskSet& connections_ = rig_->connections;
};

TEST_F(ServerTest, P04OthersAreAnsweredWhileALargeBodyIsJudged) {
  backend.hold_computing = true;
  Json job = Json::parse(kManifest);
  job["metadata"]["annotations"]["long"] = std::string(kHereMax, 'x');
  const std::string body = job.dump(), json = "Content-Type: application/json\r\n";
  auto large = connect(request("POST", kJobs, json, body));
  auto reading = large->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return backend.held.size() == 1; }));
  EXPECT_EQ(get("/livez").code, 200);
  EXPECT_EQ(backend.creates, 0);
  EXPECT_TRUE(large->raw.empty());
  auto [work, done] = std::move(backend.held.front());
  backend.held.pop_front();
  work();
  done();
  ASSERT_TRUE(until([&] { return whole(large->raw); }));
  EXPECT_EQ(parsed(large->raw).code, 201) << large->raw;
  // Whoever goes away meanwhile leaves nothing behind that is touched later.
  auto pipe = io.provider->newTwoWayPipe();
  auto serving = server.serve_connection(kj::mv(pipe.ends[0])).eagerlyEvaluate([](auto&&) {});
  const std::string put = request("PUT", kJobs + "/new", json, body);
  auto writing = pipe.ends[1]->write(put.data(), put.size()).eagerlyEvaluate([](auto&&) {});
  ASSERT_TRUE(until([&] { return backend.held.size() == 1; }));
  serving = nullptr;
  std::tie(work, done) = std::move(backend.held.front());
  backend.held.clear();
  work();
  done();
  EXPECT_EQ(get("/livez").code, 200);
}

TEST_F(ServerTest, P04BodiesOfOtherKindsAreSmaller) {
  const std::string body = "{\"kind\": \"" + std::string(kSmallBodyMax, 'x') + "\"}";
  EXPECT_EQ(post("/apis/coordination.k8s.io/v1/namespaces/default/leases", body).code, 413);
}

TEST_F(ServerTest, CreatesAndGets) {
  const Answer created = post(kJobs, kManifest);
  ASSERT_EQ(created.code, 201) << created.body;
  const Json json = created.json();
  EXPECT_EQ(json["metadata"]["name"], "new");
  EXPECT_EQ(json["metadata"]["uid"].get<std::string>().size(), 36u);
  EXPECT_EQ(json["status"], Json::object());
  const Answer got = get(kJobs + "/new");
  ASSERT_EQ(got.code, 200);
  EXPECT_EQ(got.json(), json);
  EXPECT_EQ(get(kJobs + "/new/status").code, 200);
  EXPECT_NE(got.head.find("application/json"), std::string::npos);
}

TEST_F(ServerTest, CreatesFromYamlAndGeneratedNames) {
  const Answer yaml =
      post(kJobs,
           "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: gen-}\nspec:\n  template:\n  "
           "  spec:\n"
           "      restartPolicy: Never\n      containers: [{name: main, command: [\"true\"]}]\n",
           "application/yaml; charset=utf-8");
  ASSERT_EQ(yaml.code, 201) << yaml.body;
  EXPECT_EQ(yaml.json()["metadata"]["name"].get<std::string>().size(), 9u);
  EXPECT_EQ(post(kJobs, "a: [", "application/yaml").code, 400);
}

TEST_F(ServerTest, DryRunStoresNothing) {
  EXPECT_EQ(post(kJobs + "?dryRun=All", kManifest).code, 201);
  EXPECT_EQ(backend.creates, 0);
  EXPECT_EQ(get(kJobs + "/new").code, 404);
  EXPECT_EQ(post(kJobs + "?dryRun=Some", kManifest).code, 400);
}

TEST_F(ServerTest, ShowsThePageToWhoeverWantsOne) {
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
  EXPECT_TRUE(call(request("POST", "/", "Content-Type: application/json\r\n", "{}"))
                  .is_status("MethodNotAllowed"));
  EXPECT_TRUE(call("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
                  .is_status("Forbidden"));
  server.set_ready(false, "recovering");
  EXPECT_EQ(get("/").code, 200) << "the page itself tells what it waits for";
}

TEST_F(ServerTest, APageThatIsKnownIsNotSentAgain) {
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

TEST_F(ServerTest, TellsWhereEachIndexStands) {
  const std::string path = "/apis/muster.dev/v1/namespaces/default/jobs/a/indexes";
  feed.admit(1, make_job("a", uid_of(1), 9));
  feed.create(1, 0, 4);
  feed.bind(1, {0, 0});
  feed.start(1, {0, 0});
  feed.end(1, {0, 0}, 0);
  feed.bind(1, {2, 0});
  const uint64_t version = feed.start(1, {2, 0});
  const Answer map = get(path);
  ASSERT_EQ(map.code, 200) << map.body;
  EXPECT_EQ(map.json(), (Json{{"kind", "IndexMap"},
                              {"apiVersion", "muster.dev/v1"},
                              {"metadata",
                               {{"name", "a"},
                                {"namespace", "default"},
                                {"uid", uid_of(1)},
                                {"resourceVersion", std::to_string(version)}}},
                              {"completions", 9},
                              {"succeeded", "0"},
                              {"failed", ""},
                              {"running", "2"},
                              {"pending", "1,3"},
                              {"backoff", ""}}));
  EXPECT_TRUE(call(request("POST", path, "Content-Type: application/json\r\n", "{}"))
                  .is_status("MethodNotAllowed"));
  const Answer none = get("/apis/muster.dev/v1/namespaces/default/jobs/b/indexes");
  EXPECT_TRUE(none.is_status("NotFound"));
  EXPECT_EQ(none.json()["message"], "jobs.batch \"b\" not found");
  for (const char* nowhere : {"/apis/muster.dev/v1/namespaces/default/jobs/a/other",
                              "/apis/muster.dev/v1/namespaces/default/jobs/a",
                              "/apis/muster.dev/v1/namespaces/default/pods/a/indexes",
                              "/apis/muster.dev/v1/namespaces/default/jobs/a/indexes/1",
                              "/apis/muster.dev/v1/jobs", "/apis/muster.dev/v2/nodes"})
    EXPECT_TRUE(get(nowhere).is_status("NotFound")) << nowhere;
  server.set_ready(false, "recovering");
  EXPECT_TRUE(get(path).is_status("ServiceUnavailable"));
}

TEST_F(ServerTest, TellsWhatEachNodeRuns) {
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  feed.node(make_node(2, "n2", core::NodeInfo::Health::ready));
  feed.admit(1, make_job("a", uid_of(1), 4));
  feed.create(1, 0, 4);
  for (uint32_t i = 0; i < 3; ++i) feed.bind(1, {i, 0});
  feed.start(1, {0, 0});
  feed.start(1, {1, 0});
  feed.end(1, {1, 0}, 0);
  const Answer use = get("/apis/muster.dev/v1/nodes");
  ASSERT_EQ(use.code, 200) << use.body;
  EXPECT_EQ(use.json()["kind"], "NodeUseList");
  EXPECT_EQ(use.json()["items"], (Json::array({{{"name", "n1"}, {"running", 1}, {"waiting", 1}},
                                               {{"name", "n2"}, {"running", 0}, {"waiting", 0}}})));
}

TEST_F(ServerTest, RefusesWithTheRightStatus) {
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
  EXPECT_EQ(post(kJobs, unknown).code, 400);
  const Answer warned = post(kJobs + "?fieldValidation=Warn", unknown);
  EXPECT_EQ(warned.code, 201);
  EXPECT_NE(warned.head.find("Warning: 299 - "), std::string::npos) << warned.head;
  EXPECT_TRUE(post(kJobs, kManifest).is_status("AlreadyExists"));
}

TEST_F(ServerTest, PassesOnWhatTheBackendSays) {
  backend.refuse = Error{Errc::unavailable, "the disk is full", {}};
  const Answer a = post(kJobs, kManifest);
  EXPECT_TRUE(a.is_status("ServiceUnavailable"));
  EXPECT_NE(a.head.find("Retry-After"), std::string::npos);
  backend.refuse = Error{Errc::overloaded, "too many jobs", {}};
  EXPECT_TRUE(post(kJobs, kManifest).is_status("TooManyRequests"));
  backend.refuse = Error{Errc::exists, "", {}};
  EXPECT_TRUE(post(kJobs, kManifest).is_status("AlreadyExists"));
}

TEST_F(ServerTest, BodiesAreBounded) {
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

TEST_F(ServerTest, WebPagesAreRefused) {
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

TEST_F(ServerTest, P09WebPagesAreRefusedToo) {
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
        std::string("Content-Length: many\r\n\r\n{}"),
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

TEST_F(ServerTest, P09NoAnswerIsSniffed) {
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

TEST_F(ServerTest, SaysWhenItIsNotReady) {
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

TEST_F(ServerTest, Discovery) {
  for (const char* path : {"/version", "/api", "/apis", "/apis/batch", "/api/v1", "/apis/batch/v1",
                           "/openapi/v3", "/openapi/v3/apis/batch/v1?hash=x"}) {
    const Answer a = get(path);
    EXPECT_EQ(a.code, 200) << path;
    EXPECT_TRUE(a.json().is_object()) << path << a.body;
  }
  EXPECT_TRUE(get("/api").json()["versions"].is_array());
  EXPECT_EQ(get("/api/v1").json()["resources"].size(), 8u);
  EXPECT_EQ(get("/apis/batch/v1").json()["resources"][0]["verbs"].size(), 8u);
}

TEST_F(ServerTest, AClientThatHasADocumentGetsNoSecondCopy) {
  const std::string path = "/openapi/v3/apis/batch/v1";
  const Answer first = get(path);
  const size_t at = first.head.find("ETag: ");
  ASSERT_NE(at, std::string::npos) << first.head;
  const std::string etag = first.head.substr(at + 6, first.head.find('\r', at) - at - 6);
  EXPECT_EQ(get(path, "If-None-Match: " + etag + "\r\n").code, 304);
  EXPECT_EQ(get(path, "If-None-Match: \"other\"\r\n").code, 200);
}

TEST_F(ServerTest, TheOldOpenApiIsProtobufOnly) {
  EXPECT_EQ(get("/openapi/v2", "Accept: application/json\r\n").code, 406);
  const char* protobuf = "Accept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf\r\n";
  EXPECT_EQ(get("/openapi/v2", protobuf).code, 200);
}

TEST_F(ServerTest, Namespaces) {
  feed.admit(1, make_job("a", uid_of(1), 1, "", "blue"));
  const auto names = [this](const std::string& query) {
    std::string text;
    const Json list = get("/api/v1/namespaces" + query).json();
    for (const Json& item : list["items"])
      text += item["metadata"]["name"].get<std::string>() + " ";
    return text;
  };
  EXPECT_EQ(names(""), "blue default ");
  EXPECT_EQ(names("?fieldSelector=metadata.name%3Dblue"), "blue ");
  EXPECT_EQ(names("?labelSelector=kubernetes.io/metadata.name%21%3Dblue"), "default ");
  EXPECT_EQ(get("/api/v1/namespaces/any").json()["status"]["phase"], "Active");
  EXPECT_EQ(get("/api/v1/namespaces?watch=true").code, 405);
  EXPECT_EQ(post("/api/v1/namespaces", "{}").code, 409);
  EXPECT_EQ(call(request("DELETE", "/api/v1/namespaces/blue")).code, 405);
  EXPECT_EQ(
      get("/api/v1/namespaces", "Accept: application/json;as=Table\r\n").json()["rows"].size(), 2u);
}

TEST_F(ServerTest, WhatThereNeverIsCanBeListed) {
  EXPECT_EQ(get("/api/v1/namespaces/default/services").json()["kind"], "ServiceList");
  EXPECT_EQ(get("/api/v1/services/x").code, 404);
  EXPECT_EQ(get("/apis/policy/v1/poddisruptionbudgets").json()["items"].size(), 0u);
  EXPECT_EQ(post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", "{}").code, 405);
  EXPECT_EQ(get("/api/v1/secrets").code, 404);
}

TEST_F(ServerTest, WhoeverAsksMayDoIt) {
  const std::string reviews = "/apis/authorization.k8s.io/v1/";
  const Answer one = post(reviews + "selfsubjectaccessreviews", "{}");
  EXPECT_EQ(one.code, 201);
  EXPECT_EQ(one.json()["status"]["allowed"], true);
  EXPECT_EQ(post(reviews + "selfsubjectrulesreviews", "{}").json()["status"]["incomplete"], false);
  EXPECT_EQ(get(reviews + "selfsubjectaccessreviews").code, 405);
}

TEST_F(ServerTest, OnlyOptionsOfADeletionNeedNoContentType) {
  feed.admit(1, make_job("a", uid_of(1), 1));
  const std::string options = R"({"propagationPolicy":"Foreground"})";
  EXPECT_EQ(call(request("POST", kJobs, "", kManifest)).code, 415);
  EXPECT_EQ(call(request("DELETE", kJobs + "/a", "", options)).code, 200);
  EXPECT_EQ(backend.last_propagation, Propagation::foreground);
}

TEST_F(ServerTest, AJobInProtobuf) {
  const char* type = "Content-Type: application/vnd.kubernetes.protobuf\r\n";
  const Answer a = call(request("POST", kJobs, type, "not in the frame"));
  EXPECT_EQ(a.code, 400);
  EXPECT_NE(a.body.find("k8s"), std::string::npos);
}

TEST_F(ServerTest, WhatIsNotServedSaysWhatThereIsInstead) {
  const std::string pods = "/api/v1/namespaces/default/pods";
  for (const auto& [method, path] :
       {std::pair{"POST", pods}, {"POST", pods + "/x/exec"}, {"GET", pods + "/x/portforward"}}) {
    const Answer a = call(request(method, path));
    EXPECT_EQ(a.code, 405) << path;
    EXPECT_GT(a.json()["message"].get<std::string>().size(), 20u) << path;
  }
  EXPECT_NE(post(pods, "{}").body.find("kubectl create job"), std::string::npos);
}

TEST_F(ServerTest, Lists) {
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  feed.admit(1, make_job("a", uid_of(1), 500));
  feed.admit(2, make_job("b", uid_of(2), 3, "", "other"));
  feed.create(1, 0, 500);
  feed.create(2, 0, 3);
  const Json pods = get(kPods).json();
  EXPECT_EQ(pods["kind"], "PodList");
  EXPECT_EQ(pods["items"].size(), 500u);
  EXPECT_EQ(pods["metadata"]["resourceVersion"], std::to_string(view.version()));
  EXPECT_EQ(get("/api/v1/pods").json()["items"].size(), 503u);
  EXPECT_EQ(get("/apis/batch/v1/jobs").json()["items"].size(), 2u);
  EXPECT_EQ(get("/api/v1/nodes").json()["items"][0]["metadata"]["name"], "n1");
  EXPECT_EQ(get("/api/v1/namespaces/other/events").json()["items"].size(), 3u);
  EXPECT_EQ(get("/api/v1/pods?labelSelector=job-name%3Db").json()["items"].size(), 3u);
  EXPECT_EQ(get(kPods + "?fieldSelector=status.phase%3DRunning").json()["items"], Json::array());
  const Json table =
      get(kPods, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n")
          .json();
  EXPECT_EQ(table["kind"], "Table");
  EXPECT_EQ(table["rows"].size(), 500u);
  const std::string name = pods["items"][7]["metadata"]["name"];
  EXPECT_EQ(get(kPods + "/" + name).json(), pods["items"][7]);
}

TEST_F(ServerTest, ListsInPages) {
  feed.admit(1, make_job("b", uid_of(1), 10));
  feed.admit(2, make_job("a", uid_of(2), 10));
  feed.create(1, 0, 10);
  feed.create(2, 0, 10);
  const Json whole = get(kPods).json();
  EXPECT_FALSE(whole["metadata"].contains("continue"));
  Json items = Json::array();
  std::string token;
  do {
    const Json page = get(kPods + "?limit=3" + (token.empty() ? "" : "&continue=" + token)).json();
    ASSERT_EQ(page["kind"], "PodList") << page.dump();
    ASSERT_LE(page["items"].size(), 3u);
    for (const Json& item : page["items"]) items.push_back(item);
    token = page["metadata"].value("continue", "");
    EXPECT_EQ(page["metadata"].value("remainingItemCount", size_t{0}), 20 - items.size());
    // What changes between two pages does not move the version: a watch from there tells of it.
    EXPECT_EQ(page["metadata"]["resourceVersion"], whole["metadata"]["resourceVersion"]);
    feed.records(1, {core::JobStarted{kStart}});
  } while (!token.empty());
  ASSERT_EQ(items.size(), 20u);
  for (size_t i = 0; i < 20; ++i)
    EXPECT_EQ(items[i]["metadata"]["name"], whole["items"][i]["metadata"]["name"]);
  EXPECT_EQ(items[0]["metadata"]["labels"]["batch.kubernetes.io/job-name"], "a");

  const Json selected = get(kPods + "?limit=9&labelSelector=job-name%3Db").json();
  EXPECT_FALSE(selected["metadata"].contains("remainingItemCount"));
  const std::string rest = selected["metadata"]["continue"];
  EXPECT_EQ(
      get(kPods + "?limit=9&labelSelector=job-name%3Db&continue=" + rest).json()["items"].size(),
      1u);
  EXPECT_FALSE(
      get(kPods + "?limit=10&labelSelector=job-name%3Db").json()["metadata"].contains("continue"));
  EXPECT_TRUE(get(kPods + "?limit=-1").is_status("BadRequest"));
  EXPECT_TRUE(get(kPods + "?continue=nonsense").is_status("BadRequest"));
  EXPECT_TRUE(get(kPods + "?resourceVersion=5&continue=" + rest).is_status("BadRequest"));
  EXPECT_EQ(get(kPods + "?resourceVersion=999").code, 504);
}

TEST_F(ServerTest, ATokenOfAnotherStartIsTooOld) {
  ListPage page{.limit = 1};
  page.version = 7;
  feed.admit(1, make_job("a", uid_of(1)));
  view.loaded(1000, {});
  const Answer late = get(kPods + "?continue=" + continue_token(page, {"default", "a", 1, {}, 0}));
  EXPECT_EQ(late.code, 410);
  EXPECT_TRUE(late.is_status("Expired"));
}

TEST_F(ServerTest, SaysWhichMethodsThereAre) {
  const Answer a = call(request("PUT", kPods));
  EXPECT_TRUE(a.is_status("MethodNotAllowed"));
  EXPECT_NE(a.head.find("Allow: DELETE, GET"), std::string::npos) << a.head;
}

TEST_F(ServerTest, AWatcherThatStopsReadingIsCut) {
  feed.admit(1, make_job("a", uid_of(1), 200));
  feed.create(1, 0, 200);
  server.streams().write_patience = 20 * kj::MILLISECONDS;
  auto client = connect(request("GET", kPods + "?watch=true&resourceVersion=0"));
  auto gone = client->stream->whenWriteDisconnected()
                  .then([] { return true; })
                  .eagerlyEvaluate([](kj::Exception&&) { return true; });
  bool cut = false;
  auto seen = gone.then([&cut](bool) { cut = true; }).eagerlyEvaluate([](kj::Exception&&) {});
  EXPECT_TRUE(until([&cut] { return cut; })) << "its pipe holds nothing that nobody reads";
}

TEST_F(ServerTest, Deletes) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.admit(2, make_job("b", uid_of(2)));
  auto remove = [&](const std::string& name, const std::string& body) {
    return call(request("DELETE", kJobs + "/" + name,
                        body.empty() ? "" : "Content-Type: application/json\r\n", body));
  };
  EXPECT_TRUE(remove("a", R"({"propagationPolicy":"Sideways"})").is_status("BadRequest"));
  EXPECT_TRUE(remove("a", R"({"preconditions":{"uid":"x"}})").is_status("Conflict"));
  EXPECT_EQ(remove("a", R"({"dryRun":["All"]})").code, 200);
  EXPECT_EQ(get(kJobs + "/a").code, 200);
  const Answer gone = remove(
      "a", R"({"propagationPolicy":"Background","preconditions":{"uid":")" + uid_of(1) + R"("}})");
  EXPECT_EQ(gone.code, 200);
  EXPECT_EQ(gone.json()["status"], "Success");
  EXPECT_EQ(backend.last_uid, uid_of(1));
  EXPECT_EQ(get(kJobs + "/a").code, 404);
  EXPECT_TRUE(remove("a", "").is_status("NotFound"));
  const Answer leaving = call(request("DELETE", kJobs + "/b?propagationPolicy=Foreground"));
  EXPECT_EQ(leaving.code, 200);
  EXPECT_TRUE(leaving.json()["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(get(kJobs + "/b").code, 200);
  EXPECT_EQ(backend.last_propagation, Propagation::foreground);
  feed.admit(3, make_job("c", uid_of(3)));
  EXPECT_EQ(remove("c", "").code, 200);
  EXPECT_EQ(backend.last_propagation, Propagation::orphan) << "the raw API's default for batch/v1";
}

TEST_F(ServerTest, P20WarnsAsKubernetesDoes) {
  const std::string orphans = "Warning: 299 - \"child pods are preserved by default";
  feed.admit(1, make_job("a", uid_of(1)));
  feed.admit(2, make_job("b", uid_of(2)));
  auto remove = [&](const std::string& name, const std::string& body) {
    return call(request("DELETE", kJobs + "/" + name,
                        body.empty() ? "" : "Content-Type: application/json\r\n", body));
  };
  EXPECT_NE(remove("a", "").head.find(orphans), std::string::npos);
  EXPECT_EQ(remove("b", R"({"propagationPolicy":"Orphan"})").head.find(orphans), std::string::npos);
  EXPECT_NE(call(request("DELETE", kJobs)).head.find(orphans), std::string::npos) << "all of them";
  std::string dotted = kManifest;
  dotted.replace(dotted.find("\"new\""), 5, "\"new.one\"");
  dotted.replace(dotted.find("Indexed"), 7, "NonIndexed");  // an index is part of a host name
  const Answer created = post(kJobs, dotted);
  EXPECT_EQ(created.code, 201) << created.body;
  EXPECT_NE(created.head.find("a DNS label is recommended: [must not contain dots]"),
            std::string::npos)
      << created.head;
  EXPECT_EQ(post(kJobs, kManifest).head.find("Warning:"), std::string::npos);
}

TEST_F(ServerTest, PatchesAJobInThreeWays) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  const std::string path = kJobs + "/new";
  auto patch = [&](const std::string& type, const std::string& body,
                   const std::string& query = "") {
    return call(request("PATCH", path + query, "Content-Type: application/" + type + "\r\n", body));
  };
  const Answer merged = patch("merge-patch+json", R"({"spec":{"parallelism":1}})");
  ASSERT_EQ(merged.code, 200) << merged.body;
  EXPECT_EQ(merged.json()["spec"]["parallelism"], 1);
  EXPECT_EQ(merged.json()["metadata"]["generation"], 2);
  const Answer listed =
      patch("json-patch+json", R"([{"op":"test","path":"/spec/parallelism","value":1},)"
                               R"({"op":"replace","path":"/spec/parallelism","value":2}])");
  ASSERT_EQ(listed.code, 200) << listed.body;
  EXPECT_EQ(listed.json()["spec"]["parallelism"], 2);
  EXPECT_EQ(
      patch("json-patch+json", R"([{"op":"test","path":"/spec/parallelism","value":9}])").code,
      400);
  const Answer labelled =
      patch("strategic-merge-patch+json", R"({"metadata":{"labels":{"a":"b"}}})");
  ASSERT_EQ(labelled.code, 200) << labelled.body;
  EXPECT_EQ(labelled.json()["metadata"]["labels"]["a"], "b");
  EXPECT_EQ(labelled.json()["metadata"]["generation"], 3) << "metadata is no change of the spec";
  const int before = backend.updates;
  EXPECT_EQ(patch("merge-patch+json", R"({"spec":{"parallelism":2}})").code, 200);
  EXPECT_EQ(patch("merge-patch+json", R"({"spec":{"parallelism":5}})", "?dryRun=All").code, 200);
  EXPECT_EQ(backend.updates, before) << "nothing changed, or nothing was to be stored";
  EXPECT_EQ(get(path).json()["spec"]["parallelism"], 2);
  EXPECT_TRUE(patch("merge-patch+json", R"({"spec":{"completionMode":"NonIndexed"}})")
                  .is_status("Invalid"));
  EXPECT_TRUE(patch("merge-patch+json", R"({"spec":{"paralelism":1}})").is_status("BadRequest"));
  EXPECT_EQ(patch("json", "{}").code, 415);
  EXPECT_EQ(call(request("PATCH", kJobs + "/none", "Content-Type: application/merge-patch+json\r\n",
                         "{}"))
                .code,
            404);
}

TEST_F(ServerTest, AppliesAJob) {
  const std::string path = kJobs + "/new";
  auto apply = [&](const std::string& who, const std::string& body, const std::string& query = "") {
    return call(request("PATCH", path + "?fieldManager=" + who + query,
                        "Content-Type: application/apply-patch+yaml\r\n", body));
  };
  auto manifest = [](const std::string& parallelism, const std::string& more = "") {
    return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: new" + more +
           "}\nspec:\n  completionMode: Indexed\n  completions: 2\n  parallelism: " + parallelism +
           "\n  template:\n    spec:\n      restartPolicy: Never\n"
           "      containers: [{name: main, command: [\"true\"]}]\n";
  };
  EXPECT_EQ(apply("", manifest("2")).code, 400) << "no fieldManager";
  EXPECT_EQ(apply("me", "{}").code, 400);
  EXPECT_EQ(apply("me", "[").code, 400);
  EXPECT_EQ(apply("me", manifest("2", ", resourceVersion: '7'")).code, 409);
  EXPECT_EQ(apply("me", manifest("2"), "&dryRun=All").code, 201);
  EXPECT_EQ(backend.creates, 0);
  const Answer created = apply("me", manifest("2"));
  ASSERT_EQ(created.code, 201) << created.body;
  EXPECT_EQ(created.json()["metadata"]["managedFields"].size(), 1u);
  EXPECT_EQ(created.json()["metadata"]["generation"], 1);
  const Json owned = created.json()["metadata"]["managedFields"][0];
  EXPECT_EQ(owned["manager"], "me");
  EXPECT_EQ(owned["operation"], "Apply");
  EXPECT_EQ(owned["apiVersion"], "batch/v1");
  EXPECT_EQ(owned["time"], "2023-11-14T22:13:20Z");
  EXPECT_TRUE(owned["fieldsV1"]["f:spec"].contains("f:parallelism"));
  EXPECT_FALSE(owned["fieldsV1"]["f:spec"].contains("f:backoffLimit")) << "a default";

  const int before = backend.updates;
  EXPECT_EQ(apply("me", manifest("2")).code, 200);
  EXPECT_EQ(backend.updates, before) << "nothing changed";

  const Answer scaled =
      call(request("PATCH", path + "/scale",
                   "Content-Type: application/merge-patch+json\r\nUser-Agent: kubectl/v1.32\r\n",
                   R"({"spec":{"replicas":1}})"));
  ASSERT_EQ(scaled.code, 200) << scaled.body;
  const Answer refused = apply("me", manifest("2"));
  ASSERT_EQ(refused.code, 409) << refused.body;
  EXPECT_TRUE(refused.is_status("Conflict"));
  EXPECT_EQ(refused.json()["message"],
            "Apply failed with 1 conflict: conflict with \"kubectl\" with subresource \"scale\" "
            "using batch/v1: .spec.parallelism");
  const Json cause = refused.json()["details"]["causes"][0];
  EXPECT_EQ(cause["reason"], "FieldManagerConflict");
  EXPECT_EQ(cause["field"], ".spec.parallelism");
  const Answer forced = apply("me", manifest("2"), "&force=true");
  ASSERT_EQ(forced.code, 200) << forced.body;
  EXPECT_EQ(forced.json()["spec"]["parallelism"], 2);
  EXPECT_EQ(forced.json()["metadata"]["managedFields"].size(), 1u) << "the scaler has nothing left";

  // What changes nothing but the managers is no new generation.
  const auto generation = forced.json()["metadata"]["generation"];
  const Answer shared = apply("you", manifest("2"));
  ASSERT_EQ(shared.code, 200) << shared.body;
  EXPECT_EQ(shared.json()["metadata"]["managedFields"].size(), 2u);
  EXPECT_EQ(shared.json()["metadata"]["generation"], generation);
  EXPECT_TRUE(apply("me", manifest("-1"), "&force=true").is_status("Invalid"));
  EXPECT_EQ(apply("me", manifest("2", ", colour: red")).code, 400) << "strict by default";
  EXPECT_EQ(call(request("PATCH", path + "/status?fieldManager=x",
                         "Content-Type: application/apply-patch+yaml\r\n", "{}"))
                .code,
            415);
}

TEST_F(ServerTest, WhoWroteAJobIsKept) {
  auto managers = [&] {
    std::vector<std::string> found;
    const Json job = get(kJobs + "/new").json();
    for (const Json& one : job["metadata"]["managedFields"]) found.push_back(one["manager"]);
    return found;
  };
  ASSERT_EQ(
      call(request("POST", kJobs, "Content-Type: application/json\r\nUser-Agent: maker/1.0 (x)\r\n",
                   kManifest))
          .code,
      201);
  const Json fields = get(kJobs + "/new").json()["metadata"]["managedFields"][0]["fieldsV1"];
  EXPECT_EQ(managers(), std::vector<std::string>{"maker"});
  EXPECT_TRUE(fields["f:spec"].contains("f:backoffLimit")) << "who creates has the defaults too";
  EXPECT_FALSE(fields["f:spec"].contains("f:selector")) << "the server's";
  EXPECT_FALSE(fields["f:spec"]["f:template"].contains("f:metadata")) << "generated labels";
  ASSERT_EQ(call(request("PATCH", kJobs + "/new?fieldManager=labeller",
                         "Content-Type: application/merge-patch+json\r\n",
                         R"({"metadata":{"labels":{"a":"b"}}})"))
                .code,
            200);
  EXPECT_EQ(managers(), (std::vector<std::string>{"labeller", "maker"}));
  Json json = get(kJobs + "/new").json();
  json["metadata"].erase("managedFields");  // a client that knows nothing of it
  json["spec"]["parallelism"] = 1;
  ASSERT_EQ(call(request("PUT", kJobs + "/new?fieldManager=putter",
                         "Content-Type: application/json\r\n", json.dump()))
                .code,
            200);
  EXPECT_EQ(managers(), (std::vector<std::string>{"labeller", "maker", "putter"}));
  EXPECT_EQ(call(request("PATCH", kJobs + "/new?fieldManager=" + std::string(129, 'x'),
                         "Content-Type: application/merge-patch+json\r\n", "{}"))
                .code,
            400);
  EXPECT_EQ(call(request("PATCH", kJobs + "/new?fieldManager=%07",
                         "Content-Type: application/merge-patch+json\r\n", "{}"))
                .code,
            400);
}

TEST_F(ServerTest, AppliesANode) {
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  auto apply = [&](const std::string& name, const std::string& body,
                   const std::string& query = "") {
    return call(request("PATCH", "/api/v1/nodes/" + name + "?fieldManager=me" + query,
                        "Content-Type: application/apply-patch+yaml\r\n", body));
  };
  const std::string head = R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1")";
  const Answer labelled =
      apply("n1", head + R"(,"labels":{"disk":"ssd"}},"spec":{"unschedulable":true}})");
  ASSERT_EQ(labelled.code, 200) << labelled.body;
  EXPECT_EQ(labelled.json()["metadata"]["labels"]["disk"], "ssd");
  EXPECT_EQ(labelled.json()["metadata"]["labels"]["zone"], "a");
  EXPECT_EQ(labelled.json()["spec"]["unschedulable"], true);
  EXPECT_EQ(labelled.json()["metadata"]["managedFields"][0]["manager"], "me");
  ASSERT_EQ(call(request("PATCH", "/api/v1/nodes/n1?fieldManager=other",
                         "Content-Type: application/merge-patch+json\r\n",
                         R"({"metadata":{"labels":{"disk":"hdd"}}})"))
                .code,
            200);
  EXPECT_EQ(apply("n1", head + R"(,"labels":{"disk":"ssd"}}})").code, 409);
  const Answer forced = apply("n1", head + R"(,"labels":{"disk":"ssd"}}})", "&force=true");
  ASSERT_EQ(forced.code, 200) << forced.body;
  EXPECT_FALSE(forced.json()["spec"].contains("unschedulable")) << "left out, so taken back";
  EXPECT_EQ(apply("n2", head + "}}").code, 400) << "another name than the path's";
  EXPECT_EQ(apply("n2", R"({"apiVersion":"v1","kind":"Node"})").code, 404);
  EXPECT_EQ(apply("n1", head + R"(},"spec":{"colour":1}})").code, 400);
}

TEST_F(ServerTest, APatchIsMadeAnewWhenTheJobChangedMeanwhile) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  backend.before_update = [this](JobId id) {
    auto object = std::make_shared<core::JobObject>(view.job("default", "new")->job->object());
    Json json = Json::parse(object->json);
    json["metadata"]["labels"]["other"] = "1";
    object->json = json.dump();
    object->meta.labels["other"] = "1";
    feed.records(id, {core::JobSpecChanged{kStart, 1, 2, 2, object}});
  };
  const Answer patched =
      call(request("PATCH", kJobs + "/new", "Content-Type: application/merge-patch+json\r\n",
                   R"({"spec":{"parallelism":1}})"));
  ASSERT_EQ(patched.code, 200) << patched.body;
  EXPECT_EQ(backend.updates, 2);
  EXPECT_EQ(patched.json()["metadata"]["labels"]["other"], "1") << "the other change is kept";
  EXPECT_EQ(patched.json()["spec"]["parallelism"], 1);
}

TEST_F(ServerTest, ReplacesOnlyWhatWasSeen) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  Json json = get(kJobs + "/new").json();
  auto put = [&] {
    return call(request("PUT", kJobs + "/new", "Content-Type: application/json\r\n", json.dump()));
  };
  const JobId id = view.job("default", "new")->job->id();
  feed.records(id, {core::JobStarted{kStart}});  // the status moves on: no conflict
  json["spec"]["parallelism"] = 1;
  ASSERT_EQ(put().code, 200);
  json["spec"]["parallelism"] = 2;
  const Answer late = put();
  EXPECT_TRUE(late.is_status("Conflict"));
  EXPECT_NE(late.body.find("the object has been modified; please apply your changes"),
            std::string::npos);
}

TEST_F(ServerTest, ScalesByParallelism) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  EXPECT_EQ(get(kJobs + "/new/scale").json()["spec"]["replicas"], 2);
  const Answer scaled =
      call(request("PATCH", kJobs + "/new/scale", "Content-Type: application/merge-patch+json\r\n",
                   R"({"spec":{"replicas":1}})"));
  ASSERT_EQ(scaled.code, 200) << scaled.body;
  EXPECT_EQ(scaled.json()["kind"], "Scale");
  EXPECT_EQ(get(kJobs + "/new").json()["spec"]["parallelism"], 1);
  EXPECT_TRUE(
      call(request("PATCH", kJobs + "/new/scale", "Content-Type: application/merge-patch+json\r\n",
                   R"({"spec":{"replicas":-1}})"))
          .is_status("Invalid"));
}

TEST_F(ServerTest, TheStatusIsWrittenByWhoManagesTheJob) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  auto write = [&](const std::string& name, const std::string& body) {
    return call(request("PATCH", kJobs + "/" + name + "/status",
                        "Content-Type: application/merge-patch+json\r\n", body));
  };
  EXPECT_EQ(write("new", "{}").code, 200);
  const Answer refused = write("new", R"({"status":{"succeeded":7}})");
  EXPECT_TRUE(refused.is_status("Invalid"));
  EXPECT_EQ(refused.json()["details"]["causes"][0]["field"], "status.succeeded");
  Json other = Json::parse(kManifest);
  other["metadata"]["name"] = "other";
  other["spec"]["managedBy"] = "example.com/queue";
  ASSERT_EQ(post(kJobs, other.dump()).code, 201);
  const Answer written = write("other", R"({"status":{"active":2,"ready":1}})");
  ASSERT_EQ(written.code, 200) << written.body;
  EXPECT_EQ(get(kJobs + "/other").json()["status"], Json({{"active", 2}, {"ready", 1}}));
  EXPECT_TRUE(write("other", R"({"status":{"ready":3}})").is_status("Invalid"))
      << "more ready than active";
  for (const char* shape :
       {R"({"conditions":7})", R"({"conditions":[7]})", R"({"conditions":[{"type":7}]})",
        R"({"conditions":[{"type":"Complete","status":true}]})", R"({"startTime":7})",
        R"({"uncountedTerminatedPods":[]})", R"({"completedIndexes":7})", R"({"active":"x"})"})
    EXPECT_TRUE(write("other", std::string(R"({"status":)") + shape + "}").is_status("BadRequest"))
        << shape;
  EXPECT_TRUE(write("other", R"({"status":7})").is_status("BadRequest"));
}

// A job of another controller, with this in its spec, and a way to write its status.
class P21Status : public ServerTest {
 protected:
  void foreign(const std::string& name, const Json& spec = Json::object()) {
    Json job = Json::parse(kManifest);
    job["metadata"]["name"] = name;
    job["spec"]["managedBy"] = "example.com/queue";
    job["spec"].update(spec);
    const Answer created = post(kJobs, job.dump());
    ASSERT_EQ(created.code, 201) << created.body;
  }
  Answer merge(const std::string& name, const std::string& body, const std::string& query = "") {
    return call(request("PATCH", kJobs + "/" + name + "/status" + query,
                        "Content-Type: application/merge-patch+json\r\n", body));
  }
  Answer put(const Json& job) {
    return call(request("PUT", kJobs + "/" + job["metadata"]["name"].get<std::string>() + "/status",
                        "Content-Type: application/json\r\n", job.dump()));
  }
  Json status(const std::string& name) { return get(kJobs + "/" + name).json()["status"]; }
};

TEST_F(P21Status, AStaleVersionIsAConflict) {
  foreign("other");
  Json first = get(kJobs + "/other").json(), second = first;
  first["status"]["active"] = 1;
  second["status"]["ready"] = 0;
  ASSERT_EQ(put(first).code, 200);
  EXPECT_TRUE(put(second).is_status("Conflict")) << "the first write would be lost";
  EXPECT_EQ(status("other"), Json({{"active", 1}}));
  const std::string version = second["metadata"]["resourceVersion"];
  EXPECT_TRUE(merge("other", R"({"metadata":{"resourceVersion":")" + version +
                                 R"("},"status":{"active":2}})")
                  .is_status("Conflict"));
  // A patch without a version is made anew when something else is written meanwhile.
  backend.before_update = [this](JobId id) {
    feed.records(id, {core::StatusWritten{kStart, R"({"active":1,"failed":3})"}});
  };
  ASSERT_EQ(merge("other", R"({"status":{"active":2}})").code, 200);
  EXPECT_EQ(status("other"), Json({{"active", 2}, {"failed", 3}}));
}

TEST_F(P21Status, OnlyWhatAWriteChangesIsJudged) {
  foreign("other", {{"completionMode", "Indexed"}, {"completions", 5}, {"parallelism", 5}});
  ASSERT_EQ(merge("other", R"({"status":{"active":1,"completedIndexes":"0-4"}})").code, 200);
  ASSERT_EQ(
      call(request("PATCH", kJobs + "/other", "Content-Type: application/merge-patch+json\r\n",
                   R"({"spec":{"completions":3,"parallelism":3}})"))
          .code,
      200);
  const Answer later = merge("other", R"({"status":{"active":2}})");
  EXPECT_EQ(later.code, 200) << later.body;
  EXPECT_TRUE(merge("other", R"({"status":{"completedIndexes":"0-3"}})").is_status("Invalid"));
  EXPECT_EQ(merge("other", R"({"status":{"completedIndexes":"0-2"}})").code, 200);
}

TEST_F(P21Status, TimesAreInstants) {
  foreign("other");
  const Answer bad = merge("other", R"({"status":{"startTime":"yesterday"}})");
  EXPECT_TRUE(bad.is_status("BadRequest"));
  EXPECT_NE(bad.body.find("status.startTime: not a time"), std::string::npos);
  ASSERT_EQ(merge("other", R"({"status":{"startTime":"2026-03-01T12:00:00Z"}})").code, 200);
  // The same instant elsewhere is no change; a completion that reads earlier may be later.
  EXPECT_EQ(merge("other", R"({"status":{"startTime":"2026-03-01T14:00:00+02:00"}})").code, 200);
  const Answer done = merge(
      "other",
      R"({"status":{"completionTime":"2026-03-01T08:00:00-05:00","conditions":[)"
      R"({"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}})");
  ASSERT_EQ(done.code, 200) << done.body;
  EXPECT_EQ(status("other")["completionTime"], "2026-03-01T13:00:00Z");
}

TEST_F(P21Status, UnknownFieldsGoByFieldValidation) {
  foreign("other");
  const std::string body = R"({"status":{"active":1,"bogus":7}})";
  const Answer strict = merge("other", body, "?fieldValidation=Strict");
  EXPECT_TRUE(strict.is_status("BadRequest"));
  EXPECT_NE(strict.body.find("unknown field \\\"status.bogus\\\""), std::string::npos);
  ASSERT_EQ(merge("other", body, "?fieldValidation=Ignore").code, 200);
  EXPECT_EQ(status("other"), Json({{"active", 1}}));
}

TEST_F(P21Status, MetadataIsTakenAlong) {
  foreign("other");
  const Answer written =
      merge("other", R"({"metadata":{"annotations":{"note":"n"},"labels":{"queue":"fast"}},)"
                     R"("spec":{"parallelism":1},"status":{"active":1}})");
  ASSERT_EQ(written.code, 200) << written.body;
  const Json job = get(kJobs + "/other").json();
  EXPECT_EQ(job["metadata"]["annotations"]["note"], "n");
  EXPECT_EQ(job["metadata"]["labels"]["queue"], "fast");
  EXPECT_EQ(job["status"], Json({{"active", 1}}));
  EXPECT_EQ(job["spec"]["parallelism"], 2) << "the spec is not written here";
}

TEST_F(P21Status, AConditionOfTheUsersOwnIsKeptOnAJobOfOurs) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  const JobId id = view.job("default", "new")->job->id();
  feed.records(id, {core::JobStarted{kStart}});
  auto strategic = [&](const std::string& body) {
    return call(request("PATCH", kJobs + "/new/status",
                        "Content-Type: application/strategic-merge-patch+json\r\n", body));
  };
  const Answer set = strategic(R"({"status":{"conditions":[{"type":"Quota","status":"True"}]}})");
  ASSERT_EQ(set.code, 200) << set.body;
  feed.records(id, {core::JobSuspended{kStart, true}});
  const Json conditions = status("new")["conditions"];
  ASSERT_EQ(conditions.size(), 2u) << "it stays while the controller goes on";
  EXPECT_EQ(conditions[0]["type"], "Suspended");
  EXPECT_EQ(conditions[1], Json({{"type", "Quota"}, {"status", "True"}}));
  for (const char* type : {"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"}) {
    const Answer refused = strategic(std::string(R"({"status":{"conditions":[{"type":")") + type +
                                     R"(","status":"True"}]}})");
    EXPECT_TRUE(refused.is_status("Invalid"));
    EXPECT_EQ(refused.json()["details"]["causes"][0]["field"],
              std::string("status.conditions[") + type + "]");
  }
  EXPECT_TRUE(strategic(R"({"status":{"conditions":[{"type":"Suspended","status":"False"}]}})")
                  .is_status("Invalid"));
  EXPECT_TRUE(strategic(R"({"status":{"conditions":[{"type":"Quota","status":"Maybe"}]}})")
                  .is_status("Invalid"));
  ASSERT_EQ(strategic(R"({"status":{"conditions":[{"$patch":"delete","type":"Quota"}]}})").code,
            200);
  EXPECT_EQ(status("new")["conditions"].size(), 1u);
}

class P22Pods : public ServerTest {
 protected:
  // The first pod of a job of two, by name.
  std::string pod() {
    EXPECT_EQ(post(kJobs, kManifest).code, 201);
    const JobId id = view.job("default", "new")->job->id();
    feed.create(id, 0, 2);
    feed.bind(id, {0, 0});
    return get(kPods).json()["items"][0]["metadata"]["name"];
  }
  Answer merge(const std::string& path, const std::string& body) {
    return call(request("PATCH", kPods + "/" + path,
                        "Content-Type: application/merge-patch+json\r\n", body));
  }
};

TEST_F(P22Pods, WhatIsNotDoneIsNotAnswered200) {
  const std::string name = pod();
  const Answer phase = merge(name + "/status", R"({"status":{"phase":"Failed"}})");
  EXPECT_TRUE(phase.is_status("Invalid"));
  EXPECT_EQ(phase.json()["details"]["causes"][0]["field"], "status.phase");
  const Answer ready =
      call(request("PATCH", kPods + "/" + name + "/status",
                   "Content-Type: application/strategic-merge-patch+json\r\n",
                   R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})"));
  EXPECT_TRUE(ready.is_status("Invalid"));
  EXPECT_EQ(ready.json()["details"]["causes"][0]["field"], "status.conditions[Ready]");
  EXPECT_EQ(merge(name + "/status", "{}").code, 200);
  EXPECT_TRUE(merge(name, R"({"spec":{"nodeName":"x"}})").is_status("Invalid"));
  EXPECT_TRUE(merge(name, R"({"metadata":{"resourceVersion":"1","labels":{"a":"b"}}})")
                  .is_status("Conflict"));
}

TEST_F(P22Pods, LabelsAndAnnotationsArePatched) {
  const std::string name = pod();
  const Answer patched =
      merge(name, R"({"metadata":{"labels":{"queue":"fast"},"annotations":{"note":"n"}}})");
  ASSERT_EQ(patched.code, 200) << patched.body;
  const Json meta = get(kPods + "/" + name).json()["metadata"];
  EXPECT_EQ(meta["labels"]["queue"], "fast");
  EXPECT_EQ(meta["annotations"]["note"], "n");
  EXPECT_EQ(meta["labels"]["job-name"], "new") << "what it had it keeps";
  auto found = [this](const std::string& selector) {
    return get(kPods + "?labelSelector=" + selector).json()["items"].size();
  };
  EXPECT_EQ(found("queue%3Dfast"), 1u);
  EXPECT_EQ(found("queue!%3Dfast"), 1u);
  ASSERT_EQ(merge(name, R"({"metadata":{"labels":{"queue":null}}})").code, 200);
  EXPECT_EQ(found("queue"), 0u);
  const Answer own = merge(name, R"({"metadata":{"labels":{"job-name":"x"}}})");
  EXPECT_TRUE(own.is_status("Invalid"));
  EXPECT_EQ(own.json()["details"]["causes"][0]["field"], "metadata.labels[job-name]");
  EXPECT_TRUE(merge(name, R"({"metadata":{"labels":{"-":"x"}}})").is_status("Invalid"));
}

TEST_F(ServerTest, DeletesEvictsAndMarksPods) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  const JobId id = view.job("default", "new")->job->id();
  feed.create(id, 0, 2);
  feed.bind(id, {0, 0});
  feed.bind(id, {1, 0});
  std::vector<std::string> names;
  const Json pods = get(kPods).json();
  for (const Json& pod : pods["items"]) names.push_back(pod["metadata"]["name"]);
  ASSERT_EQ(names.size(), 2u);
  const Answer marked =
      call(request("PATCH", kPods + "/" + names[0] + "/status",
                   "Content-Type: application/strategic-merge-patch+json\r\n",
                   R"({"status":{"conditions":[{"type":"ConfigIssue","status":"True"}]}})"));
  ASSERT_EQ(marked.code, 200) << marked.body;
  ASSERT_EQ(view.pod("default", names[0])->pod->conditions.size(), 1u);
  EXPECT_EQ(view.pod("default", names[0])->pod->conditions[0].type, "ConfigIssue");
  EXPECT_TRUE(call(request("PATCH", kPods + "/" + names[0],
                           "Content-Type: application/merge-patch+json\r\n",
                           R"({"metadata":{"finalizers":null}})"))
                  .is_status("Invalid"));
  const Answer removed = call(request("DELETE", kPods + "/" + names[0] + "?gracePeriodSeconds=3"));
  ASSERT_EQ(removed.code, 200) << removed.body;
  EXPECT_EQ(backend.last_grace_ms, 3000);
  EXPECT_FALSE(backend.last_evict);
  EXPECT_EQ(removed.json()["metadata"]["deletionGracePeriodSeconds"], 3);
  const Answer evicted =
      post(kPods + "/" + names[1] + "/eviction", R"({"apiVersion":"policy/v1","kind":"Eviction"})");
  EXPECT_EQ(evicted.code, 201) << evicted.body;
  EXPECT_TRUE(backend.last_evict);
  EXPECT_EQ(call(request("DELETE", kPods + "/none")).code, 404);
}

TEST_F(ServerTest, CordonsTaintsAndDeletesNodes) {
  core::NodeInfo node{.id = 1, .name = "n1", .slots = 4};
  node.labels = {{"zone", "a"}};
  feed.node(node);
  auto patch = [&](const std::string& body) {
    return call(request("PATCH", "/api/v1/nodes/n1",
                        "Content-Type: application/strategic-merge-patch+json\r\n", body));
  };
  const Answer cordoned = patch(R"({"spec":{"unschedulable":true}})");
  ASSERT_EQ(cordoned.code, 200) << cordoned.body;
  EXPECT_EQ(cordoned.json()["spec"]["taints"][0]["key"], "node.kubernetes.io/unschedulable");
  ASSERT_EQ(patch(R"({"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}})").code, 200);
  ASSERT_EQ(patch(R"({"metadata":{"labels":{"mine":"1"}}})").code, 200);
  const core::NodeSpec& spec = view.node("n1")->node->spec;
  EXPECT_TRUE(spec.unschedulable);
  EXPECT_EQ(spec.taints, (std::vector<core::Taint>{{"k", "", "NoSchedule"}}));
  EXPECT_EQ(spec.labels, (core::StringMap{{"mine", "1"}})) << "the agent's labels stay its own";
  EXPECT_TRUE(patch(R"({"spec":{"taints":[{"key":"k","effect":"Never"}]}})").is_status("Invalid"));
  EXPECT_EQ(call(request("DELETE", "/api/v1/nodes/n1")).code, 200);
  EXPECT_EQ(get("/api/v1/nodes/n1").code, 404);
}

TEST_F(ServerTest, Watches) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  auto client = connect(request("GET", kPods + "?watch=true&timeoutSeconds=60"));
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  auto lines = [&] {
    std::vector<Json> found;
    const std::string body = parsed(client->raw).body;
    for (size_t at = 0, end; (end = body.find('\n', at)) != std::string::npos; at = end + 1)
      found.push_back(Json::parse(body.substr(at, end - at), nullptr, false));
    return found;
  };
  ASSERT_TRUE(until([&] { return lines().size() == 1; })) << client->raw;
  EXPECT_EQ(lines()[0]["type"], "ADDED");
  feed.bind(1, {0, 0});
  ASSERT_TRUE(until([&] { return lines().size() == 2; }));
  EXPECT_EQ(lines()[1]["type"], "MODIFIED");
  EXPECT_EQ(lines()[1]["object"]["metadata"]["resourceVersion"], "3");
  feed.records(1, {core::PodsStopping{kStart, {{{0, 0}, core::Counted::released}}}});
  feed.end(1, {0, 0}, 143, core::Counted::not_yet);
  ASSERT_TRUE(until([&] { return lines().size() == 3 || (lines().size() == 4); }));
  EXPECT_EQ(lines().back()["type"], "DELETED");
  EXPECT_EQ(lines().back()["object"]["status"]["phase"], "Failed");
}

TEST_F(ServerTest, WatchesEndByTimeAndByDrain) {
  const Answer a = get(kJobs + "?watch=true&timeoutSeconds=1");
  EXPECT_EQ(a.code, 200);
  EXPECT_EQ(a.body, "");
  auto client = connect(request("GET", kJobs + "?watch=true"));
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return client->raw.find("\r\n\r\n") != std::string::npos; }))
      << "the head comes at once";
  auto drained = server.drain().eagerlyEvaluate(nullptr);
  EXPECT_TRUE(until([&] { return client->ended; }));
}

TEST_F(ServerTest, WatchesTellTheirVersionAndRefuseOldOnes) {
  feed.admit(1, make_job("a", uid_of(1)));
  const std::string now = std::to_string(view.version());
  server.streams().watch_idle = 1 * kj::MILLISECONDS;
  auto client = connect(
      request("GET", kJobs + "?watch=true&allowWatchBookmarks=true&resourceVersion=" + now));
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until(
      [&] { return client->raw.find("\n", client->raw.find("BOOKMARK")) != std::string::npos; }));
  const std::string body = parsed(client->raw).body;
  EXPECT_EQ(Json::parse(body.substr(0, body.find('\n')))["object"]["metadata"]["resourceVersion"],
            now);
  EXPECT_TRUE(get(kJobs + "?watch=true&resourceVersion=77").is_status("Expired"));
  EXPECT_EQ(get(kJobs + "?watch=true&resourceVersion=x").code, 400);
}

TEST_F(ServerTest, AWatcherThatHasGoneIsNoticed) {
  server.streams().watch_idle = 1 * kj::MILLISECONDS;
  auto client = connect(request("GET", kJobs + "?watch=true"));
  client = nullptr;
  EXPECT_TRUE(until([&] { return connections_.isEmpty(); }));
}

TEST_F(ServerTest, Logs) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 2);
  feed.bind(1, {0, 0});
  feed.start(1, {0, 0});
  auto name = [&](uint32_t i) {
    Renderer renderer(view, [] { return kStart; });
    std::string text;
    renderer.object(text, *view.find({Kind::pod, 1, 0, {i, 0}}));
    return Json::parse(text)["metadata"]["name"].get<std::string>();
  };
  const std::string log = kPods + "/" + name(0) + "/log";
  EXPECT_EQ(get(log).body, "one\ntwo\nthree\noops\n");
  EXPECT_NE(get(log).head.find("text/plain"), std::string::npos);
  EXPECT_EQ(get(log + "?stream=Stdout").body, "one\ntwo\nthree\n");
  EXPECT_EQ(get(log + "?stream=Stderr&container=main").body, "oops\n");
  EXPECT_EQ(get(log + "?stream=Stdout&tailLines=1").body, "three\n");
  EXPECT_EQ(get(log + "?stream=Stdout&tailLines=0").body, "");
  EXPECT_EQ(get(log + "?stream=Stdout&limitBytes=5").body, "one\nt");
  EXPECT_EQ(get(log + "?container=other").code, 400);
  EXPECT_EQ(get(log + "?previous=true").code, 400);
  EXPECT_EQ(get(log + "?tailLines=x").code, 400);
  EXPECT_EQ(get(kPods + "/" + name(1) + "/log").code, 400) << "it has not started";
  EXPECT_EQ(get(kPods + "/none/log").code, 404);
  backend.running = true;
  backend.grow_at = backend.reads + 6;
  EXPECT_EQ(get(log + "?follow=true&stream=Stdout").body, "one\ntwo\nthree\ngrown\n");
  backend.refuse = Error{Errc::unavailable, "node n1 is not connected", {}};
  EXPECT_TRUE(get(log).is_status("ServiceUnavailable"));
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

const std::string kOurs = "/apis/muster.dev/v1/namespaces/default/jobs/";

TEST_F(ServerTest, TellsTheHistoryOfAttempts) {
  feed.admit(1, make_job("a", uid_of(1)));
  for (uint32_t i = 0; i < 3; ++i) {
    core::Pod pod;
    pod.key = {i, i == 2 ? 1u : 0u};
    pod.node = 1;
    pod.created_ms = pod.bound_ms = pod.started_ms = kStart;
    pod.ended = true;
    pod.end = {.exit_code = i == 0 ? 0 : 137, .signal = i == 0 ? 0 : 9, .ended_ms = kStart + 1500};
    pod.counted = i == 0 ? core::Counted::succeeded : core::Counted::failed;
    backend.closed.push_back(pod);
  }
  Json list = get(kOurs + "a/attempts").json();
  ASSERT_EQ(list["items"].size(), 3u);
  EXPECT_EQ(list["kind"], "AttemptList");
  const Json& last = list["items"][2];
  EXPECT_EQ(last["index"], 2);
  EXPECT_EQ(last["attempt"], 1);
  EXPECT_EQ(last["exitCode"], 137);
  EXPECT_EQ(last["signal"], 9);
  EXPECT_EQ(last["counted"], "failed");
  EXPECT_EQ(last["ended"], "2023-11-14T22:13:21.500Z");
  EXPECT_EQ(get(kOurs + "a/attempts?failed=true").json()["items"].size(), 2u);
  EXPECT_EQ(get(kOurs + "a/attempts?index=0-1").json()["items"].size(), 2u);
  list = get(kOurs + "a/attempts?limit=2").json();
  EXPECT_EQ(list["items"].size(), 2u);
  const std::string token = list["metadata"]["continue"].get<std::string>();
  list = get(kOurs + "a/attempts?limit=2&continue=" + token).json();
  EXPECT_EQ(list["items"].size(), 1u);
  EXPECT_FALSE(list["metadata"].contains("continue"));
  EXPECT_EQ(get(kOurs + "a/attempts?index=3-1").code, 400);
  EXPECT_EQ(get(kOurs + "a/attempts?limit=0").code, 400);
  EXPECT_EQ(get(kOurs + "a/attempts?continue=x").code, 400);
  EXPECT_EQ(get(kOurs + "none/attempts").code, 404);
  EXPECT_EQ(post(kOurs + "a/attempts", "{}").code, 405);
  EXPECT_EQ(get(kOurs + "a/log?index=2&attempt=1&stream=Stdout").body, "one\ntwo\nthree\n")
      << "though its Pod is gone";
  EXPECT_EQ(get(kOurs + "a/log?index=2&attempt=5").code, 404);
  EXPECT_EQ(get(kOurs + "a/log?index=2").code, 400);
}

TEST_F(ServerTest, SaysWhatAJobWaitsFor) {
  feed.admit(1, make_job("a", uid_of(1), 3, R"(,"backoffLimitPerIndex":1)"));
  auto why = [&](const std::string& query = "") { return get(kOurs + "a/why" + query).json(); };
  EXPECT_EQ(why()["state"], "Waiting");
  EXPECT_EQ(why("?index=1")["state"], "Waiting");
  feed.create(1, 0, 3);
  EXPECT_EQ(why()["state"], "Pending");
  EXPECT_EQ(why("?index=1")["summary"],
            "attempt 0 waits for a place: there is no node (start an agent)");
  auto node = make_node(1, "n1", core::NodeInfo::Health::ready);
  node.spec.unschedulable = true;
  feed.node(node);
  EXPECT_EQ(why("?index=1")["details"][0], "1 node: cordoned (n1)");
  feed.bind(1, {1, 0});
  feed.start(1, {1, 0});
  EXPECT_EQ(why()["state"], "Running");
  EXPECT_EQ(why("?index=1")["state"], "Running");
  feed.records(1, {core::PodsEnded{
                      kStart + 3000, {Feeder::end_of({1, 0}, 3, core::Counted::not_yet)}, 0, 0}});
  const Json backoff = why("?index=1");
  EXPECT_EQ(backoff["state"], "Backoff") << backoff;
  EXPECT_EQ(backoff["until"], "2023-11-14T22:13:33.000Z");
  EXPECT_EQ(backoff["details"][0], "attempt 0: exit 3; counted once its replacement exists");
  feed.bind(1, {0, 0});
  feed.end(1, {0, 0}, 0);
  EXPECT_EQ(why("?index=0")["state"], "Succeeded");
  EXPECT_EQ(get(kOurs + "a/why?index=3").code, 400);
  EXPECT_EQ(get(kOurs + "a/why?index=x").code, 400);
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
