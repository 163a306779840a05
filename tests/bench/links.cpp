// muster-bench-links: the cost of TLS and of roles.
//
// - Pods per second of a job of /bin/true, and ends per second of hollow pods, each with the agent
//   over plain loopback, over TLS, with roles, and with both; for root also with pods that run as
//   their owners. The variants take turns, so that all meet the same conditions. CPU time per pod
//   of coordinator and agent, and of the keeper.
// - The first request of a client over HTTPS: connection, handshake and GET /version with a token.
#include "base/check.hpp"
#include "tests/bench/cluster.hpp"
#include "trust/tls/bundle.hpp"
#include "trust/tls/link.hpp"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

namespace muster::bench {
namespace {

struct Options {
  uint32_t pods = 4'000;
  uint32_t hollow = 200'000;
  uint32_t rounds = 3;
  uint32_t requests = 200;
};

struct Kind {
  const char* name;
  ClusterSetting setting;
};

void compare(const char* title, const std::vector<std::string>& agent_flags, uint32_t pods,
             uint32_t rounds, bool owners) {
  const std::string bin_dir = bin_dir_of_this();
  const std::vector<std::string> roles = {"--users", "*"};
  std::vector<Kind> kinds = {{"plain loopback", {}},
                             {"TLS", {.tls = true}},
                             {"users with roles", {.coordinator_flags = roles}},
                             {"both", {.tls = true, .coordinator_flags = roles}}};
  if (owners && geteuid() == 0)
    kinds.push_back({"roles, pods as their owners", {.coordinator_flags = roles, .owners = true}});
  std::vector<std::vector<double>> rates(kinds.size()), cpus(kinds.size()), keepers(kinds.size());
  for (uint32_t round = 0; round < rounds; ++round)
    for (size_t i = 0; i < kinds.size(); ++i) {
      Cluster cluster(bin_dir, agent_flags, kinds[i].setting);
      cluster.run({200, kParallelism});  // the first job of a cluster pays for its startup
      const JobRun run = cluster.run({pods, kParallelism});
      rates[i].push_back(pods / run.seconds);
      cpus[i].push_back((run.coordinator_cpu_s + run.agent_cpu_s) * 1e6 / pods);
      keepers[i].push_back(run.keeper_cpu_s * 1e6 / pods);
    }
  std::printf("%-32s %11s %9s %11s %11s\n", title, "pods/s", "ratio", "CPU µs", "keeper µs");
  for (size_t i = 0; i < kinds.size(); ++i) {
    std::vector<double> ratios;  // to plain loopback in the same round
    for (uint32_t round = 0; round < rounds; ++round)
      ratios.push_back(rates[i][round] / rates[0][round]);
    std::printf("%-32s %11.0f %9.2f %11.1f %11.1f\n", kinds[i].name, median(rates[i]),
                median(ratios), median(cpus[i]), median(keepers[i]));
  }
  std::fflush(stdout);
}

// Milliseconds from connecting to the response.
double first_request_ms(kj::AsyncIoContext& io, const std::string& address,
                        const std::string& authority, const std::string& bearer) {
  const double begin = seconds_now();
  auto context = tls::client_context(std::nullopt, authority);
  auto at = tls::encrypted(
      io.provider->getNetwork().parseAddress(address.c_str()).wait(io.waitScope), *context);
  auto stream = at->connect().wait(io.waitScope);
  const std::string request =
      "GET /version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + bearer + "\r\n\r\n";
  stream->write(request.data(), request.size()).wait(io.waitScope);
  char answer[4096];
  const size_t size = stream->tryRead(answer, 12, sizeof answer).wait(io.waitScope);
  MUSTER_CHECK(std::string(answer, size).starts_with("HTTP/1.1 200"));
  return (seconds_now() - begin) * 1e3;
}

void first_requests(uint32_t requests) {
  const std::string bin_dir = bin_dir_of_this();
  Cluster cluster(bin_dir, {"--hollow", "--slots", "1"}, {.tls = true});
  const std::string file = cluster.dir() + "/user";
  command_seconds(bin_dir + "/muster token create --out " + file +
                  " --api 127.0.0.1:" + std::to_string(cluster.api_port()));
  std::ifstream in(file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const std::string bearer = text.substr(0, text.find('\n'));
  size_t from = 0;
  const std::string authority = tls::pem_part(text, "CERTIFICATE", from);
  auto io = kj::setupAsyncIo();
  std::vector<double> ms;
  for (uint32_t i = 0; i < requests; ++i)
    ms.push_back(first_request_ms(io, cluster.api_tls(), authority, bearer));
  std::printf("\n%-32s %11s %9s\n%-32s %11.2f %9.2f\n", "first request over HTTPS", "p50 ms",
              "p99 ms", "connect, handshake, GET /version", median(ms), percentile(ms, 99));
}

int main(int argc, char** argv) {
  Options options;
  const auto code = read_numbers(argc, argv, [&options](const std::string& flag, uint32_t n) {
    if (flag == "--pods") return options.pods = n, true;
    if (flag == "--hollow") return options.hollow = n, true;
    if (flag == "--rounds") return options.rounds = n, true;
    if (flag == "--requests") return options.requests = n, true;
    return false;
  });
  if (code) {
    std::fprintf(stderr,
                 "muster-bench-links [--pods N] [--hollow N] [--rounds N] [--requests N]\n");
    return *code;
  }
  compare("/bin/true, 2 slots", {"--slots", "2"}, options.pods, options.rounds, true);
  compare("\nhollow, 1000 slots", {"--hollow", "--slots", "1000"}, options.hollow, options.rounds,
          false);
  first_requests(options.requests);
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  return muster::bench::main(argc, argv);
}
