#include "coordinator/api_thread.hpp"

#include "api/access/audit.hpp"
#include "api/http/unix_port.hpp"
#include "api/kube/objects/kept_object.hpp"
#include "api/request/backend.hpp"
#include "api/routes/server.hpp"
#include "api/view/model/view.hpp"
#include "api/view/render/metrics.hpp"
#include "base/lines/line_log.hpp"
#include "base/log.hpp"
#include "base/network/address_list.hpp"
#include "coordinator/desks/mail_desk.hpp"
#include "coordinator/last_backup.hpp"
#include "coordinator/threads/address.hpp"
#include "coordinator/threads/descriptors.hpp"
#include "coordinator/threads/inbox.hpp"
#include "coordinator/threads/listening.hpp"
#include "coordinator/threads/random.hpp"
#include "coordinator/threads/replies.hpp"
#include "coordinator/threads/workshop.hpp"
#include "storage/backup.hpp"
#include "storage/rows/attempts.hpp"
#include "storage/rows/history.hpp"
#include "storage/verify.hpp"
#include "trust/tls/link.hpp"

#include <caf/send.hpp>
#include <kj/async-io.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace muster::coordinator {

namespace {

// Host names that clients may use for the API: those the user gives, the host of its own address
// and, with --insecure, any IP address and this machine's name.
api::HostRules host_rules(const ApiOptions& options) {
  api::HostRules rules;
  auto add = [&rules](std::string name) {
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    rules.names.insert(std::move(name));
  };
  for (const std::string& name : options.hosts) add(name);
  if (!options.address.starts_with("unix:")) add(address_host(options.address));
  if (!options.insecure) return rules;
  rules.any_address = true;
  if (std::string name = own_host_name(); !name.empty()) add(std::move(name));
  return rules;
}

constexpr auto kLeadLook = 1 * kj::SECONDS;
constexpr auto kLastRequests = 2 * kj::SECONDS;
constexpr size_t kAuditBytesMax = 64u << 20, kAuditFilesMax = 8;

bool ends_a_job(const core::Committed& batch) {
  return std::any_of(batch.jobs.begin(), batch.jobs.end(), [](const auto& job) {
    return std::any_of(job->records.begin(), job->records.end(), [](const core::Record& record) {
      return std::holds_alternative<core::JobFinished>(record);
    });
  });
}

// A connection that breaks is nothing to report.
class PassedFailures final : public kj::TaskSet::ErrorHandler {
  void taskFailed(kj::Exception&&) override {}
};

class Thread final : public ApiThread, public api::Backend {
 public:
  explicit Thread(ApiOptions options)
      : options_(std::move(options)),
        mail_(options_.mail_program),
        metrics_(options_.version, wall_now, site_facts()) {
    view_.observe(&metrics_);
    view_.load_with(options_.load_job);
    view_.brief_with(options_.load_brief);
  }
  ~Thread() override { stop(); }

  Status start() {
    if (options_.roles.any()) {
      auto audit = LineLog::open(options_.audit_path, kAuditBytesMax, kAuditFilesMax);
      if (!audit.ok()) return audit.error();
      audit_ = std::move(*audit);
    }
    std::promise<Status> bound;
    auto result = bound.get_future();
    thread_ = std::thread([this, bound = std::move(bound)]() mutable { run(bound); });
    Status status = result.get();
    if (!status) thread_.join();
    return status;
  }

  std::string address() const override { return address_; }
  std::string tls_address() const override { return tls_address_; }
  std::string metrics_address() const override { return metrics_address_; }

  void load(std::vector<core::Job> jobs, std::vector<core::JobSummary> unloaded,
            std::vector<storage::DamagedJob> damaged, uint64_t commit,
            std::vector<core::NodeInfo> nodes, std::vector<core::Kept> kept) override {
    post([this, kept = std::move(kept), jobs = std::move(jobs), unloaded = std::move(unloaded),
          damaged = std::move(damaged), commit, nodes = std::move(nodes)]() mutable {
      for (core::Job& job : jobs) view_.add(std::move(job));
      for (const core::JobSummary& job : unloaded) view_.add_unloaded(job);
      for (storage::DamagedJob& job : damaged)
        view_.add_damaged(job.id, std::move(job.object), job.why, wall_now());
      for (core::Kept& one : kept) view_.add_kept(std::move(one));
      view_.start_at(commit, std::move(nodes));
      view_.provide([pem = links().authority, now_ms = wall_now()](const std::string& ns) {
        return api::root_ca(ns, pem, now_ms);
      });
    });
  }
  // Nobody waits for single pods as for the end of a job, and many commits are shown more cheaply
  // at once.
  void show(core::Committed batch) override {
    const bool ends = ends_a_job(batch);
    door_->post(
        [this, ends, batch = std::move(batch)] {
          view_.commit(batch);
          if (options_.job_finished && ends) options_.job_finished();
        },
        ends ? Inbox::Wake::at_once : Inbox::Wake::may_wait);
  }
  void show_health(const core::NodeHealth& health) override {
    post([this, health] { view_.health(health); });
  }
  void show_shares(const core::cluster::ShowShares& shares) override {
    post([this, shares] { view_.set_shares(shares); });
  }
  void show_unreached(JobId job, std::optional<std::vector<core::Unreached>> pairs) override {
    post([this, job, pairs = std::move(pairs)]() mutable {
      view_.set_unreached(job, std::move(pairs));
    });
  }
  void waits(std::string reason) override {
    post([this, reason = std::move(reason)] { server_->set_ready(false, reason); });
  }
  void ready(std::string cluster_id, actors::registry_actor registry, actors::cluster_actor cluster,
             actors::kept_actor kept, RpcServer& rpc) override {
    post([this, cluster_id = std::move(cluster_id), registry, cluster, kept, &rpc]() mutable {
      cluster_id_ = std::move(cluster_id);
      registry_ = registry;
      cluster_ = cluster;
      kept_ = kept;
      rpc_ = &rpc;
      server_->set_ready(true, "");
      (*ready_)->fulfill();
    });
  }

  void pod_configs(PodId pod, NodeId node,
                   std::function<void(Result<api::PodConfigs>)> done) override {
    post([this, pod, node, done = std::move(done)] {
      const auto shown = view_.find({api::Kind::pod, pod.job, 0, pod.key()});
      if (!shown || shown->pod->node != node || shown->pod->ended)
        return done(Error{Errc::not_found, "the pod is not on this node", {}});
      // As it was launched: with its steps.
      done(api::pod_configs(view_, core::launched_object(*shown->job, shown->pod->steps)));
    });
  }

  void written(double seconds, uint64_t bytes) override { metrics_.committed(seconds, bytes); }

  void reload(api::RoleGroups roles, api::QuotaLimits quotas) override {
    post([this, roles = std::move(roles), quotas] { server_->reload(roles, quotas); });
  }

  void call(std::function<void()> f) override { post(std::move(f)); }

  void serve_passed(Fd socket, api::PassedPeer from) override {
    post(
        [this, socket = std::make_shared<Fd>(std::move(socket)), from = std::move(from)]() mutable {
          auto stream = provider_->wrapSocketFd(socket->release(),
                                                kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP |
                                                    kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC |
                                                    kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK);
          passed_->add(server_->serve_passed(kj::mv(stream), std::move(from)));
        });
  }

  void synced(bool indexed, core::SyncAction action, double seconds) override {
    constexpr const char* kNames[] = {"tracking", "reconciling", "pods_created", "pods_deleted"};
    metrics_.synced(indexed, kNames[static_cast<int>(action)], seconds);
  }

  std::string socket() const override { return socket_; }

  void stop() override {
    if (!thread_.joinable()) return;
    post([this] { (*stopped_)->fulfill(); });
    thread_.join();
    if (reader_.joinable()) reader_.join();
    workshop_.stop();
    mail_.stop();
  }

  // ---- api::Backend, on the API thread

  void create_job(core::JobObjectPtr job, std::function<void(Status)> done) override {
    caf::anon_send(registry_, actors::CreateJob{std::move(job), back(std::move(done))});
  }

  void delete_job(std::string ns, std::string name, std::string uid, api::Propagation propagation,
                  std::function<void(Status)> done) override {
    caf::anon_send(registry_, actors::DeleteJob{std::move(ns), std::move(name), std::move(uid),
                                                propagation != api::Propagation::foreground,
                                                propagation == api::Propagation::orphan,
                                                back(std::move(done))});
  }

  void update_job(core::JobObjectPtr seen, core::JobObjectPtr job,
                  std::function<void(Status)> done) override {
    const core::JobMeta meta = seen->meta;
    ask(meta, core::OwnerUpdate{0, std::move(seen), std::move(job)}, std::move(done));
  }

  void write_status(core::StatusWrite write, std::function<void(Status)> done) override {
    const core::JobMeta meta = write.seen->meta;
    ask(meta, std::move(write), std::move(done));
  }

  void delete_pods(JobId job, std::vector<PodKey> pods, bool evict, std::optional<Millis> grace_ms,
                   std::function<void(Status)> done) override {
    auto why = evict ? core::PodsDeletion::Why::eviction : core::PodsDeletion::Why::owner;
    ask(job, core::PodsDeletion{0, std::move(pods), why, grace_ms}, std::move(done));
  }

  void hold_job(JobId job, core::HoldChange change, std::function<void(Status)> done) override {
    ask(job, std::move(change), std::move(done));
  }

  void cancel(JobId job, core::Cancellation cancellation,
              std::function<void(Status)> done) override {
    ask(job, std::move(cancellation), std::move(done));
  }

  void override_job(JobId job, core::OverridesChange change,
                    std::function<void(Status)> done) override {
    ask(job, std::move(change), std::move(done));
  }

  void write_pod(JobId job, core::PodConditionsWrite write,
                 std::function<void(Status)> done) override {
    ask(job, std::move(write), std::move(done));
  }

  void change_node(std::string name, core::NodeSpec seen, core::NodeSpec spec,
                   std::function<void(Status)> done) override {
    caf::anon_send(cluster_, actors::ChangeNode{std::move(name), std::move(seen), std::move(spec),
                                                back(std::move(done))});
  }

  void delete_node(std::string name, std::function<void(Status)> done) override {
    caf::anon_send(cluster_, actors::DeleteNode{std::move(name), back(std::move(done))});
  }
  void end_unknown_pods(std::string name, std::function<void(Status)> done) override {
    caf::anon_send(cluster_, actors::EndUnknownPods{std::move(name), back(std::move(done))});
  }

  void set_queues(const core::QueueSet& queues) override {
    caf::anon_send(cluster_, actors::QueuesChanged{queues.queues, queues.classes});
  }

  void write_kept(core::KeptPtr seen, core::KeptPtr next, core::KeptQuota quota,
                  std::function<void(Status)> done) override {
    caf::anon_send(
        kept_, actors::WriteKept{std::move(seen), std::move(next), back(std::move(done)), quota});
  }

  void exec(api::ExecRequest request, std::function<void(Result<api::ExecStarted>)> done) override {
    rpc_->exec(std::move(request), replies_.across(std::move(done)));
  }
  void read_exec(api::ExecRead request,
                 std::function<void(Result<api::ExecOutput>)> done) override {
    rpc_->read_exec(std::move(request), replies_.across(std::move(done)));
  }
  void write_exec(api::ExecWrite request,
                  std::function<void(Result<api::ExecTaken>)> done) override {
    rpc_->write_exec(std::move(request), replies_.across(std::move(done)));
  }
  void end_exec(api::ExecSession session, std::function<void(Status)> done) override {
    rpc_->end_exec(std::move(session), replies_.across(std::move(done)));
  }
  void read_log(api::LogRequest request, std::function<void(Result<api::LogChunk>)> done) override {
    rpc_->read_log(std::move(request), replies_.across(std::move(done)));
  }
  void find_log(api::LogSearch search, std::function<void(Result<api::LogBegins>)> done) override {
    rpc_->find_log(std::move(search), replies_.across(std::move(done)));
  }

  Result<core::AttemptPage> read_attempts(const api::AttemptRequest& request) override {
    return storage::read_attempts(options_.journal, request.job, request.from, request.limit,
                                  request.wanted);
  }

  Status scan_history(JobId after,
                      const std::function<bool(const core::HistoryEntry&)>& visit) override {
    return options_.history ? storage::scan_history(options_.journal, after, visit) : no_history();
  }

  void compute(std::function<void()> work, std::function<void()> done) override {
    workshop_.give([work = std::move(work), tell = replies_.across(std::function<void(Nothing)>(
                                                [done = std::move(done)](Nothing) { done(); }))] {
      work();
      tell(Nothing{});
    });
  }

  void back_up(std::string dir, std::function<void(Result<core::BackupInfo>)> done) override {
    read_all<core::BackupInfo>(std::move(done), [this, dir = std::move(dir)] {
      auto made = storage::make_backup(options_.journal, dir, options_.data_dir);
      if (!made.ok()) return made;
      log::info("backup of commit {} in {}", made->commit, dir);
      metrics_.backed_up(wall_now());
      if (const Status noted = note_backup(options_.data_dir, wall_now()); !noted)
        log::warn("cannot note the time of the backup: {}", noted.error().message);
      return made;
    });
  }

  bool sends_mail() override { return mail_.open(); }

  void send_mail(std::vector<std::string> to, std::string message,
                 std::function<void(Status)> done) override {
    mail_.send(std::move(to), std::move(message), replies_.across(std::move(done)));
  }

  void verify(std::function<void(Result<core::Verified>)> done) override {
    read_all<core::Verified>(std::move(done), [this]() -> Result<core::Verified> {
      auto verified = storage::verify(options_.journal, options_.load_object);
      for (const std::string& mismatch : verified.mismatches) log::error("verify: {}", mismatch);
      return verified;
    });
  }

  void make_token(api::TokenWanted wanted,
                  std::function<void(Result<api::TokenMade>)> done) override {
    if (options_.trust == nullptr && wanted.kind != core::TokenKind::coordinator)
      return done(api::no_links());
    if (const std::string why = useless(wanted.kind); !why.empty())
      return done(
          invalid("it would not be accepted anywhere: the coordinator runs without " + why));
    auto tell = replies_.across(std::move(done));
    options_.trust->make({wanted.kind, std::move(wanted.subject), wanted.uid, std::move(wanted.by),
                          wanted.life_ms, std::move(wanted.claims), wanted.uses_max},
                         [tell](Result<TrustStore::Made> made) {
                           if (!made.ok()) return tell(made.error());
                           tell(api::TokenMade{std::move(made->token), std::move(made->text)});
                         });
  }
  std::vector<core::Token> tokens() override {
    return options_.trust ? options_.trust->list() : std::vector<core::Token>();
  }
  std::optional<core::Token> token(const std::string& id) override {
    return options_.trust ? options_.trust->find(id) : std::nullopt;
  }
  void revoke_token(const std::string& id, std::function<void(Status)> done) override {
    if (options_.trust == nullptr) return done(api::no_links());
    options_.trust->revoke(id, back(std::move(done)));
  }
  void revoke_node(const std::string& node, std::function<void(Status)> done) override {
    if (options_.trust == nullptr) return done(api::no_links());
    options_.trust->revoke_node(node, back(std::move(done)));
  }
  std::optional<core::NodeClaims> claims_of(const std::string& node) override {
    return options_.trust ? options_.trust->claims_of(node) : std::nullopt;
  }
  void allow_claims(const std::string& node, core::NodeClaims claims,
                    std::function<void(Status)> done) override {
    if (options_.trust == nullptr) return done(api::no_links());
    options_.trust->allow(node, std::move(claims), back(std::move(done)));
  }
  std::string cluster() override { return cluster_id_; }
  api::Links links() override {
    if (options_.trust == nullptr) return {"", "", "", address_};
    return {options_.trust->authority(), tls_address_, rpc_ ? rpc_->tls_address() : "", address_};
  }
  void lead_figures(std::function<void(std::optional<LeadFigures>)> done) override {
    if (options_.lead == nullptr) return done(std::nullopt);
    options_.lead->figures(replies_.across<LeadFigures>(
        [done = std::move(done)](LeadFigures figures) { done(std::move(figures)); }));
  }
  void change_lead(LeadChange change, std::string member,
                   std::function<void(Status)> done) override {
    if (options_.lead == nullptr) return done(is_alone());
    options_.lead->change(change, std::move(member), back(std::move(done)));
  }
  std::optional<core::Token> token_of(std::string_view bearer) override {
    return options_.trust ? options_.trust->token_of(bearer) : std::nullopt;
  }
  std::optional<api::MungeAudience> munge_audience() override {
    const auto audience = options_.munge ? options_.munge->audience() : std::nullopt;
    if (!audience) return std::nullopt;
    return api::MungeAudience{audience->cluster, audience->start};
  }
  void judge_munge(std::string credential, const std::string& from,
                   std::function<void(Result<uint32_t>)> done) override {
    if (options_.munge == nullptr)
      return Backend::judge_munge(std::move(credential), from, std::move(done));
    options_.munge->judge(std::move(credential), from, replies_.across(std::move(done)));
  }

 private:
  // Runs work that reads the whole state on its own thread; only one at a time.
  template <class T>
  void read_all(std::function<void(Result<T>)> done, std::function<Result<T>()> read) {
    if (reading_.exchange(true))
      return done(Error{Errc::unavailable, "a backup or a verification is in progress", {}});
    if (reader_.joinable()) reader_.join();  // it has ended
    reader_ = std::thread([this, read = std::move(read), tell = replies_.across(std::move(done))] {
      Result<T> result = read();
      reading_ = false;
      tell(std::move(result));
    });
  }

  // The flag without which nobody accepts a token of this kind; empty: it is accepted.
  std::string useless(core::TokenKind kind) const {
    switch (kind) {
      case core::TokenKind::user:
        return tls_address_.empty() ? "--api-tls" : "";
      case core::TokenKind::node:
      case core::TokenKind::pool:
        return rpc_->tls_address().empty() ? "--listen-tls" : "";
      case core::TokenKind::coordinator:
        return options_.lead == nullptr ? "--store and --peers" : "";
    }
    return "";
  }

  void ask(const core::JobMeta& meta, core::Event event, std::function<void(Status)> done) {
    caf::anon_send(registry_, actors::AskJob{meta.ns, meta.name, meta.uid, 0, std::move(event),
                                             back(std::move(done))});
  }
  void ask(JobId job, core::Event event, std::function<void(Status)> done) {
    caf::anon_send(registry_,
                   actors::AskJob{"", "", "", job, std::move(event), back(std::move(done))});
  }

  // Brings an actor's answer to this thread.
  std::function<void(Status)> back(std::function<void(Status)> done) {
    return replies_.across(std::move(done));
  }

  api::SiteFacts site_facts() const {
    api::SiteFacts facts{.data_dir = options_.data_dir,
                         .user_pods_max = options_.quotas.pods_max,
                         .users_shown = !options_.access.private_jobs,
                         .backed_up_ms = last_backup(options_.data_dir)};
    if (options_.trust != nullptr)
      if (const auto found = tls::read_certificate(options_.trust->authority()); found.ok())
        facts.certificates["authority"] = found->until_ms;
    return facts;
  }

  void post(std::function<void()> task) { door_->post(std::move(task)); }

  // Keeps the metrics of the lead fresh, so that a scrape waits for no other thread.
  kj::Promise<void> watch_lead(kj::Timer& timer) {
    options_.lead->figures(replies_.across<LeadFigures>(
        [this](LeadFigures figures) { metrics_.set_lead(std::move(figures)); }));
    return timer.afterDelay(kLeadLook).then([this, &timer] { return watch_lead(timer); });
  }

  api::ServerOptions server_options() {
    api::ServerOptions server;
    server.insecure = options_.insecure;
    server.roles = options_.roles;
    server.access = options_.access;
    server.quotas = options_.quotas;
    server.munge = options_.munge != nullptr;
    server.munge_token_life = options_.munge_token_life;
    if (audit_ != nullptr)
      server.audit = [this](const OrderedJson& object) {
        audit_->write(dumped(object));
        if (options_.system_journal != nullptr)
          options_.system_journal->send(api::audit_journal(object));
      };
    server.hosts = host_rules(options_);
    server.version = options_.version;
    if (const std::string name = own_host_name(); !name.empty()) server.host_name = name;
    server.random = random_number;
    server.knobs = options_.knobs;
    server.image_runtime = options_.image_runtime;
    const size_t connections = Descriptors::of_process().api;
    const bool elsewhere = !options_.tls_address.empty() || !options_.metrics_address.empty();
    server.remote_connections_max = elsewhere ? connections / 3 : 1;
    server.connections_max = connections - (elsewhere ? connections / 3 : 0);
    server.before_writing = options_.before_writing;
    server.metrics = [this] { return metrics_.text(view_); };
    return server;
  }

  void run(std::promise<Status>& bound) {
    auto io = kj::setupAsyncIo();
    Inbox inbox(io.unixEventPort, io.provider->getTimer());
    auto port = listen_on(io, "--api", options_.address, 0600);
    if (!port) return bound.set_value(port.error());
    kj::Own<kj::ConnectionReceiver> socket;
    auto opened_socket =
        listen_also(io, "--api-socket", options_.socket, 0666, options_.socket_required);
    if (!opened_socket) return bound.set_value(opened_socket.error());
    KJ_IF_MAYBE (opened, *opened_socket) {
      socket = kj::mv(*opened);
      socket_ = options_.socket;
    }
    address_ = with_port(options_.address, **port);
    api::Server server(io.provider->getTimer(), view_, *this, server_options());
    server.set_ready(false, "recovering: replaying the journal");
    server_ = &server;
    provider_ = io.lowLevelProvider.get();
    PassedFailures passed_failures;
    kj::TaskSet passed(passed_failures);
    passed_ = &passed;
    auto paf = kj::newPromiseAndFulfiller<void>();
    stopped_ = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
    door_->open(inbox);
    auto tasks = inbox.run().eagerlyEvaluate(
        [](kj::Exception&& e) { MUSTER_CHECK(false, e.getDescription().cStr()); });
    kj::Own<kj::TlsContext> tls;
    // Where others lead until now, clients wait rather than be turned away.
    auto ready = kj::newPromiseAndFulfiller<void>();
    ready_ = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(ready.fulfiller));
    auto opens = (options_.lead ? kj::mv(ready.promise) : kj::Promise<void>(kj::READY_NOW)).fork();
    const auto then_serve = [&opens](auto serve) { return opens.addBranch().then(kj::mv(serve)); };
    kj::Vector<kj::Promise<void>> ports;
    if (!options_.metrics_address.empty()) {
      auto opened = listen_on(io, "--metrics-listen", options_.metrics_address, 0600);
      if (!opened) return bound.set_value(opened.error());
      metrics_address_ = with_port(options_.metrics_address, **opened);
      ports.add(server.serve_metrics(kj::mv(*opened)));
    }
    if (!options_.tls_address.empty()) {
      auto opened = listen_on(io, "--api-tls", options_.tls_address, 0600);
      if (!opened) return bound.set_value(opened.error());
      tls_address_ = with_port(options_.tls_address, **opened);
      tls = tls::server_context(
          options_.trust->server_certificate(server_names(options_.hosts, options_.tls_address)),
          options_.trust->authority(), false);
      ports.add(then_serve([&server, &tls = *tls, port = kj::mv(*opened)]() mutable {
        return server.serve_tls(kj::mv(port), [&tls](kj::Own<kj::AsyncIoStream> s) {
          return tls.wrapServer(kj::mv(s));
        });
      }));
    }
    for (kj::Own<kj::ConnectionReceiver>* one : {&*port, &socket})
      if (one->get() != nullptr)
        ports.add(then_serve(
            [&server, port = kj::mv(*one)]() mutable { return server.serve(kj::mv(port)); }));
    auto serving = kj::joinPromises(ports.releaseAsArray()).eagerlyEvaluate([](kj::Exception&& e) {
      MUSTER_CHECK(false, e.getDescription().cStr());
    });
    kj::Promise<void> lead = kj::NEVER_DONE;
    if (options_.lead != nullptr)
      lead = watch_lead(io.provider->getTimer()).eagerlyEvaluate([](kj::Exception&& e) {
        MUSTER_CHECK(false, e.getDescription().cStr());
      });
    bound.set_value(Nothing{});
    paf.promise.wait(io.waitScope);
    kj::evalLast([] {}).wait(io.waitScope);  // takes what has just been accepted
    lead = nullptr;
    serving = nullptr;
    // Where another one leads next, nobody's first request is lost.
    if (options_.lead) server.first_requests(kLastRequests).wait(io.waitScope);
    auto limit = io.provider->getTimer().afterDelay(2 * kj::SECONDS);
    server.drain().exclusiveJoin(kj::mv(limit)).wait(io.waitScope);
    door_->shut();
    tasks = nullptr;
    replies_.clear();
    registry_ = actors::registry_actor{};
    cluster_ = actors::cluster_actor{};
    kept_ = actors::kept_actor{};
  }

  ApiOptions options_;
  std::unique_ptr<LineLog> audit_;
  std::thread thread_;
  std::thread reader_;  // of read_all(); started and joined on the API thread, or joined in stop()
  Workshop workshop_;   // of compute()
  MailDesk mail_;
  std::atomic<bool> reading_{false};
  std::string address_, tls_address_, metrics_address_, socket_;
  std::shared_ptr<Door> door_ = std::make_shared<Door>();

  // Used by the API thread only, except for metrics_.synced():
  std::shared_ptr<kj::Own<kj::PromiseFulfiller<void>>> stopped_, ready_;
  Replies replies_{door_};
  api::Metrics metrics_;
  api::View view_;
  api::Server* server_ = nullptr;
  kj::LowLevelAsyncIoProvider* provider_ = nullptr;
  kj::TaskSet* passed_ = nullptr;  // connections
  actors::registry_actor registry_;
  std::string cluster_id_;
  actors::cluster_actor cluster_;
  actors::kept_actor kept_;
  RpcServer* rpc_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<ApiThread>> ApiThread::start(ApiOptions options) {
  auto thread = std::make_unique<Thread>(std::move(options));
  if (Status status = thread->start(); !status) return status.error();
  return std::unique_ptr<ApiThread>(std::move(thread));
}

}  // namespace muster::coordinator
