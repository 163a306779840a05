#include "standby/standby.hpp"

#include "api/http/admission.hpp"
#include "api/http/ends.hpp"
#include "base/lines/stderr_lines.hpp"
#include "base/log.hpp"
#include "base/network/address_list.hpp"
#include "base/version.hpp"
#include "coordinator/links/rpc_peer.hpp"
#include "coordinator/threads/address.hpp"
#include "coordinator/threads/inbox.hpp"
#include "coordinator/threads/listening.hpp"
#include "standby/checkpoint.hpp"
#include "standby/documents.hpp"
#include "standby/doorway.hpp"
#include "standby/follower_metrics.hpp"
#include "standby/store/etcd.hpp"
#include "storage/journal/rocksdb_journal.hpp"
#include "storage/replica/replacement.hpp"
#include "trust/tls/link.hpp"

#include <filesystem>
#include <future>
#include <mutex>
#include <sys/socket.h>
#include <thread>
#include <utility>

namespace muster::standby {
namespace {

constexpr auto kHandshake = 5 * kj::SECONDS;
constexpr size_t kHandshakesMax = 64;

// Nothing is answered from now on, not even by threads that wait for a disk and keep the process
// from ending.
void hang_up() {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", failed))
    shutdown(std::atoi(entry.path().filename().c_str()), SHUT_RDWR);
}

[[noreturn]] void end_process(const std::string& why) {
  log::error("{}", why);
  hang_up();
  drain_stderr();
  std::_Exit(1);
}

// As other machines reach it: a wildcard stands for this machine's name.
std::string reached_at(const std::string& address) {
  if (address.empty() || address.starts_with("unix:")) return "";
  if (!coordinator::is_wildcard(address_host(address))) return address;
  return coordinator::own_host_name() + address.substr(address.rfind(':'));
}

// What a peer gets from a coordinator that does not lead.
class NotLeading final : public wire::Leading::Server {
 public:
  kj::Promise<void> join(JoinContext context) override {
    context.initResults().initAnswer().setLater("it does not lead");
    return kj::READY_NOW;
  }
};

class Thread final : public Standby, public kj::TaskSet::ErrorHandler {
 public:
  Thread(Options options, const coordinator::Options& serves, std::function<void()> wake)
      : options_(std::move(options)),
        data_dir_(serves.data_dir),
        authority_files_{serves.ca_certificate, serves.ca_key},
        ports_{serves.api,      serves.api_socket,
               serves.api_tls,  serves.api_socket_required,
               serves.insecure, {}},
        metrics_address_(serves.metrics),
        wake_(std::move(wake)) {
    place_ = {reached_at(options_.peers), reached_at(serves.api),        reached_at(serves.api_tls),
              reached_at(serves.listen),  reached_at(serves.listen_tls), kVersion};
    ports_.names = coordinator::server_names(serves.api_hosts, serves.api_tls);
  }

  ~Thread() noexcept override {
    if (!thread_.joinable()) return;
    door_->post([this] { (*stopped_)->fulfill(); });
    thread_.join();
  }

  Status start() {
    if (Status ok = coordinator::check_any_address("--peers", options_.peers); !ok) return ok;
    if (Status ok = coordinator::check_any_address("--metrics-listen", metrics_address_); !ok)
      return ok;
    if (coordinator::port_of(options_.peers) == 0)
      return invalid("--peers " + options_.peers +
                     ": the other coordinators know this one by its address, so it needs a port");
    if (Status ok = open_note(); !ok) return ok;
    if (!options_.join_token.empty()) {
      auto token = PeerCredentials::of_token(options_.join_token);
      if (!token) return token.error();
      token_ = std::move(*token);
    }
    auto opened = open_journal();
    if (!opened) return opened.error();
    coordinator::keep_ports();
    std::promise<Status> bound;
    auto result = bound.get_future();
    thread_ = std::thread(
        [this, &bound, journal = std::move(*opened)]() mutable { run(bound, std::move(journal)); });
    Status status = result.get();
    if (!status) thread_.join();
    return status;
  }

  std::shared_ptr<coordinator::Lead> lead() const override {
    const std::lock_guard lock(mutex_);
    return lead_;
  }
  bool hands_over() const override {
    const std::lock_guard lock(mutex_);
    return hands_over_;
  }

  void hand_over() override {
    std::promise<void> done;
    auto resigned = done.get_future();
    door_->post([this, &done] {
      if (leading_.get() == nullptr) return done.set_value();
      tasks_->add(leading_->resign().then([this, &done] {
        set_lead(nullptr);
        peers_ = kj::heap<kj::TaskSet>(*this);
        leading_ = nullptr;
        done.set_value();
      }));
    });
    resigned.wait();
  }

  void follow_again() override {
    std::promise<void> done;
    auto follows = done.get_future();
    door_->post([this, &done] {
      auto journal = open_journal();
      if (!journal) end_process(journal.error().message);
      if (const Status ok = follow(std::move(*journal), true); !ok) end_process(ok.error().message);
      done.set_value();
    });
    follows.wait();
  }

 private:
  Status open_note() {
    auto note = read_note(data_dir_);
    if (!note) return note.error();
    known_member_ = note->has_value();
    if (known_member_) note_ = std::move(**note);
    const std::string cluster = storage::RocksdbJournal::noted_cluster(data_dir_);
    if (note_.cluster.empty()) note_.cluster = cluster;
    // The name stays, even if the address changes.
    if (!known_member_) note_.member = place_.peers;
    return Nothing{};
  }

  Result<std::unique_ptr<storage::Journal>> open_journal() const {
    if (Status ok = storage::finish_replacement(data_dir_); !ok) return ok.error();
    return storage::RocksdbJournal::open_to_read(data_dir_, end_process);
  }

  void run(std::promise<Status>& bound, std::unique_ptr<storage::Journal> journal) {
    auto io = kj::setupAsyncIo();
    io_ = &io;
    remove_checkpoints(data_dir_);
    coordinator::Inbox inbox(io.unixEventPort, io.provider->getTimer());
    auto store = etcd_store(io.provider->getNetwork(), io.provider->getTimer(), options_.store);
    if (!store) return bound.set_value(store.error());
    store_ = store->get();
    auto port = coordinator::listen_on(io, "--peers", options_.peers, 0600);
    if (!port) return bound.set_value(port.error());
    auto tasks = kj::heap<kj::TaskSet>(*this);
    tasks_ = tasks.get();
    doorway_ = kj::heap<Doorway>(io, ports_);
    peers_ = kj::heap<kj::TaskSet>(*this);
    api::Acceptor acceptor(io.provider->getTimer(), "the peers' port",
                           [this](kj::Own<kj::AsyncIoStream> s) { admit(kj::mv(s)); });
    auto paf = kj::newPromiseAndFulfiller<void>();
    stopped_ = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
    door_->open(inbox);
    tasks->add(inbox.run());
    tasks->add(acceptor.run(**port));
    if (Status ok = follow(std::move(journal), false); !ok) {
      door_->shut();
      return bound.set_value(ok);
    }
    bound.set_value(Nothing{});
    paf.promise.wait(io.waitScope);
    if (following_.get() != nullptr) following_->leave().wait(io.waitScope);
    door_->shut();
    doorway_ = nullptr;
    peers_ = nullptr;
    tasks = nullptr;
    io.waitScope.cancelAllDetached();  // calls that peers have made
    metrics_ = nullptr;
    following_ = nullptr;
    leading_ = nullptr;
  }

  std::string holder() const { return holder_text({note_.member, process_of(data_dir_)}); }

  Status follow(std::unique_ptr<storage::Journal> journal, bool resigned) {
    FollowingParts parts{*io_,     *store_, recent_, options_.timing, data_dir_,
                         holder(), place_,  note_,   known_member_,   options_.new_store};
    parts.resigned = resigned;
    parts.token = token_;
    parts.authority_files = authority_files_;
    parts.end = end_process;
    parts.changed = [this] { doorway_->changed(); };
    following_ = kj::heap<FollowingRole>(std::move(parts), std::move(journal));
    if (Status ok = doorway_->follow(*following_); !ok) return ok;
    if (!metrics_address_.empty()) {
      metrics_ = kj::heap<FollowerMetrics>(*io_, *following_, data_dir_, started_ms_);
      if (Status ok = metrics_->open(metrics_address_); !ok) return ok;
    }
    tasks_->add(following_->run().then([this](Taken taken) { take_lead(std::move(taken)); }));
    return Nothing{};
  }

  void take_lead(Taken taken) {
    note_ = following_->note();
    known_member_ = true;
    token_ = following_->credentials();
    auto journal = following_->take_journal();
    metrics_ = nullptr;  // the coordinator that leads serves its own
    following_ = nullptr;
    LeadingParts parts{
        *io_, door_, *store_, recent_, options_.timing, data_dir_, holder(), end_process, [this] {
          {
            const std::lock_guard lock(mutex_);
            hands_over_ = true;
          }
          wake_();
        }};
    parts.holds = [this](const core::standby::Configuration& configuration) {
      if (!note_.learn(configuration)) return;
      if (const Status written = write_note(data_dir_, note_); !written)
        end_process(written.error().message);
    };
    leading_ = kj::heap<LeadingRole>(std::move(parts), std::move(taken), std::move(journal));
    doorway_->lead([lead = leading_->handle()](Fd socket, api::PassedPeer peer) {
      return lead->admit(std::move(socket), std::move(peer));
    });
    set_lead(leading_->handle());
  }

  void set_lead(std::shared_ptr<LeadHandle> lead) {
    {
      const std::lock_guard lock(mutex_);
      lead_ = std::move(lead);
      hands_over_ = false;
    }
    wake_();
  }

  // A connection of another coordinator, which is served once it has proved to be one.
  void admit(kj::Own<kj::AsyncIoStream> stream) {
    const std::string from = api::source_of(api::fd_of(*stream));
    if (leading_.get() != nullptr && !credentials_.serves()) learn_authority();
    if (!credentials_.serves() || handshakes_ >= kHandshakesMax) return;
    ++handshakes_;
    if (tls_.get() == nullptr) tls_ = credentials_.server();
    auto shaken = io_->provider->getTimer().timeoutAfter(
        kHandshake, tls_->wrapServer(kj::AuthenticatedStream{
                        kj::mv(stream), kj::UnknownPeerIdentity::newInstance()}));
    peers_->add(shaken.attach(kj::defer([this] { --handshakes_; }))
                    .then([this, from](kj::AuthenticatedStream known) -> kj::Promise<void> {
                      const auto who = peer_identity(known);
                      if (!who) {
                        log::warn(
                            "rejected a connection to the peers' port from {}: its "
                            "certificate is not a coordinator's",
                            from);
                        return kj::READY_NOW;
                      }
                      auto served = leading_.get() != nullptr
                                        ? leading_->serve_peer(*who)
                                        : wire::Leading::Client(kj::heap<NotLeading>());
                      auto peer =
                          kj::heap<coordinator::RpcPeer>(kj::mv(known.stream), kj::mv(served));
                      auto gone = peer->network.onDisconnect();
                      return gone.attach(kj::mv(peer));
                    })
                    .catch_([from](kj::Exception&& e) {
                      log::warn("a connection to the peers' port from {}: {}", from,
                                tls::explained(e).value_or(e.getDescription().cStr()));
                    }));
  }

  // From what the coordinator that leads here has committed.
  void learn_authority() {
    const auto authority = leading_->authority(authority_files_);
    if (authority) credentials_ = PeerCredentials::of_authority(*authority);
  }

  void taskFailed(kj::Exception&& e) override {
    end_process(std::string("the peers' thread: ") + e.getDescription().cStr());
  }

  Options options_;
  const std::string data_dir_;
  const coordinator::AuthorityFiles authority_files_;
  DoorwayPorts ports_;
  const std::string metrics_address_;  // empty: none
  const Millis started_ms_ = wall_now();
  core::standby::Place place_;
  OwnNote note_;
  bool known_member_ = false;
  PeerCredentials token_;
  std::function<void()> wake_;
  std::thread thread_;
  std::shared_ptr<coordinator::Door> door_ = std::make_shared<coordinator::Door>();
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<LeadHandle> lead_;
  bool hands_over_ = false;

  // Used by the peers' thread only:
  kj::AsyncIoContext* io_ = nullptr;
  Store* store_ = nullptr;
  RecentBatches recent_;
  PeerCredentials credentials_;
  kj::Own<kj::TlsContext> tls_;
  size_t handshakes_ = 0;  // in progress
  kj::TaskSet* tasks_ = nullptr;
  kj::Own<kj::TaskSet> peers_;
  kj::Own<FollowingRole> following_;
  kj::Own<FollowerMetrics> metrics_;
  kj::Own<Doorway> doorway_;
  kj::Own<LeadingRole> leading_;
  std::shared_ptr<kj::Own<kj::PromiseFulfiller<void>>> stopped_;
};

}  // namespace

Result<std::unique_ptr<Standby>> Standby::start(Options options, const coordinator::Options& serves,
                                                std::function<void()> wake) {
  auto thread = std::make_unique<Thread>(std::move(options), serves, std::move(wake));
  if (Status ok = thread->start(); !ok) return ok.error();
  return std::unique_ptr<Standby>(std::move(thread));
}

std::optional<Error> refuses_alone(const std::string& data_dir) {
  if (!std::filesystem::exists(data_dir + "/" + kNote)) return std::nullopt;
  return invalid(data_dir +
                 " is a replica of a cluster with several coordinators, so it may lack what was "
                 "acknowledged: start it with --store and --peers. To go on with this one alone, "
                 "stop the others, make sure that it led last (`muster get coordinators`), and "
                 "remove " +
                 data_dir + "/" + kNote);
}

}  // namespace muster::standby
