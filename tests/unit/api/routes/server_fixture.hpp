// The HTTP server for tests: over a pipe or loopback, with a Backend that commits to the View
// immediately.
#pragma once

#include "api/routes/page.hpp"
#include "api/routes/routes.hpp"
#include "api/routes/server.hpp"
#include "api/view/query/list_page.hpp"
#include "core/pod_name.hpp"
#include "tests/unit/api/view/view_fixture.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <unistd.h>

namespace muster::api::testing {

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
                                  job->spec.completions, job}});
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
      feed_.records(id, {core::JobSpecChanged{kStart, write.object->meta.generation,
                                              write.object->spec.parallelism.value_or(1),
                                              write.object->spec.completions, write.object}});
    done(Nothing{});
  }
  void delete_pods(JobId job, std::vector<PodKey> pods, bool evict, std::optional<Millis> grace_ms,
                   std::function<void(Status)> done) override {
    last_evict = evict;
    last_grace_ms = grace_ms;
    core::PodsStopping stopping{.at_ms = kStart, .by_job = false};
    for (PodKey pod : pods) stopping.pods.push_back({pod, core::Counted::failed, false, grace_ms});
    feed_.records(job, {stopping});
    done(Nothing{});
  }
  void hold_job(JobId job, core::HoldChange change, std::function<void(Status)> done) override {
    if (change.hold)
      feed_.records(job, {core::JobHeld{kStart, change.by, change.by_operator, change.reason}});
    else
      feed_.records(job, {core::JobReleased{kStart, change.by}});
    done(Nothing{});
  }
  void cancel(JobId job, core::Cancellation asked, std::function<void(Status)> done) override {
    if (asked.indexes)
      feed_.records(job, {core::IndexesCancelled{kStart, asked.by, *asked.indexes}});
    else
      feed_.records(job, {core::JobCancelled{kStart, asked.by},
                          core::FinishDecided{kStart, false, core::ConditionReason::cancelled,
                                              "Cancelled by " + asked.by}});
    done(Nothing{});
  }
  void override_job(JobId job, core::OverridesChange change,
                    std::function<void(Status)> done) override {
    feed_.records(job, {core::OverridesSet{kStart, change.next, change.by}});
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
    ++node_changes;
    core::NodeInfo node = *view_.node(name)->node;
    if (node.spec != seen) return done(Error{Errc::conflict, "", {}});
    node.spec = std::move(spec);
    feed_.node(std::move(node));
    done(Nothing{});
  }
  void end_unknown_pods(std::string name, std::function<void(Status)> done) override {
    ended_unknown.push_back(std::move(name));
    done(Nothing{});
  }
  std::vector<std::string> ended_unknown;  // nodes
  void delete_node(std::string name, std::function<void(Status)> done) override {
    core::NodeInfo node = *view_.node(name)->node;
    node.gone = node.deleted = true;
    feed_.node(std::move(node));
    done(Nothing{});
  }
  void write_kept(core::KeptPtr seen, core::KeptPtr next, core::KeptQuota,
                  std::function<void(Status)> done) override {
    if (refuse) return done(*refuse);
    const core::Kept& one = seen ? *seen : *next;
    const auto shown = view_.kept(one.kind, one.ns, one.name);
    if (!seen && shown) return done(Error{Errc::exists, "", {}});
    if (seen && !shown) return done(Error{Errc::not_found, "", {}});
    if (seen && shown->kept->kept->version != seen->version)
      return done(Error{Errc::conflict, "", {}});
    feed_.kept(seen, next);
    done(Nothing{});
  }
  bool sends_mail() override { return mail_open; }
  void send_mail(std::vector<std::string> to, std::string message,
                 std::function<void(Status)> done) override {
    mails.emplace_back(std::move(to), std::move(message));
    done(mail_refuse ? Status(*mail_refuse) : Status(Nothing{}));
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
    if (request.times)
      chunk.marks = {{chunk.offset + static_cast<int64_t>(chunk.data.size()), log_at}};
    run = request.run;
    if (reads == grow_at) {
      out += "grown\n";
      running = false;
    }
    done(std::move(chunk));
  }

  void find_log(LogSearch search, std::function<void(Result<LogBegins>)> done) override {
    searched = std::move(search);
    done(begins);
  }

  Result<core::AttemptPage> read_attempts(const AttemptRequest& request) override {
    core::AttemptPage page;
    for (size_t i = request.from.sequence; i < closed.size(); ++i) {
      if (page.attempts.size() == request.limit) {
        page.next = core::AttemptCursor{i, 0};
        break;
      }
      if (request.wanted(closed[i])) {
        page.attempts.push_back(closed[i]);
        page.closed_ms.push_back(closed[i].end.ended_at + 100);
      }
      page.end = {i + 1, 0};
    }
    return page;
  }

  Status scan_history(JobId after,
                      const std::function<bool(const core::HistoryEntry&)>& visit) override {
    if (refuse) return *refuse;
    for (auto it = past.upper_bound(after); it != past.end(); ++it)
      if (!visit(it->second)) break;
    return Nothing{};
  }
  std::map<JobId, core::HistoryEntry> past;  // entries of jobs that have ended or are gone

  std::optional<MungeAudience> munge_audience() override {
    return MungeAudience{"0123456789abcdef", "fedcba9876543210"};
  }
  void judge_munge(std::string credential, const std::string& from,
                   std::function<void(Result<uint32_t>)> done) override {
    munge_asked.push_back(credential + " from " + from);
    if (munge_says) return done(*munge_says);
    munge_held.push_back(std::move(done));
  }
  void make_token(TokenWanted wanted, std::function<void(Result<TokenMade>)> done) override {
    tokens_made.push_back(wanted);
    if (refuse) return done(*refuse);
    core::Token token{.id = "0123456789abcdef",
                      .kind = wanted.kind,
                      .subject = wanted.subject,
                      .uid = wanted.uid,
                      .by = wanted.by,
                      .until_ms = wanted.life_ms};
    done(TokenMade{std::move(token), "text"});
  }
  void lead_figures(std::function<void(std::optional<core::standby::LeadFigures>)> done) override {
    done(lead);
  }
  void change_lead(core::standby::LeadChange change, std::string member,
                   std::function<void(Status)> done) override {
    if (!lead) return done(is_alone());
    lead_changes.emplace_back(change, std::move(member));
    done(refuse ? Status(*refuse) : Status(Nothing{}));
  }
  Links links() override { return {"", "", "", "127.0.0.1:7117"}; }
  std::optional<core::standby::LeadFigures> lead;  // nullopt: it is alone
  std::vector<std::pair<core::standby::LeadChange, std::string>> lead_changes;
  // Commands in pods: remembers the one that was started last.
  void exec(ExecRequest request, std::function<void(Result<ExecStarted>)> done) override {
    if (refuse) return done(*refuse);
    if (session && session->session.id == request.session.id && session->session != request.session)
      return done(Error{Errc::not_found, "there is no such session", {}});
    session = std::move(request);
    done(ExecStarted{});
  }
  void read_exec(ExecRead request, std::function<void(Result<ExecOutput>)> done) override {
    if (hold_exec) return exec_held.push_back(std::move(done));
    if (!session || session->session != request.session)
      return done(Error{Errc::not_found, "there is no such session", {}});
    session_output.out = out.substr(std::min(request.out, uint64_t{out.size()}));
    session_output.err = err.substr(std::min(request.err, uint64_t{err.size()}));
    done(session_output);
  }
  void write_exec(ExecWrite request, std::function<void(Result<ExecTaken>)> done) override {
    if (!session || session->session != request.session)
      return done(Error{Errc::not_found, "there is no such session", {}});
    written = std::move(request);
    done(ExecTaken{written->offset + written->data.size(), written->eof});
  }
  void end_exec(ExecSession of, std::function<void(Status)> done) override {
    if (!session || session->session != of)
      return done(Error{Errc::not_found, "there is no such session", {}});
    session.reset();
    done(Nothing{});
  }
  std::optional<core::Token> token_of(std::string_view bearer) override {
    ++tokens_asked;
    if (bearer != valid_token) return std::nullopt;
    return core::Token{.kind = core::TokenKind::user, .subject = "alice", .uid = token_uid};
  }
  std::string valid_token;  // empty: none
  uint32_t token_uid = 0;
  int tokens_asked = 0;
  std::optional<ExecRequest> session;
  ExecOutput session_output;
  std::deque<std::function<void(Result<ExecOutput>)>> exec_held;  // pending reads, with `hold_exec`
  bool hold_exec = false;
  std::optional<ExecWrite> written;

  std::optional<Result<uint32_t>> munge_says;  // nullopt: it does not answer
  std::vector<std::string> munge_asked;
  std::vector<std::function<void(Result<uint32_t>)>> munge_held;
  std::vector<TokenWanted> tokens_made;

  // Work for another thread; with `hold_computing` the test runs it.
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
  int creates = 0, reads = 0, grow_at = -1, updates = 0, node_changes = 0;
  bool mail_open = false;
  std::vector<std::pair<std::vector<std::string>, std::string>> mails;  // asked for
  std::optional<Error> mail_refuse;
  int32_t run = -2;  // of the last read of a log
  Millis log_at = kStart;
  LogSearch searched;
  LogBegins begins;
  Propagation last_propagation = Propagation::background;
  bool last_evict = false;
  std::optional<Millis> last_grace_ms;
  std::function<void(JobId)> before_update;  // called once, between read and write

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

inline std::string dechunked(std::string_view raw) {
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

inline Answer parsed(const std::string& raw) {
  Answer answer;
  const size_t end = raw.find("\r\n\r\n");
  if (end == std::string::npos) return answer;
  answer.head = raw.substr(0, end);
  answer.code = std::stoi(answer.head.substr(9, 3));
  answer.body = raw.substr(end + 4);
  if (answer.head.find("chunked") != std::string::npos) answer.body = dechunked(answer.body);
  return answer;
}

// Whether the answer is complete.
inline bool whole(const std::string& raw) {
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

// A client that reads while the loop runs.
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

constexpr const char* kManifest =
    R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"new"},"spec":{"completionMode":"Indexed","completions":2,)"
    R"("parallelism":2,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","command":["true"]}]}}}})";
const std::string kJobs = "/apis/batch/v1/namespaces/default/jobs";
const std::string kPods = "/api/v1/namespaces/default/pods";

// Everything that depends on the event loop. KJ's destructors may throw and a fixture's may not, so
// the fixture holds this by pointer.
struct Rig {
  // `changes_max`: of the View.
  Rig(const std::function<void(ServerOptions&)>& adapt, size_t changes_max)
      : view(changes_max), server(io.provider->getTimer(), view, backend, options(adapt)) {
    server.set_ready(true, "");
    server.streams().log_gap = 1 * kj::MILLISECONDS;
    server.streams().watch_gap = 1 * kj::MILLISECONDS;
  }
  ServerOptions options(const std::function<void(ServerOptions&)>& adapt) {
    ServerOptions o;
    o.version = "1.2.3";
    o.random = [this] { return random += 0x9e3779b97f4a7c15u; };
    o.now = [] { return kStart; };
    o.connections_max = 8;
    if (adapt) adapt(o);
    return o;
  }
  struct Quiet final : kj::TaskSet::ErrorHandler {
    void taskFailed(kj::Exception&&) override {}  // a connection closed by the test
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

// Outlives the server, which audits the requests that it drops when it is destroyed.
struct AuditLines {
  std::vector<std::string> audited;
};

class ServerTest : public ::testing::Test {
 protected:
  explicit ServerTest(const std::function<void(ServerOptions&)>& adapt = {},
                      size_t changes_max = 1u << 18)
      : rig_(new Rig(adapt, changes_max)) {}
  ~ServerTest() override { delete rig_; }

  kj::Own<Client> connect(const std::string& request) {
    auto pipe = io.provider->newTwoWayPipe();
    connections_.add(server.serve_connection(kj::mv(pipe.ends[0]), uid));
    return send(kj::mv(pipe.ends[1]), request);
  }

  // Serves clients of other machines, without the encryption.
  void serve_remote() {
    auto port = io.provider->getNetwork().parseAddress("127.0.0.1", 0).wait(io.waitScope)->listen();
    remote_port_ = port->getPort();
    const auto plain = [](kj::Own<kj::AsyncIoStream> stream) {
      return kj::Promise<kj::Own<kj::AsyncIoStream>>(kj::mv(stream));
    };
    connections_.add(server.serve_tls(kj::mv(port), plain));
  }
  kj::Own<Client> connect_remote(const std::string& request) {
    auto address =
        io.provider->getNetwork().parseAddress("127.0.0.1", remote_port_).wait(io.waitScope);
    return send(address->connect().wait(io.waitScope), request);
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
  // Of the pod of index `index` of job 1.
  std::string pod_name_of(uint32_t index) const {
    const core::JobMeta meta = view.find({Kind::pod, 1, 0, {index, 0}})->job->object().meta;
    return core::pod_name(meta.name, meta.uid, true, {index, 0});
  }
  Answer get(const std::string& path, const std::string& headers = "") {
    return call(request("GET", path, headers));
  }
  Answer post(const std::string& path, const std::string& body,
              const std::string& type = "application/json") {
    return call(request("POST", path, "Content-Type: " + type + "\r\n", body));
  }

  // Runs the loop until `test` is true, for at most a minute: only what hangs takes that long.
  template <class F>
  bool until(F test) {
    const auto deadline = io.provider->getTimer().now() + 60 * kj::SECONDS;
    while (!test()) {
      if (io.provider->getTimer().now() > deadline) return false;
      io.provider->getTimer().afterDelay(1 * kj::MILLISECONDS).wait(io.waitScope);
    }
    return true;
  }

  std::optional<uid_t> uid;  // of the client, where users have roles
  Rig* rig_;
  kj::AsyncIoContext& io = rig_->io;
  View& view = rig_->view;
  Feeder& feed = rig_->feed;
  FakeBackend& backend = rig_->backend;
  Server& server = rig_->server;
  std::deque<std::string>& sent_ = rig_->sent;
  kj::TaskSet& connections_ = rig_->connections;

 private:
  kj::Own<Client> send(kj::Own<kj::AsyncIoStream> stream, const std::string& request) {
    auto client = kj::heap<Client>();
    client->stream = kj::mv(stream);
    sent_.push_back(request);
    connections_.add(client->stream->write(sent_.back().data(), sent_.back().size()));
    return client;
  }
  unsigned remote_port_ = 0;
};

}  // namespace muster::api::testing
