// KeeperTest: a keeper with its own work-dir, and a client that records what it receives.
#pragma once

#include "agent/run/keeper_client.hpp"
#include "base/clock.hpp"
#include "keeper/protocol.hpp"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// Not an anonymous namespace, because no file uses all of it.
namespace muster::agent::keeping {

namespace fs = std::filesystem;

inline constexpr auto kPatience = std::chrono::seconds(20);

inline std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline bool is_alive(int pid) {
  std::string line = read_file("/proc/" + std::to_string(pid) + "/stat");
  size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line[name_end + 2] != 'Z' && line[name_end + 2] != 'X';
}

// The live processes with this text in their environment.
inline std::vector<int> pids_with(const std::string& text) {
  std::vector<int> pids;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || !is_alive(pid)) continue;
    if (read_file(entry.path() / "environ").find(text) != std::string::npos) pids.push_back(pid);
  }
  return pids;
}

// A note that has nothing in common with the others, which the spool would write in fewer bytes.
inline std::string long_note(size_t bytes, uint32_t index) {
  std::string note;
  for (size_t i = 0; i < bytes; ++i)
    note += static_cast<char>('!' + (index * 31 + i * i * 7 + i) % 90);
  return note;
}

// Of a start or an end.
ProcessKey key_of(const auto& what) {
  return {what.pod, what.step.container, what.step.instance};
}

// An agent: a client, and what it has received.
struct Agent final : KeeperClient::Listener {
  ~Agent() noexcept override {}  // KJ's destructors may throw
  void on_started(std::vector<core::node::ProcessStart> list) override {
    for (auto& one : list) started.push_back(std::move(one));
  }
  void on_ended(std::vector<keeper::Ended> list) override {
    for (auto& one : list) ended.push_back(std::move(one));
  }
  void on_taken(std::vector<InputTaken> list) override {
    for (auto& one : list) taken.push_back(one);
  }
  void on_keeper_gone(std::string why) override { gone = std::move(why); }

  const keeper::Ended* end_of(const ProcessKey& key) const {
    for (const auto& end : ended) {
      if (key_of(end) == key) return &end;
    }
    return nullptr;
  }

  kj::Own<KeeperClient> client;
  Inventory inventory;
  std::vector<core::node::ProcessStart> started;
  std::vector<keeper::Ended> ended;
  std::vector<InputTaken> taken;
  std::string gone;
};

class KeeperTest : public testing::TestWithParam<const char*> {
 protected:
  ~KeeperTest() noexcept override {}
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "muster-keeper-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    work_dir_ = root_ / "work";
    fs::create_directory(work_dir_);
    setenv("MUSTER_KEEPER_CGROUP", GetParam(), 1);
    setenv("MUSTER_KEEPER_IDLE_MS", "300", 1);
    unsetenv("MUSTER_KEEPER_SEGMENT_BYTES");
  }
  void TearDown() override {
    if (agent_) {
      agent_->client->end_all();
      wait_for([this] { return !agent_->gone.empty(); });
    }
    agent_.reset();
    fs::remove_all(root_);
  }

  Result<kj::Own<KeeperClient>> try_connect(Agent& agent) {
    fs::path keeper = fs::read_symlink("/proc/self/exe").parent_path() / "muster-keeper";
    return KeeperClient::connect(io_.unixEventPort, {work_dir_.string(), keeper.string(), "c1"},
                                 agent, agent.inventory);
  }
  // Replaces the agent with a new one.
  Agent& connect() {
    agent_.reset();
    agent_ = std::make_unique<Agent>();
    auto client = try_connect(*agent_);
    EXPECT_TRUE(client.ok()) << (client.ok() ? "" : client.error().message);
    if (!client.ok()) std::exit(1);
    agent_->client = kj::mv(*client);
    return *agent_;
  }
  bool wait_for(const std::function<bool()>& what) {
    auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!what()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.provider->getTimer().afterDelay(1 * kj::MILLISECONDS).wait(io_.waitScope);
    }
    return true;
  }
  void speak(uint32_t version);  // as an agent of that version
  SpawnOrder order(uint32_t index, std::vector<std::string> argv) {
    SpawnOrder order;
    order.key = {{7, index, 0}, 0, 0};
    order.argv = std::move(argv);
    order.env = {"PATH=/usr/local/bin:/usr/bin:/bin", mark(), "A=b"};
    order.cwd = root_.string();
    order.stdout_path = (root_ / ("out" + std::to_string(index))).string();
    order.stderr_path = (root_ / ("err" + std::to_string(index))).string();
    order.note = "note " + std::to_string(index);
    return order;
  }
  SpawnOrder shell(uint32_t index, const std::string& script) {
    return order(index, {"sh", "-c", script});
  }
  keeper::Ended run(SpawnOrder what) {
    ProcessKey key = what.key;
    agent_->client->spawn({std::move(what)});
    EXPECT_TRUE(wait_for([&] { return agent_->end_of(key) != nullptr; }))
        << "gone: " << agent_->gone << "\nits log:\n"
        << read_file(work_dir_ / "keeper/keeper.log");
    const keeper::Ended* end = agent_->end_of(key);
    return end == nullptr ? keeper::Ended{} : *end;
  }
  // The pid that a process wrote to root_/name.
  int pid_in(const std::string& name) {
    wait_for([&] { return read_file(root_ / name).find('\n') != std::string::npos; });
    return std::atoi(read_file(root_ / name).c_str());
  }
  std::string mark() const { return "MUSTER_TEST=" + root_.string(); }
  int keeper_pid() {
    std::string dir = work_dir_.string();
    for (const auto& entry : fs::directory_iterator("/proc")) {
      int pid = std::atoi(entry.path().filename().c_str());
      std::string line = pid > 0 && is_alive(pid) ? read_file(entry.path() / "cmdline") : "";
      if (line.find("muster-keeper") != std::string::npos && line.find(dir) != std::string::npos)
        return pid;
    }
    return 0;
  }
  void kill_keeper() {
    int pid = keeper_pid();
    ASSERT_GT(pid, 0);
    ::kill(pid, SIGKILL);
    ASSERT_TRUE(wait_for([this] { return !agent_->gone.empty(); }));
  }
  fs::path last_segment() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(work_dir_ / "keeper/spool")) {
      std::ifstream file(entry.path());
      if (file.get() > 0) files.push_back(entry.path());  // spares contain zeros
    }
    return *std::max_element(files.begin(), files.end());
  }

  fs::path root_, work_dir_;
  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  std::unique_ptr<Agent> agent_;
};

inline void KeeperTest::speak(uint32_t version) {
  connect();
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string path = (work_dir_ / "keeper/socket").string();
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  std::string out, note = "n", cwd = root_.string(), log = (root_ / "log").string();
  keeper::Frame(out, keeper::Type::hello).num(version).text("c1");
  {
    keeper::Frame frame(out, keeper::Type::spawn);
    keeper::Key{9, version, 0, 0, 0}.write(frame);
    frame.text(note).text(cwd).text(log).text(log);
    frame.num(uint32_t{3}).text("sh").text("-c").text("exit 6").num(uint32_t{0});
    if (version >= 2) frame.num(uint64_t{0}).num(uint64_t{0}).num(uint8_t{0});  // limits
  }
  ASSERT_EQ(send(fd, out.data(), out.size(), MSG_NOSIGNAL), static_cast<ssize_t>(out.size()));
  keeper::FrameBuffer in;
  keeper::Type type{};
  std::string_view payload;
  int code = -1;
  while (code < 0) {
    char bytes[4096];
    ssize_t size = recv(fd, bytes, sizeof bytes, 0);
    ASSERT_GT(size, 0);
    in.append(bytes, static_cast<size_t>(size));
    while (in.next(type, payload)) {
      ASSERT_NE(type, keeper::Type::refused);
      Reader reader(payload);
      if (type != keeper::Type::ended) continue;
      auto end = keeper::Ended::read(reader, boot_now());
      if (end.pod.index == version) code = end.exit_code;
    }
  }
  EXPECT_EQ(code, 6);
  close(fd);
  connect();
}

inline std::string leftovers_by(const testing::TestParamInfo<const char*>& info) {
  return std::string(info.param) == "on" ? "ByCgroup" : "BySession";
}

}  // namespace muster::agent::keeping
