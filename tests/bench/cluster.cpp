#include "tests/bench/cluster.hpp"

#include "base/check.hpp"
#include "tests/bench/http.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <unistd.h>
#include <utility>

namespace muster::bench {

namespace {

constexpr double kStartPatience = 60;  // seconds
constexpr double kJobPatience = 600;
constexpr uid_t kNobody = 65534;
constexpr auto kPoll = std::chrono::milliseconds(10);

std::vector<std::string> as_nobody(std::vector<std::string> command) {
  const std::string id = std::to_string(kNobody);
  std::vector<std::string> all{"/usr/bin/setpriv", "--reuid=" + id, "--regid=" + id,
                               "--clear-groups"};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Finds "KEY", then the first quoted string after the colon. Good enough for the output of our own
// daemons.
std::optional<std::string> quoted_after(const std::string& text, const std::string& key) {
  auto at = text.find('"' + key + '"');
  if (at == std::string::npos) return std::nullopt;
  auto colon = text.find(':', at + key.size() + 2);
  if (colon == std::string::npos) return std::nullopt;
  auto open = text.find('"', colon);
  if (open == std::string::npos) return std::nullopt;
  auto close = text.find('"', open + 1);
  if (close == std::string::npos) return std::nullopt;
  return text.substr(open + 1, close - open - 1);
}

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

template <class F>
void await(const char* what, double patience, const std::string& dir, F holds) {
  double until = seconds_now() + patience;
  while (!holds()) {
    MUSTER_CHECK(seconds_now() < until, what, "the logs are in", dir);
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace

std::vector<std::string> slow_sync(const std::string& bin_dir, uint32_t ms) {
  if (ms == 0) return {};
  return {"LD_PRELOAD=" + bin_dir + "/bench/muster-bench-slow-sync.so",
          "MUSTER_BENCH_SYNC_MS=" + std::to_string(ms)};
}

Cluster::Cluster(const std::string& bin_dir, const std::vector<std::string>& agent_flags,
                 ClusterSetting setting)
    : bin_dir_(bin_dir),
      environment_(std::move(setting.environment)),
      coordinator_flags_(setting.tls
                             ? with(std::move(setting.coordinator_flags),
                                    {"--api-tls", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"})
                             : std::move(setting.coordinator_flags)),
      owners_(setting.owners) {
  const char* tmp = std::getenv("TMPDIR");
  std::string pattern = std::string(tmp ? tmp : "/tmp") + "/muster-bench-XXXXXX";
  MUSTER_CHECK(mkdtemp(pattern.data()) != nullptr, strerror(errno));
  dir_ = pattern;
  if (owners_)
    for (const char* folder : {"", "/data", "/work"}) {
      std::filesystem::create_directory(dir_ + folder);
      MUSTER_CHECK(chown((dir_ + folder).c_str(), kNobody, kNobody) == 0, strerror(errno));
    }
  std::string listen = start_coordinator();
  std::vector<std::string> command{bin_dir + "/muster", "agent",       "--name", "bench",
                                   "--work-dir",        dir_ + "/work"};
  if (setting.nodes > 0)
    command = {bin_dir + "/bench/muster-bench-nodes", "--nodes", std::to_string(setting.nodes)};
  if (setting.tls) {
    listen = listen_tls_;
    await("a token", kStartPatience, dir_,
          [this] { return get("/readyz").starts_with("HTTP/1.1 200"); });
    command_seconds(bin_dir + "/muster token create --node bench --out " + dir_ +
                    "/token --api 127.0.0.1:" + std::to_string(api_port_));
    command.insert(command.end(), {"--token-file", dir_ + "/token"});
  }
  command.insert(command.end(), {"--coordinator", listen});
  command.insert(command.end(), agent_flags.begin(), agent_flags.end());
  if (owners_) {
    start_root_keeper();
    command = as_nobody(std::move(command));
  }
  agent_ = std::make_unique<Daemon>(command, dir_ + "/agent.log", environment_);
  const std::string ready =
      "muster_nodes{ready=\"true\"} " + std::to_string(std::max(setting.nodes, 1u)) + "\n";
  await("nodes that are Ready", kStartPatience, dir_, [this, &ready] {
    MUSTER_CHECK(agent_->running(), read_file(dir_ + "/agent.log"));
    return get("/metrics").find(ready) != std::string::npos;
  });
}

// Returns the address for agents, once the coordinator has bound its ports.
std::string Cluster::start_coordinator() {
  auto command = with({bin_dir_ + "/muster", "coordinator", "--data-dir", dir_ + "/data", "--api",
                       "127.0.0.1:0", "--listen", listen_},
                      coordinator_flags_);
  if (owners_) command = as_nobody(std::move(command));
  coordinator_ = std::make_unique<Daemon>(command, dir_ + "/coordinator.log", environment_);
  std::string endpoints;
  await("endpoints.json", kStartPatience, dir_, [this, &endpoints] {
    MUSTER_CHECK(coordinator_->running(), read_file(dir_ + "/coordinator.log"));
    endpoints = read_file(dir_ + "/data/endpoints.json");
    return endpoints.find('}') != std::string::npos;
  });
  std::string api = quoted_after(endpoints, "api").value_or("");
  api_port_ = static_cast<uint16_t>(std::stoi(api.substr(api.rfind(':') + 1)));
  listen_ = quoted_after(endpoints, "listen").value_or("");
  listen_tls_ = quoted_after(endpoints, "listenTls").value_or("");
  api_tls_ = quoted_after(endpoints, "apiTls").value_or("");
  return listen_;
}

void Cluster::start_root_keeper() {
  std::string key = read_file(dir_ + "/data/permit.pub");
  key = key.substr(0, key.find('\n'));
  keeper_ = std::make_unique<Daemon>(
      std::vector<std::string>{bin_dir_ + "/muster-keeper", dir_ + "/work", ""},
      dir_ + "/keeper.log",
      with({"MUSTER_KEEPER_AGENT=" + std::to_string(kNobody), "MUSTER_KEEPER_NODE=bench",
            "MUSTER_KEEPER_PERMIT_KEY=" + key},
           environment_));
  await("the keeper", kStartPatience, dir_,
        [this] { return std::filesystem::exists(dir_ + "/work/keeper/socket"); });
}

double Cluster::restart() {
  std::filesystem::remove(dir_ + "/data/endpoints.json");
  const double begin = seconds_now();
  client_.reset();
  coordinator_->kill();
  coordinator_.reset();
  start_coordinator();
  await("a coordinator that is ready", kJobPatience, dir_,
        [this] { return get("/readyz").starts_with("HTTP/1.1 200"); });
  return seconds_now() - begin;
}

Cluster::~Cluster() {
  agent_->end();
  coordinator_->end();
  if (keeper_) keeper_->end();
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

pid_t Cluster::keeper() const {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid == 0) continue;
    const std::string command = read_file(entry.path() / "cmdline");
    if (command.find("muster-keeper") != std::string::npos &&
        command.find(dir_ + "/work") != std::string::npos)
      return pid;
  }
  return 0;
}

std::string manifest(const std::string& name, const BenchJob& job) {
  std::string command;
  for (const std::string& word : job.command)
    command += (command.empty() ? "\"" : ",\"") + word + '"';
  return R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":")" + name +
         R"("},"spec":{"completionMode":"Indexed","completions":)" +
         std::to_string(job.completions) + ",\"parallelism\":" + std::to_string(job.parallelism) +
         job.spec +
         R"(,"template":{"spec":{"restartPolicy":"Never","tolerations":[)"
         R"({"key":"muster.dev/hollow","operator":"Exists"}],"containers":[)"
         R"({"name":"main","image":"none","command":[)" +
         command + "]}]}}}}";
}

JobRun Cluster::run(const BenchJob& job) {
  const std::string path = create(job);
  return finish(path, [](const std::string& shown) {
    MUSTER_CHECK(shown.find("\"FailureTarget\"") == std::string::npos, shown);
    return shown.find("\"type\":\"Complete\"") != std::string::npos;
  });
}

std::string Cluster::create(const BenchJob& job) {
  before_ = used();
  begin_ = seconds_now();
  const std::string name = "bench-" + std::to_string(++jobs_);
  // A job is owned by the user of the connection.
  if (owners_) MUSTER_CHECK(seteuid(kNobody) == 0, strerror(errno));
  client_ = std::make_unique<HttpClient>(api_port_);
  const std::string created = client_->request("POST", kJobs, manifest(name, job));
  if (owners_) MUSTER_CHECK(seteuid(0) == 0, strerror(errno));
  MUSTER_CHECK(created.starts_with("HTTP/1.1 201"), created);
  return kJobs + ("/" + name);
}

JobRun Cluster::finish(const std::string& path,
                       const std::function<bool(const std::string&)>& over) {
  await("the end of a job", kJobPatience, dir_,
        [this, &path, &over] { return over(client_->request("GET", path, "")); });
  const Used now = used();
  return {seconds_now() - begin_, now.coordinator_s - before_.coordinator_s,
          now.agent_s - before_.agent_s, now.keeper_s - before_.keeper_s,
          now.disk_bytes - before_.disk_bytes};
}

Cluster::Used Cluster::used() const {
  const pid_t keeper_pid = keeper();
  return {coordinator_->cpu_s(), agent_->cpu_s(), cpu_seconds_of(keeper_pid),
          coordinator_->disk_bytes() + agent_->disk_bytes() + disk_bytes_of(keeper_pid)};
}

void Cluster::run_many(const std::string& prefix, uint32_t jobs, int client_count) {
  std::atomic<uint32_t> next = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < client_count; ++i)
    clients.emplace_back([this, &prefix, &next, jobs] {
      HttpClient client(api_port_);
      for (uint32_t number; (number = next++) < jobs;) {
        const std::string created =
            client.request("POST", kJobs, manifest(prefix + std::to_string(number), {}));
        MUSTER_CHECK(created.starts_with("HTTP/1.1 201"), created);
      }
    });
  for (std::thread& client : clients) client.join();
  const std::string all = "muster_jobs{state=\"complete\"} " + std::to_string(many_ += jobs) + "\n";
  await("jobs that are Complete", kJobPatience, dir_,
        [this, &all] { return get("/metrics").find(all) != std::string::npos; });
}

std::string Cluster::version() {
  const std::string job = get(kJobs + ("/bench-" + std::to_string(jobs_)));
  return quoted_after(job, "resourceVersion").value_or("");
}

std::string Cluster::get(const std::string& path) {
  return request("GET", path, "");
}

std::string Cluster::request(const std::string& method, const std::string& path,
                             const std::string& body) {
  return HttpClient(api_port_).request(method, path, body);
}

}  // namespace muster::bench
