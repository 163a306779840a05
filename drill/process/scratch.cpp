#include "drill/process/scratch.hpp"

#include "client/connect/objects.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/values/duration.hpp"

#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::cli::drill {
namespace {

constexpr Millis kStartMax = 30'000, kEndMax = 10'000, kVerbMax = 60'000;
constexpr useconds_t kScratchLookUs = 5'000;

Error stopped() {
  return unavailable("interrupted");
}

std::optional<uint16_t> port_of(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint16_t port = 0;
  const char* end = address.data() + address.size();
  if (colon == std::string::npos) return std::nullopt;
  const auto read = std::from_chars(address.data() + colon + 1, end, port);
  return read.ptr == end ? std::optional(port) : std::nullopt;
}

bool is_keeper_of(pid_t pid, const std::string& work_dir) {
  const std::vector<std::string> words = command_of(pid);
  return words.size() > 1 && words[0].ends_with("muster-keeper") &&
         (words[1] == work_dir || words[1].starts_with(work_dir + "/"));
}

}  // namespace

Scratch::Scratch(ScratchOptions options, Interrupted interrupted)
    : options_(std::move(options)),
      interrupted_(std::move(interrupted)),
      api_(options_.api),
      listen_(options_.listen),
      data_dir_(options_.dir + "/coordinator"),
      agents_(options_.nodes) {
  coordinator_.log = options_.dir + "/coordinator.log";
  for (uint32_t node = 0; node < options_.nodes; ++node)
    agents_[node].log = options_.dir + "/" + name_of(node) + ".log";
}

Result<std::unique_ptr<Scratch>> Scratch::start(ScratchOptions options, Interrupted interrupted) {
  std::unique_ptr<Scratch> made(new Scratch(std::move(options), std::move(interrupted)));
  std::error_code error;
  if (made->options_.witnesses) std::filesystem::create_directory(made->witness_dir(), error);
  if (error) return unavailable("cannot make " + made->witness_dir() + ": " + error.message());
  if (!made->options_.clock_lib.empty()) std::ofstream(made->clock_file()) << "+0\n";
  if (Status s = made->start_all_coordinators(); !s) return s.error();
  for (uint32_t node = 0; node < made->options_.nodes; ++node) {
    if (made->options_.relayed) {
      const auto port = port_of(made->listen_);
      if (!port) return unavailable("no port in " + made->listen_);
      auto relay = Relay::start(*port);
      if (!relay) return relay.error();
      made->relays_.push_back(std::move(*relay));
    }
    if (Status s = made->start_agent(node); !s) return s.error();
  }
  if (Status s = made->wait_ready(); !s) return s.error();
  return made;
}

Scratch::~Scratch() {
  // First the daemons that would start others.
  for (Daemon& agent : agents_) (void)end(agent, SIGKILL);
  (void)end(coordinator_, SIGKILL);
  standbys_.reset();
  for (uint32_t node = 0; node < options_.nodes; ++node) {
    auto keeper = this->keeper(node);
    if (!keeper) continue;
    (void)keeper->send(SIGSTOP);  // so that it starts nothing more
    for (const Process& pod : descendants(keeper->pid())) (void)pod.send(SIGKILL);
    (void)keeper->send(SIGKILL);
    keeper->wait_gone(kEndMax);
  }
}

Result<Process> Scratch::keeper(uint32_t node) const {
  const std::string work_dir = options_.dir + "/" + name_of(node);
  for (const pid_t pid : all_pids()) {
    if (!is_keeper_of(pid, work_dir)) continue;
    const auto facts = facts_of(pid);
    // Its children look like keepers until they exec.
    if (!facts || facts->state == 'Z' || is_keeper_of(facts->parent, work_dir)) continue;
    auto process = Process::open(pid);
    if (process && is_keeper_of(pid, work_dir)) return process;
  }
  return Error{Errc::not_found, name_of(node) + " has no keeper", {}};
}

Status Scratch::start_all_coordinators() {
  if (options_.coordinators == 1) return start_coordinator();
  auto several = Standbys::start({.dir = options_.dir,
                                  .executable = options_.executable,
                                  .count = options_.coordinators,
                                  .grace_ms = options_.grace_ms,
                                  .relayed = options_.relayed_store},
                                 interrupted_);
  if (!several) return several.error();
  standbys_ = std::move(*several);
  api_ = standbys_->api();
  listen_ = standbys_->listen();
  return Nothing{};
}

Status Scratch::start_coordinator(const std::string& executable) {
  const std::string endpoints = data_dir_ + "/endpoints.json";
  unlink(endpoints.c_str());
  std::vector<std::string> words{
      "coordinator", "--data-dir",   data_dir_,
      "--api",       api_,           "--listen",
      listen_,       "--node-grace", core::duration_text(options_.grace_ms)};
  if (!options_.api_socket.empty())
    words.insert(words.end(), {"--api-socket", options_.api_socket});
  std::vector<std::string> variables;
  if (!options_.clock_lib.empty())
    variables = {"LD_PRELOAD=" + options_.clock_lib, "FAKETIME_TIMESTAMP_FILE=" + clock_file(),
                 "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"};
  auto process = spawn(executable.empty() ? options_.executable : executable, words,
                       coordinator_.log, options_.dir, variables);
  if (!process) return process.error();
  const pid_t pid = process->pid();
  coordinator_.process = std::move(*process);
  for (const Millis until = boot_now() + kStartMax; boot_now() < until; usleep(kScratchLookUs)) {
    if (interrupted_()) return stopped();
    if (coordinator_.process->gone()) {
      reap(coordinator_);
      return unavailable("the coordinator exited during startup: " +
                         tail_of(coordinator_.log, 400));
    }
    std::ifstream file(endpoints);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const Json json = read_json(text);
    if (!json.is_object() || number_at(json, {"pid"}) != pid) continue;
    // Keep the addresses at the next start, for agents and clients.
    api_ = text_at(json, {"api"});
    listen_ = text_at(json, {"listen"});
    if (client_ == nullptr)
      client_ = std::make_unique<ApiClient>(client_address(), "the scratch cluster");
    return Nothing{};
  }
  return unavailable("the coordinator does not serve: " + tail_of(coordinator_.log, 400));
}

Status Scratch::start_agent(uint32_t node, const std::string& executable) {
  const std::string to =
      relays_.empty() ? listen_ : "127.0.0.1:" + std::to_string(relays_[node]->port());
  auto process =
      spawn(executable.empty() ? options_.executable : executable,
            {"agent", "--coordinator", to, "--name", name_of(node), "--slots",
             std::to_string(options_.slots), "--work-dir", options_.dir + "/" + name_of(node)},
            agents_[node].log, options_.dir);
  if (!process) return process.error();
  agents_[node].process = std::move(*process);
  return Nothing{};
}

Status Scratch::run_verb(const std::vector<std::string>& words) {
  const std::string log = options_.dir + "/" + words[0] + ".log";
  auto process = spawn(options_.executable, words, log, options_.dir);
  if (!process) return process.error();
  if (!process->wait_gone(kVerbMax)) {
    (void)process->send(SIGKILL);
    process->wait_gone(kEndMax);
  }
  int status = 0;
  waitpid(process->pid(), &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Nothing{};
  return unavailable("muster " + words[0] + " failed: " + one_line(tail_of(log, 400)));
}

std::vector<std::string> Scratch::supervise() {
  std::vector<std::string> ended;
  if (standbys_ != nullptr) ended = standbys_->supervise();
  if (reap(coordinator_)) {
    ended.push_back("the coordinator ended by itself: " + tail_of(coordinator_.log, 400));
    if (Status s = start_coordinator(); !s) ended.push_back(s.error().message);
  }
  for (uint32_t node = 0; node < agents_.size(); ++node) {
    if (!reap(agents_[node])) continue;
    ended.push_back("the agent of " + name_of(node) +
                    " ended by itself: " + tail_of(agents_[node].log, 400));
    if (Status s = start_agent(node); !s) ended.push_back(s.error().message);
  }
  return ended;
}

Status Scratch::wait_ready() {
  for (const Millis until = boot_now() + kStartMax; boot_now() < until;
       usleep(kScratchLookUs * 4)) {
    if (interrupted_()) return stopped();
    auto nodes = object(client(), object_path(Kind::node, ""));
    if (!nodes) continue;
    size_t ready = 0;
    for (const Json& node : at(*nodes, {"items"}))
      ready += condition_of(node, "Ready").is_null() ? 0 : 1;
    if (ready >= agents_.size()) return Nothing{};
  }
  return unavailable("not all nodes became ready within " + short_span(kStartMax));
}

}  // namespace muster::cli::drill
