#include "bench/cluster.hpp"

#include "base/check.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <sstream>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace muster::bench {

namespace {

constexpr double kStartPatience = 20;  // seconds
constexpr double kJobPatience = 600;
constexpr auto kPoll = std::chrono::milliseconds(10);

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

template <class F>
void await(const char* what, double patience, const std::string& dir, F holds) {
  double until = seconds_now() + patience;
  while (!holds()) {
    MUSTER_CHECK(seconds_now() < until, what, "the logs are in", dir);
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace

Cluster::Cluster(const std::string& bin_dir, const std::vector<std::string>& agent_flags)
    : bin_dir_(bin_dir) {
  const char* tmp = std::getenv("TMPDIR");
  std::string pattern = std::string(tmp ? tmp : "/tmp") + "/muster-bench-XXXXXX";
  MUSTER_CHECK(mkdtemp(pattern.data()) != nullptr, strerror(errno));
  dir_ = pattern;
  const std::string listen = start_coordinator();
  std::vector<std::string> command{
      bin_dir + "/muster", "agent",       "--coordinator", listen, "--name", "bench",
      "--work-dir",        dir_ + "/work"};
  command.insert(command.end(), agent_flags.begin(), agent_flags.end());
  agent_ = std::make_unique<Daemon>(command, dir_ + "/agent.log");
  await("a node that is Ready", kStartPatience, dir_, [this] {
    MUSTER_CHECK(agent_->running(), read_file(dir_ + "/agent.log"));
    std::string node = get("/api/v1/nodes/bench");
    auto ready = node.find("\"type\":\"Ready\"");
    if (ready == std::string::npos) return false;
    auto begin = node.rfind('{', ready), end = node.find('}', ready);
    return node.substr(begin, end - begin).find("\"status\":\"True\"") != std::string::npos;
  });
}

// Returns the address for agents, once the coordinator has bound its ports.
std::string Cluster::start_coordinator() {
  coordinator_ = std::make_unique<Daemon>(
      std::vector<std::string>{bin_dir_ + "/muster", "coordinator", "--data-dir", dir_ + "/data",
                               "--api", "127.0.0.1:0", "--listen", listen_},
      dir_ + "/coordinator.log");
  std::string endpoints;
  await("endpoints.json", kStartPatience, dir_, [this, &endpoints] {
    MUSTER_CHECK(coordinator_->running(), read_file(dir_ + "/coordinator.log"));
    endpoints = read_file(dir_ + "/data/endpoints.json");
    return endpoints.find('}') != std::string::npos;
  });
  std::string api = quoted_after(endpoints, "api").value_or("");
  api_port_ = static_cast<uint16_t>(std::stoi(api.substr(api.rfind(':') + 1)));
  listen_ = quoted_after(endpoints, "listen").value_or("");
  return listen_;
}

void Cluster::leave() {
  agent_->end();
  std::string deleted = request("DELETE", "/api/v1/nodes/bench", "");
  MUSTER_CHECK(deleted.starts_with("HTTP/1.1 200"), deleted);
}

double Cluster::restart() {
  coordinator_->end();
  coordinator_.reset();
  std::filesystem::remove(dir_ + "/data/endpoints.json");
  double begin = seconds_now();
  start_coordinator();
  await("a coordinator that is ready", kJobPatience, dir_,
        [this] { return get("/readyz").starts_with("HTTP/1.1 200"); });
  return seconds_now() - begin;
}

Cluster::~Cluster() {
  agent_->end();
  coordinator_->end();
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

JobRun Cluster::run(uint32_t completions, uint32_t parallelism, const std::string& program) {
  std::string name = "bench-" + std::to_string(++jobs_);
  std::string manifest = R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":")" + name +
                         R"("},"spec":{"completionMode":"Indexed","completions":)" +
                         std::to_string(completions) +
                         ",\"parallelism\":" + std::to_string(parallelism) +
                         R"(,"template":{"spec":{"restartPolicy":"Never","tolerations":[)"
                         R"({"key":"muster.dev/hollow","operator":"Exists"}],"containers":[)"
                         R"({"name":"main","image":"none","command":[")" +
                         program + R"("]}]}}}})";
  std::string path = "/apis/batch/v1/namespaces/default/jobs";
  const pid_t keeper_pid = keeper();
  double coordinator_cpu = coordinator_->cpu_s(), agent_cpu = agent_->cpu_s(),
         keeper_cpu = cpu_seconds_of(keeper_pid);
  double begin = seconds_now();
  std::string created = request("POST", path, manifest);
  MUSTER_CHECK(created.starts_with("HTTP/1.1 201"), created);
  await("a job that is Complete", kJobPatience, dir_, [this, &path, &name] {
    std::string job = get(path + "/" + name);
    MUSTER_CHECK(job.find("\"FailureTarget\"") == std::string::npos, job);
    return job.find("\"type\":\"Complete\"") != std::string::npos;
  });
  JobRun run{seconds_now() - begin, coordinator_->cpu_s() - coordinator_cpu,
             agent_->cpu_s() - agent_cpu, cpu_seconds_of(keeper_pid) - keeper_cpu};
  return run;
}

std::string Cluster::version() {
  const std::string job =
      get("/apis/batch/v1/namespaces/default/jobs/bench-" + std::to_string(jobs_));
  return quoted_after(job, "resourceVersion").value_or("");
}

std::string Cluster::get(const std::string& path) {
  return request("GET", path, "");
}

std::string Cluster::request(const std::string& method, const std::string& path,
                             const std::string& body) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  MUSTER_CHECK(fd >= 0, strerror(errno));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(api_port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int connected = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  MUSTER_CHECK(connected == 0, strerror(errno));
  std::string text = method + " " + path +
                     " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(api_port_) +
                     "\r\nConnection: close\r\nAccept: application/json\r\n";
  if (!body.empty())
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  text += "\r\n" + body;
  for (size_t sent = 0; sent < text.size();) {
    ssize_t n = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    MUSTER_CHECK(n > 0, strerror(errno));
    sent += static_cast<size_t>(n);
  }
  // The response ends when the server closes the connection or, if it keeps the connection open,
  // after Content-Length bytes or the last chunk.
  std::string answer;
  char part[65536];
  while (true) {
    ssize_t n = recv(fd, part, sizeof part, 0);
    if (n <= 0) break;
    answer.append(part, static_cast<size_t>(n));
    auto head = answer.find("\r\n\r\n");
    if (answer.find("Transfer-Encoding: chunked") < head) {
      if (answer.ends_with("\r\n0\r\n\r\n")) break;
      continue;
    }
    auto length = answer.find("Content-Length: ");
    if (head == std::string::npos || length == std::string::npos || length > head) continue;
    if (answer.size() >= head + 4 + std::stoul(answer.substr(length + 16))) break;
  }
  close(fd);
  return answer;
}

}  // namespace muster::bench
