#include "drill/process/standbys.hpp"

#include "base/fd.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/values/duration.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <netinet/in.h>
#include <random>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace muster::cli::drill {
namespace {

constexpr Millis kServeMax = 30'000;   // until etcd or a coordinator serves
constexpr Millis kInSyncMax = 60'000;  // until all are in sync
constexpr Millis kTokenMax = 30'000;   // for `muster token create`
constexpr useconds_t kStandbyLookUs = 10'000;
constexpr size_t kStandbyTail = 400;
// Below the ports that the kernel gives to connections (ip_local_port_range), one of which might
// otherwise have a coordinator's port when it is started again.
constexpr uint16_t kPortMin = 16'000, kPortMax = 32'000;

sockaddr_in local_port(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Ports of 127.0.0.1 that are free now. unavailable: there are not enough.
Result<std::vector<uint16_t>> free_ports(size_t count) {
  std::mt19937 random(std::random_device{}());
  std::vector<uint16_t> ports;
  std::vector<Fd> held;
  for (int tries = 0; tries < 10'000 && ports.size() < count; ++tries) {
    const auto port = static_cast<uint16_t>(kPortMin + random() % (kPortMax - kPortMin));
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = local_port(port);
    if (!socket ||
        bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      continue;
    ports.push_back(port);
    held.push_back(std::move(socket));
  }
  if (ports.size() < count) return unavailable("no free ports on 127.0.0.1");
  return ports;
}

bool accepts(uint16_t port) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = local_port(port);
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

std::string on_loopback(uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

// Not a directory, which may be "executed", too.
bool is_program(const std::string& file) {
  std::error_code failed;
  return std::filesystem::is_regular_file(file, failed) && access(file.c_str(), X_OK) == 0;
}

}  // namespace

std::string etcd_program() {
  if (const char* named = std::getenv("MUSTER_ETCD"); named != nullptr) return named;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/usr/local/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::string file = folder + "/etcd"; is_program(file)) return file;
  return "";
}

Result<Lineup> lineup_of(ApiClient& client) {
  auto list = object(client, "/apis/muster.dev/v1/coordinators");
  if (!list) return list.error();
  Lineup lineup;
  for (const Json& one : at(*list, {"items"})) {
    const std::string name = text_at(one, {"metadata", "name"});
    const bool leads = text_at(one, {"status", "role"}) == "leader";
    const Json& connected = at(one, {"status", "connected"});
    if (leads && at(one, {"status"}).contains("term")) {
      lineup.term = static_cast<uint64_t>(number_at(one, {"status", "term"}));
      lineup.leader = name;
    }
    if (at(one, {"status", "inSync"}) == true && (leads || connected == true))
      lineup.ready.push_back(name);
  }
  return lineup;
}

Result<std::unique_ptr<Standbys>> Standbys::start(StandbysOptions options,
                                                  Interrupted interrupted) {
  std::unique_ptr<Standbys> made(new Standbys(std::move(options), std::move(interrupted)));
  const StandbysOptions& o = made->options_;
  auto ports = free_ports(2 + 3 * o.count);
  if (!ports) return ports.error();
  made->etcd_port_ = (*ports)[0];
  made->etcd_peer_port_ = (*ports)[1];
  for (uint32_t i = 0; i < o.count; ++i) {
    Member member;
    member.name = "c" + std::to_string(i + 1);
    member.daemon.log = o.dir + "/" + member.name + ".log";
    member.data_dir = o.dir + "/" + member.name;
    const uint16_t* own = &(*ports)[2 + 3 * i];
    member.api = on_loopback(own[0]);
    member.listen = on_loopback(own[1]);
    member.peers = on_loopback(own[2]);
    if (o.relayed) {
      auto relay = Relay::start(made->etcd_port_);
      if (!relay) return relay.error();
      member.to_store = std::move(*relay);
    }
    made->members_.push_back(std::move(member));
  }
  made->client_ = std::make_unique<ApiClient>(made->api(), "the scratch cluster");
  if (Status s = made->start_etcd(); !s) return s.error();
  if (Status s = made->start_first(); !s) return s.error();
  for (size_t i = 1; i < made->members_.size(); ++i)
    if (Status s = made->add(made->members_[i]); !s) return s.error();
  if (Status s = made->wait_in_sync(); !s) return s.error();
  return made;
}

Standbys::~Standbys() {
  for (Member& member : members_) (void)end_daemon(member.daemon, SIGKILL);
  (void)end_daemon(etcd_, SIGKILL);
}

Status Standbys::start_etcd() {
  const std::string client = "http://" + on_loopback(etcd_port_),
                    peer = "http://" + on_loopback(etcd_peer_port_);
  etcd_.log = options_.dir + "/etcd.log";
  auto process =
      spawn(etcd_program(),
            {"--name", "drill", "--data-dir", options_.dir + "/etcd", "--listen-client-urls",
             client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
             "--initial-advertise-peer-urls", peer, "--initial-cluster", "drill=" + peer},
            etcd_.log, options_.dir);
  if (!process) return process.error();
  etcd_.process = std::move(*process);
  for (const Millis until = boot_now() + kServeMax; boot_now() < until; usleep(kStandbyLookUs)) {
    if (interrupted_()) return unavailable("interrupted");
    if (reap(etcd_)) break;
    if (accepts(etcd_port_)) return Nothing{};
  }
  return unavailable("etcd does not serve: " + one_line(tail_of(etcd_.log, kStandbyTail)));
}

Status Standbys::start(Member& member) {
  const std::string endpoints = member.data_dir + "/endpoints.json";
  unlink(endpoints.c_str());
  const uint16_t store = member.to_store ? member.to_store->port() : etcd_port_;
  std::vector<std::string> words{"coordinator",
                                 "--data-dir",
                                 member.data_dir,
                                 "--api",
                                 member.api,
                                 "--listen",
                                 member.listen,
                                 "--api-socket",
                                 "none",
                                 "--listen-socket",
                                 "none",
                                 "--peers",
                                 member.peers,
                                 "--store",
                                 "etcd:http://" + on_loopback(store),
                                 "--node-grace",
                                 core::duration_text(options_.grace_ms)};
  const std::string token = options_.dir + "/" + member.name + ".token";
  if (access(token.c_str(), R_OK) == 0) words.insert(words.end(), {"--join-token", token});
  auto process = spawn(options_.executable, words, member.daemon.log, options_.dir);
  if (!process) return process.error();
  member.daemon.process = std::move(*process);
  return Nothing{};
}

Status Standbys::start_first() {
  Member& first = members_.front();
  if (Status s = start(first); !s) return s;
  for (const Millis until = boot_now() + kServeMax; boot_now() < until; usleep(kStandbyLookUs)) {
    if (interrupted_()) return unavailable("interrupted");
    if (leader() != nullptr) return Nothing{};
    if (reap(first.daemon)) break;
  }
  return unavailable("coordinator " + first.name +
                     " does not serve: " + tail_of(first.daemon.log, kStandbyTail));
}

// With a token that lets it copy the journal.
Status Standbys::add(Member& member) {
  const std::string log = options_.dir + "/token.log";
  auto process = spawn(options_.executable,
                       {"token", "create", "--coordinator", member.name, "--out",
                        options_.dir + "/" + member.name + ".token", "--api", members_.front().api},
                       log, options_.dir);
  if (!process) return process.error();
  Daemon verb{std::move(*process), log};
  if (!verb.process->wait_gone(kTokenMax)) (void)verb.process->send(SIGKILL);
  if (Status s = end_daemon(verb, 0); !s) return s;
  if (access((options_.dir + "/" + member.name + ".token").c_str(), R_OK) != 0)
    return unavailable("muster token create failed: " + one_line(tail_of(log, kStandbyTail)));
  return start(member);
}

std::string Standbys::listed(std::string Member::*address) const {
  std::string all;
  for (const Member& member : members_) all += (all.empty() ? "" : ",") + member.*address;
  return all;
}

Member* Standbys::leader(const Member* except) {
  for (Member& member : members_) {
    if (&member == except || !member.daemon.process || member.daemon.process->gone()) continue;
    const Json json = read_json(text_of_file(member.data_dir + "/endpoints.json"));
    if (json.is_object() && number_at(json, {"pid"}) == member.daemon.process->pid())
      return &member;
  }
  return nullptr;
}

Status Standbys::wait_in_sync() {
  std::string missing = "none leads";
  for (const Millis until = boot_now() + kInSyncMax; boot_now() < until; usleep(kStandbyLookUs)) {
    if (interrupted_()) return unavailable("interrupted");
    auto lineup = lineup_of(*client_);
    if (!lineup || leader() == nullptr) continue;
    missing.clear();
    for (const Member& member : members_)
      if (std::find(lineup->ready.begin(), lineup->ready.end(), member.peers) ==
          lineup->ready.end())
        missing = member.name + " is not in sync: " + tail_of(member.daemon.log, kStandbyTail);
    if (missing.empty()) return Nothing{};
  }
  return unavailable("not all coordinators were in sync within " + short_span(kInSyncMax) + ": " +
                     missing);
}

std::vector<std::string> Standbys::supervise() {
  std::vector<std::string> ended;
  for (Member& member : members_) {
    if (!reap(member.daemon)) continue;
    ended.push_back("coordinator " + member.name +
                    " ended by itself: " + tail_of(member.daemon.log, kStandbyTail));
    if (Status s = start(member); !s) ended.push_back(s.error().message);
  }
  if (reap(etcd_)) {
    ended.push_back("etcd ended by itself: " + tail_of(etcd_.log, kStandbyTail));
    if (Status s = start_etcd(); !s) ended.push_back(s.error().message);
  }
  return ended;
}

}  // namespace muster::cli::drill
