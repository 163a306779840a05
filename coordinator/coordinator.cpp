#include "coordinator/coordinator.hpp"

#include "actors/cluster_actor.hpp"
#include "actors/history_actor.hpp"
#include "actors/journal_actor.hpp"
#include "actors/kept_actor.hpp"
#include "actors/registry_actor.hpp"
#include "api/kube/objects/manifest.hpp"
#include "base/files/private_files.hpp"
#include "base/lines/stderr_lines.hpp"
#include "base/log.hpp"
#include "base/secret.hpp"
#include "base/system_journal.hpp"
#include "base/version.hpp"
#include "coordinator/api_thread.hpp"
#include "coordinator/poisoned.hpp"
#include "coordinator/rpc/rpc_server.hpp"
#include "coordinator/threads/address.hpp"
#include "coordinator/threads/random.hpp"
#include "core/cluster/nodes/lease.hpp"
#include "storage/journal/rocksdb_journal.hpp"
#include "storage/part_dir.hpp"
#include "storage/recovery.hpp"
#include "storage/rows/rows.hpp"
#include "storage/rows/summary_row.hpp"
#include "storage/takeover.hpp"
#include "trust/store/munge_desk.hpp"
#include "trust/store/open_authority.hpp"
#include "trust/store/trust_store.hpp"
#include "trust/tls/bundle.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace muster::coordinator {

namespace {

constexpr uint64_t kPendingMin = 1'000;  // pods of a job that may wait, however low the quota is
constexpr std::chrono::milliseconds kGather{2};  // between two commits at high rates

struct SystemConfig : caf::actor_system_config {
  SystemConfig() {
    add_message_types<caf::id_block::muster>();
    set("scheduler.policy", caf::atom("sharing"));  // stealing collapses with many runnable actors
    set("scheduler.max-threads", std::max<size_t>(2, std::thread::hardware_concurrency()));
    set("scheduler.max-throughput", size_t{64});
  }
};

// Ends the process at once, without the usual shutdown: the state on disk is right, the state in
// memory may not be.
[[noreturn]] void stop_loudly(const std::string& why) {
  log::error("{}", why);
  drain_stderr();
  std::_Exit(1);
}

core::JobObjectPtr load_object(std::string_view json) {
  return api::load_job(json);
}

// Whether placement depends on what the API has to read first.
bool any_queues(const std::vector<core::Kept>& kept) {
  return std::any_of(kept.begin(), kept.end(), [](const core::Kept& one) {
    return one.kind == core::KeptKind::queue || one.kind == core::KeptKind::priority_class;
  });
}

class Running final : public Coordinator {
 public:
  explicit Running(Options options) : options_(std::move(options)) {}
  ~Running() override {
    stop();
    registry_ = actors::registry_actor{};
    cluster_ = actors::cluster_actor{};
    history_ = actors::history_actor{};
    kept_ = actors::kept_actor{};
    writer_ = actors::journal_actor{};
    system_.reset();
    journal_.reset();
  }

  std::string api_address() const override { return api_->address(); }
  std::string listen_address() const override { return rpc_->address(); }
  std::string api_tls_address() const override { return api_->tls_address(); }
  std::string listen_tls_address() const override { return rpc_->tls_address(); }
  std::string api_socket() const override { return api_->socket(); }
  std::string listen_socket() const override { return rpc_->socket(); }
  void reload(const api::RoleGroups& roles, const api::QuotaLimits& quotas) override {
    if (roles.any() == options_.roles.any())
      api_->reload(roles, quotas);
    else
      log::warn("users have roles, or none, from the start of a coordinator: restart it");
  }
  bool responds(Millis within_ms) const override {
    auto reached = std::make_shared<std::promise<void>>();
    auto answer = reached->get_future();
    api_->call([reached] { reached->set_value(); });
    return answer.wait_for(std::chrono::milliseconds(within_ms)) == std::future_status::ready;
  }

  Status start() {
    if (Status ok = check_options(); !ok) return ok;
    if (Status ok = open_journal(); !ok) return ok;
    storage::remove_interrupted_backups(options_.data_dir);
    if (Status ok = open_trust(); !ok) return ok;
    if (Status ok = open_munge(); !ok) return ok;
    if (Status ok = start_api(); !ok) return ok;

    crashes_ = begin_start(options_.data_dir, kVersion);
    std::vector<core::JobSummary> unloaded;
    auto recovered = storage::recover(
        *journal_, load_object,
        [&unloaded](core::JobSummary job) { unloaded.push_back(std::move(job)); }, crashes_.aside);
    if (!recovered) return recovered.error();
    if (trust_)
      for (const core::NodeInfo& node : recovered->nodes) trust_->know_node(node.name);
    const std::string noted = storage::RocksdbJournal::noted_cluster(options_.data_dir);
    if (!noted.empty() && !recovered->cluster_id.empty() && noted != recovered->cluster_id)
      return Error{Errc::invalid,
                   options_.data_dir + "/cluster-id says that this is the state of cluster " +
                       noted + ", but the database belongs to cluster " + recovered->cluster_id +
                       ": the directory mixes files of two clusters",
                   {}};
    // A data-dir from an earlier version has no key, so agents are believed as in that version.
    const bool sealed = !recovered->seal_key.empty() || recovered->cluster_id.empty();
    const uint64_t last = recovered->epoch;
    recovered->epoch = options_.lead ? options_.lead->term() : last + 1;
    std::vector<storage::Row> epoch = begin_epoch(*recovered, noted);
    add_history(*recovered, last, unloaded, epoch);
    if (!new_authority_.empty()) epoch.push_back(storage::authority_row(new_authority_));
    auto permit_key = open_permit_key(*recovered, epoch);
    if (!permit_key) return permit_key.error();
    const std::string cluster_id = recovered->cluster_id;
    if (Status ok = bind_rpc(*recovered, std::move(*permit_key), sealed); !ok) return ok;
    if (options_.insecure)
      log::warn("--insecure: anyone who can reach {} or {} can run programs as this user",
                api_address(), listen_address());
    const bool wait = options_.wait_for_nodes && !options_.lead && has_nodes(*recovered);
    auto all_here = std::make_shared<std::promise<void>>();
    auto here = all_here->get_future();
    spawn(std::move(*recovered), std::move(unloaded), [all_here] { all_here->set_value(); });
    connect_trust();
    actors::Append first;
    first.rows = std::move(epoch);
    caf::anon_send(writer_, std::move(first));
    rpc_->serve(cluster_, registry_);
    if (wait) wait_for_nodes(here);
    note_start(options_.data_dir, kVersion, crashes_);
    return serve(cluster_id);
  }

  void stop() override {
    if (std::exchange(stopped_, true)) return;
    if (options_.lead) options_.lead->serve({});
    if (rpc_) rpc_->stop();
    if (api_) api_->stop();
    if (!system_) return;
    caf::scoped_actor self{*system_};
    caf::anon_send(registry_, actors::stop_atom_v);
    caf::anon_send(cluster_, actors::stop_atom_v);
    caf::anon_send(history_, actors::stop_atom_v);
    caf::anon_send(kept_, actors::stop_atom_v);
    self->wait_for(registry_, cluster_, history_, kept_);
    caf::anon_send(writer_, actors::stop_atom_v);
    self->wait_for(writer_);
  }

 private:
  Status open_journal() {
    if (options_.lead) {
      journal_ = options_.lead->journal();
      return Nothing{};
    }
    auto journal = storage::RocksdbJournal::open_to_read(
        options_.data_dir, [](const std::string& why) { stop_loudly(why); });
    if (!journal) return journal.error();
    journal_ = std::move(*journal);
    return Nothing{};
  }

  Status check_options() const {
    if (Status ok = check_address("--api", options_.api, options_.insecure); !ok) return ok;
    if (Status ok = check_address("--listen", options_.listen, options_.insecure); !ok) return ok;
    for (const auto& [flag, address] : {std::pair("--api-tls", &options_.api_tls),
                                        std::pair("--listen-tls", &options_.listen_tls),
                                        std::pair("--metrics-listen", &options_.metrics)})
      if (Status ok = check_any_address(flag, *address); !ok) return ok;
    if (options_.insecure && options_.roles.any())
      return invalid(
          "--insecure and --users are mutually exclusive: with --insecure, everyone acts as the "
          "coordinator's user");
    if (options_.munge && (options_.api_tls.empty() || !options_.roles.any()))
      return invalid(
          "--munge logs in users of other machines, each with a role: it needs --api-tls and "
          "--users, --operators, --admins or --metrics-readers");
    if (const auto refused = storage::refuses_taken_over(options_.data_dir)) return *refused;
    return Nothing{};
  }

  // Answers that it does not serve yet, until serve().
  Status start_api() {
    ApiOptions api_options{options_.api, options_.insecure, kVersion, knobs(), *journal_};
    api_options.image_runtime = options_.image_runtime;
    api_options.hosts = options_.api_hosts;
    api_options.tls_address = options_.api_tls;
    api_options.trust = trust_.get();
    api_options.munge = munge_.get();
    api_options.munge_token_life = options_.munge_token_ms;
    api_options.metrics_address = options_.metrics;
    api_options.socket = options_.api_socket;
    api_options.socket_required = options_.api_socket_required;
    api_options.roles = options_.roles;
    api_options.access = options_.access;
    api_options.quotas = options_.quotas;
    api_options.mail_program = options_.mail_program;
    api_options.data_dir = options_.data_dir;
    api_options.audit_path = options_.data_dir + "/audit.log";
    auto system_journal = open_system_journal();
    if (!system_journal) return system_journal.error();
    api_options.system_journal = std::move(*system_journal);
    api_options.load_job = [this](JobId id) -> Result<core::Job> {
      auto job = storage::recover_job(*journal_, id, load_object);
      if (job) return std::move(job->job);
      if (job.error().code != Errc::not_found) log::error("{}", job.error().message);
      return job.error();
    };
    api_options.load_object = load_object;
    api_options.lead = options_.lead;
    if (options_.lead) api_options.before_writing = [lead = options_.lead] { lead->must_lead(); };
    api_options.job_finished = options_.job_finished;
    api_options.history = options_.keeps_history();
    api_options.load_brief = [this](JobId id) { return storage::brief_job(*journal_, id); };
    auto api = ApiThread::start(std::move(api_options));
    if (!api) return api.error();
    api_ = std::move(*api);
    return Nothing{};
  }

  // Absent: nodes run everything as one user. A new key is added to the rows of this start.
  Result<std::optional<PermitKey>> open_permit_key(storage::Recovered& recovered,
                                                   std::vector<storage::Row>& rows) {
    if (!options_.roles.any()) return std::optional<PermitKey>();
    if (recovered.permit_key.empty()) {
      recovered.permit_key = random_hex(kSecretBytes);
      rows.push_back(storage::permit_key_row(recovered.permit_key));
    }
    auto key = PermitKey::of_private(recovered.permit_key);
    if (!key.ok()) return Error{Errc::invalid, "journal: permit key: " + key.error().message, {}};
    permit_public_ = key->public_hex();
    return std::optional<PermitKey>(std::move(*key));
  }

  // `sealed`: agents of other machines must prove what they say by our seal.
  Status bind_rpc(const storage::Recovered& recovered, std::optional<PermitKey> permit_key,
                  bool sealed) {
    RpcOptions rpc_options{options_.listen,
                           options_.insecure,
                           std::move(permit_key),
                           recovered.cluster_id,
                           recovered.cluster_key,
                           recovered.epoch,
                           recovered.nonce,
                           options_.node_grace_ms,
                           [this] { return journal_->last_commit(); },
                           options_.listen_tls,
                           trust_.get()};
    rpc_options.socket = options_.listen_socket;
    rpc_options.socket_required = options_.listen_socket_required;
    rpc_options.agent_users = options_.agent_users;
    rpc_options.seal = HistorySeal(recovered.seal_key, recovered.cluster_id);
    rpc_options.seals_prove = sealed;
    rpc_options.image_runtime = options_.image_runtime;
    rpc_options.show_unreached = [this](JobId job, auto pairs) {
      api_->show_unreached(job, std::move(pairs));
    };
    rpc_options.pod_configs = [this](PodId pod, NodeId node, auto done) {
      api_->pod_configs(pod, node, std::move(done));
    };
    auto rpc = RpcServer::bind(std::move(rpc_options));
    if (!rpc) return rpc.error();
    rpc_ = std::move(*rpc);
    return Nothing{};
  }

  void connect_trust() {
    if (!trust_) return;
    trust_->on_revoked([this](const std::string& node) { rpc_->expel_node(node); });
    trust_->write_with([this](std::vector<storage::Row> rows, std::function<void()> durable) {
      actors::Append append;
      append.rows = std::move(rows);
      append.done = [durable = std::move(durable)](uint64_t) { durable(); };
      caf::anon_send(writer_, std::move(append));
    });
  }

  // Each start has an epoch above all earlier ones and a random number: two coordinators on copies
  // of one data-dir can have the same epoch, but not the same number. The rows are written with the
  // first commit.
  static std::vector<storage::Row> begin_epoch(storage::Recovered& recovered,
                                               const std::string& noted_cluster) {
    std::vector<storage::Row> rows = std::move(recovered.summary_rows);
    if (recovered.cluster_id.empty()) {
      char id[17];
      std::snprintf(id, sizeof id, "%016llx", static_cast<unsigned long long>(random_number()));
      recovered.cluster_id = noted_cluster.empty() ? id : noted_cluster;  // an interrupted start
      rows.push_back(storage::cluster_row(recovered.cluster_id));
    }
    if (recovered.cluster_key.empty()) {
      recovered.cluster_key = random_hex(kSecretBytes);
      rows.push_back(storage::cluster_key_row(recovered.cluster_key));
    }
    if (recovered.seal_key.empty()) {
      recovered.seal_key = random_hex(kSecretBytes);
      rows.push_back(storage::seal_key_row(recovered.seal_key));
    }
    for (uint64_t outdated : recovered.outdated_line)
      rows.push_back(storage::forget_line_row(outdated));
    for (const core::EpochEntry& entry : recovered.line.entries())
      if (entry.first_commit == 0) rows.push_back(storage::line_row(entry));
    do recovered.nonce = random_number();
    while (recovered.nonce == 0);
    for (const core::EpochEntry& dropped :
         recovered.line.add({recovered.epoch, recovered.nonce, recovered.commit + 1}))
      rows.push_back(storage::forget_line_row(dropped.epoch));
    rows.push_back(storage::line_row(recovered.line.last()));
    rows.push_back(storage::epoch_row(recovered.epoch, recovered.nonce));
    return rows;
  }

  // After begin_epoch(); `last`: the epoch before.
  void add_history(const storage::Recovered& recovered, uint64_t last,
                   const std::vector<core::JobSummary>& unloaded, std::vector<storage::Row>& rows) {
    std::vector<JobId> ended;
    for (const core::JobSummary& job : unloaded) ended.push_back(job.id);
    for (storage::Row& row : storage::begin_history(*journal_, options_.keeps_history(), last,
                                                    recovered.epoch, ended, load_object))
      rows.push_back(std::move(row));
  }

  // Null: audited requests go to the audit log only.
  Result<std::unique_ptr<SystemJournal>> open_system_journal() const {
    const bool required = options_.audit_journal == AuditJournal::required;
    if (!options_.roles.any()) {
      if (required)
        return invalid(
            "--audit-journal on needs --users, --operators or --admins: requests are audited "
            "only if users have roles");
      return std::unique_ptr<SystemJournal>();
    }
    if (options_.audit_journal == AuditJournal::off) return std::unique_ptr<SystemJournal>();
    auto opened = SystemJournal::open("muster-audit");
    if (opened.ok()) {
      log::info("audited requests also go to the system journal");
      return opened;
    }
    if (!required) return std::unique_ptr<SystemJournal>();
    return Error{Errc::unavailable, "--audit-journal on: " + opened.error().message, {}};
  }

  // Opens the authority, its tokens and revocations, if other machines are served.
  Status open_trust() {
    if (options_.api_tls.empty() && options_.listen_tls.empty() && !options_.lead) return Nothing{};
    auto head = storage::recover_head(*journal_);
    if (!head) return head.error();
    auto authority = open_authority({options_.ca_certificate, options_.ca_key}, head->authority);
    if (!authority.ok()) return authority.error();
    if (!*authority) {
      *authority = tls::Authority::make("muster authority of this cluster", wall_now());
      new_authority_ = (*authority)->pems().key + (*authority)->pems().certificate;
    }
    trust_ = std::make_unique<TrustStore>(std::move(head->trust), std::move(**authority),
                                          options_.node_certificate_ms, wall_now);
    return Nothing{};
  }

  // Does not check whether the daemon answers: it may be started later.
  Status open_munge() {
    if (!options_.munge) return Nothing{};
    if (Status ok = munge::load(); !ok)
      return invalid("--munge: " + ok.error().message + "; on Debian, install libmunge2");
    munge_ = std::make_unique<MungeDesk>([socket = options_.munge_socket](const std::string& text) {
      return munge::decode(socket, text);
    });
    return Nothing{};
  }

  static bool has_nodes(const storage::Recovered& recovered) {
    return std::any_of(recovered.nodes.begin(), recovered.nodes.end(),
                       [](const core::NodeInfo& node) { return !node.gone; });
  }

  // Agents are checked as they register. One that contradicts our data-dir ends the process here,
  // before anything is written or shown. Missing agents delay service only for a bounded time.
  void wait_for_nodes(std::future<void>& all_here) const {
    Millis wait_ms = std::min(core::back_within_ms(options_.node_grace_ms),
                              std::max<Millis>(1, options_.node_grace_ms / 2));
    api_->waits("waiting for known nodes to register, in case this data-dir is an outdated copy");
    if (all_here.wait_for(std::chrono::milliseconds(wait_ms)) == std::future_status::ready) return;
    log::info("some known nodes have not registered within {} ms; serving without them", wait_ms);
  }

  Status serve(const std::string& cluster_id) {
    if (Status ok = journal_->begin_writing(); !ok) return ok;
    if (Status ok = storage::RocksdbJournal::note_cluster(options_.data_dir, cluster_id); !ok)
      return ok;
    caf::anon_send(writer_, actors::begin_atom_v);
    if (munge_) munge_->open(cluster_id);
    api_->ready(cluster_id, registry_, cluster_, kept_, *rpc_);
    if (options_.lead)
      options_.lead->serve({[this](Fd socket, api::PassedPeer peer) {
                              api_->serve_passed(std::move(socket), std::move(peer));
                            },
                            [this](const tls::Identity& who) { return trust_->refuses(who); }});
    return write_endpoints();
  }

  core::Knobs knobs() const {
    core::Knobs knobs{options_.backoff_base_ms, options_.backoff_max_ms, options_.gates};
    knobs.start_patience_ms = options_.start_patience_ms;
    // A user cannot place more pods than the quota at a time, so few need to wait.
    if (const uint64_t quota = options_.quotas.pods_max; quota != 0)
      knobs.pending_max =
          static_cast<uint32_t>(std::clamp<uint64_t>(quota, kPendingMin, core::kPendingMax));
    return knobs;
  }

  actors::HistoryBounds history_bounds() const {
    return {options_.attempts_keep_ms, options_.attempts_max, options_.history_age_ms,
            options_.keeps_history() ? options_.history_max : 0};
  }

  actors::JournalOptions journal_options() {
    return {.show = [this](core::Committed batch) { api_->show(std::move(batch)); },
            .failed = [](const std::string& why) { stop_loudly(why); },
            .written = [this](double seconds, uint64_t bytes) { api_->written(seconds, bytes); },
            .gather = kGather,
            .detached = true,
            .held = true};
  }

  void spawn(storage::Recovered recovered, std::vector<core::JobSummary> unloaded,
             std::function<void()> all_here) {
    std::vector<core::Job> shown;
    actors::HeldAtStart held = actors::held_slots(recovered);
    for (const storage::RecoveredJob& r : recovered.jobs) {
      if (!r.job.state().forgotten) shown.push_back(r.job);
    }
    log::info("epoch {}: {} jobs, {} of them finished, {} nodes, commit {}", recovered.epoch,
              recovered.jobs.size() + unloaded.size(), unloaded.size(), recovered.nodes.size(),
              journal_->last_commit());
    for (const storage::DamagedJob& job : recovered.damaged) {
      const std::string name =
          job.object ? job.object->meta.ns + "/" + job.object->meta.name : "(name unknown)";
      log::error(
          "j{} {} IS QUARANTINED: it does not run, and its pods are left alone: {}. Use `muster "
          "restore` to go back to an earlier copy",
          job.id, name, job.why);
    }
    api_->load(std::move(shown), unloaded, recovered.damaged, journal_->last_commit(),
               recovered.nodes, recovered.kept);

    system_ = std::make_unique<caf::actor_system>(config_);
    writer_ = actors::spawn_journal(*system_, *journal_, journal_options());
    actors::ClusterOptions cluster;
    cluster.settings.cluster_id = recovered.cluster_id;
    cluster.settings.cluster_key = recovered.cluster_key;
    auto next_job = std::make_shared<std::atomic<JobId>>(0);
    cluster.next_job = next_job;
    cluster.settings.line = recovered.line;
    cluster.settings.node_grace_ms = options_.node_grace_ms;
    cluster.settings.require_limits = options_.require_limits;
    cluster.settings.slots = {.user_pods_max = static_cast<uint32_t>(options_.quotas.pods_max),
                              .user_priority_max = options_.access.user_priority_max,
                              .placement = options_.placement,
                              .use_half_life_ms = options_.share_half_life_ms};
    cluster.settings.noted = recovered.uses;
    cluster.settings.started_ms = wall_now();
    cluster.settings.await_queues = any_queues(recovered.kept);
    cluster.last_commit = [this] { return journal_->last_commit(); };
    cluster.show = [this](const core::NodeHealth& health) { api_->show_health(health); };
    cluster.show_shares = [this](const core::cluster::ShowShares& shares) {
      api_->show_shares(shares);
    };
    cluster.outdated = [](const std::string& why) {
      stop_loudly(
          why +
          ": the data-dir is an older or diverged copy that lacks acknowledged state. Start from "
          "the newest copy; if there is none, use `muster restore` to continue from a backup");
    };
    cluster.all_here = std::move(all_here);
    cluster_ = actors::spawn_cluster(
        *system_, writer_, [this] { return registry_; }, actors::SealedLink(*rpc_), wall_now,
        std::move(cluster), recovered.nodes, std::move(held.slots));
    actors::RegistryOptions registry;
    registry.elapsed = boot_now;
    registry.clock = wall_now;
    registry.knobs = knobs();
    registry.load_job = [this](JobId id) {
      return storage::recover_job(*journal_, id, load_object);
    };
    registry.next_job = next_job;
    registry.finished_jobs_max = options_.finished_jobs_max;
    registry.history = options_.keeps_history();
    registry.synced = [this](bool indexed, core::SyncAction action, double took) {
      api_->synced(indexed, action, took);
    };
    registry_ = actors::spawn_registry(
        *system_, writer_, cluster_, actors::SealedLink(*rpc_),
        {std::move(recovered.jobs), std::move(recovered.damaged), std::move(unloaded),
         std::move(held.lost), std::max<JobId>(1, recovered.next_job_id)},
        std::move(registry));
    kept_ = actors::spawn_kept(*system_, writer_, wall_now, recovered.kept);
    history_ = actors::spawn_history(*system_, writer_, *journal_, wall_now, history_bounds());
  }

  Status write_endpoints() const {
    auto dir = open_private_dir(options_.data_dir, "data-dir");
    if (!dir) return dir.error();
    if (!permit_public_.empty())
      if (Status s = replace_private_file(dir->get(), "permit.pub", permit_public_ + "\n"); !s)
        return s;
    if (trust_)
      if (Status s = replace_private_file(dir->get(), "ca.pem", trust_->authority()); !s) return s;
    std::string text =
        "{\"api\": \"" + api_->address() + "\", \"listen\": \"" + rpc_->address() + "\"";
    if (!options_.api_tls.empty() || !options_.listen_tls.empty())
      text += ", \"apiTls\": \"" + api_->tls_address() + "\", \"listenTls\": \"" +
              rpc_->tls_address() + "\"";
    if (!api_->socket().empty()) text += ", \"apiSocket\": \"" + api_->socket() + "\"";
    if (!rpc_->socket().empty()) text += ", \"listenSocket\": \"" + rpc_->socket() + "\"";
    if (!options_.metrics.empty()) text += ", \"metrics\": \"" + api_->metrics_address() + "\"";
    text += ", \"pid\": " + std::to_string(getpid()) + "}\n";
    return replace_private_file(dir->get(), "endpoints.json", text);
  }

  Options options_;
  SystemConfig config_;
  bool stopped_ = false;
  std::string permit_public_;          // for the nodes' keepers
  CrashHistory crashes_;               // of earlier starts
  std::string new_authority_;          // made at this start; to be stored
  std::unique_ptr<TrustStore> trust_;  // null: only this machine is served
  std::unique_ptr<MungeDesk> munge_;   // null: no log-ins by munge
  std::unique_ptr<storage::Journal> journal_;
  std::unique_ptr<ApiThread> api_;
  std::unique_ptr<RpcServer> rpc_;
  std::unique_ptr<caf::actor_system> system_;
  actors::journal_actor writer_;
  actors::cluster_actor cluster_;
  actors::registry_actor registry_;
  actors::history_actor history_;
  actors::kept_actor kept_;
};

}  // namespace

Result<std::unique_ptr<Coordinator>> Coordinator::start(Options options) {
  auto running = std::make_unique<Running>(std::move(options));
  if (Status status = running->start(); !status) return status.error();
  return std::unique_ptr<Coordinator>(std::move(running));
}

}  // namespace muster::coordinator
