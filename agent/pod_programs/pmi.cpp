#include "agent/pod_programs/pmi.hpp"

#include "agent/pod_programs/local_client.hpp"
#include "base/clock.hpp"
#include "base/exec_exit.hpp"

#include <kj/async-unix.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace muster::agent {
namespace {

constexpr Millis kConnectPauseMs = 100;
constexpr size_t kPmiLineMax = 4'096;
constexpr int kUsage = 2;
constexpr int kUnfinished = 1;           // for a rank that left the others behind
constexpr Millis kAbortGraceMs = 1'000;  // for what a rank does about SIGTERM
constexpr Millis kLetGoMs = 1'000;       // that a rank waits at a fence while it is being ended

using Words = std::map<std::string, std::string>;

// "cmd=put key=k value=v w": a value ends at the next space, except the last one, of `value`, which
// may contain spaces.
Words words_of(std::string_view line) {
  Words words;
  while (!line.empty()) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) break;
    std::string key(line.substr(0, equals));
    line.remove_prefix(equals + 1);
    const size_t end = key == "value" ? std::string_view::npos : line.find(' ');
    words[std::move(key)] = std::string(line.substr(0, end));
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  }
  return words;
}

std::string get(const Words& words, const char* key) {
  const auto found = words.find(key);
  return found == words.end() ? "" : found->second;
}

int complain(const std::string& message) {
  std::fprintf(stderr, "muster-pmi: %s\n", message.c_str());
  return kUsage;
}

// Ends the rank, which may be waiting to be ended (MPI_Abort).
void end_rank(pid_t rank) {
  kill(rank, SIGTERM);
  for (const Millis until = boot_now() + kAbortGraceMs; boot_now() < until; usleep(5'000))
    if (waitpid(rank, nullptr, WNOHANG) == rank) return;
  kill(rank, SIGKILL);
  while (waitpid(rank, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Serves one rank.
class PmiServer {
 public:
  PmiServer(kj::AsyncIoContext& io, LocalClient local, int fd)
      : io_(io),
        local_(std::move(local)),
        stream_(
            io.lowLevelProvider->wrapSocketFd(fd, kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP)) {}

  struct End {
    std::optional<int> abort;  // the exit code
    bool unfinished = false;
  };
  // Until the rank has closed its socket or has aborted.
  End run(const std::string& name) {
    auto& wait = io_.waitScope;
    while (true) {
      auto failed = kj::runCatchingExceptions([&] {
        auto connection = local_.connect(io_);
        auto request = connection->local().worldRequest();
        request.setToken(local_.token());
        auto world = request.send().wait(wait);
        rank_.emplace(world.getSize(), name,
                      std::string(world.getMapping().begin(), world.getMapping().size()));
      });
      if (failed == nullptr) break;
      io_.provider->getTimer().afterDelay(kConnectPauseMs * kj::MILLISECONDS).wait(wait);
    }
    auto exchanging =
        exchange().eagerlyEvaluate([](kj::Exception&& e) { complain(e.getDescription().cStr()); });
    auto ending = io_.unixEventPort.onSignal(SIGTERM)
                      .then([this](siginfo_t&&) { return let_go(0); })
                      .eagerlyEvaluate(nullptr);
    serve().wait(wait);
    return {abort_, rank_->unfinished()};
  }

 private:
  kj::Promise<void> serve() {
    return stream_->tryRead(bytes_, 1, sizeof bytes_)
        .then([this](size_t size) -> kj::Promise<void> {
          if (size == 0) return kj::READY_NOW;
          in_.append(bytes_, size);
          if (in_.size() > kPmiLineMax && in_.find('\n') == std::string::npos) return kj::READY_NOW;
          std::string out;
          for (size_t end = in_.find('\n'); end != std::string::npos; end = in_.find('\n')) {
            const PmiRank::Reply reply = rank_->take(std::string_view(in_).substr(0, end));
            in_.erase(0, end + 1);
            if (reply.broken) return kj::READY_NOW;
            if (reply.abort) {
              abort_ = reply.abort;
              return kj::READY_NOW;
            }
            out += reply.text;
            if (reply.fence) wake();
          }
          return send(std::move(out)).then([this] { return serve(); });
        });
  }

  kj::Promise<void> send(std::string text) {
    if (text.empty()) return kj::READY_NOW;
    auto kept = kj::heap<std::string>(std::move(text));
    auto promise = stream_->write(kept->data(), kept->size());
    return promise.attach(kj::mv(kept)).catch_([](kj::Exception&&) {});
  }

  void wake() {
    KJ_IF_MAYBE (waiting, more_) {
      (*waiting)->fulfill();
    }
  }

  // Lets the rank pass the fence at which it has been for kLetGoMs. `seen`: where it was then.
  kj::Promise<void> let_go(uint32_t seen) {
    kj::Promise<void> sent = kj::READY_NOW;
    if (seen > passed_) {
      passed_ = seen;
      sent = send(rank_->fenced({}));
    }
    return sent
        .then([this] { return io_.provider->getTimer().afterDelay(kLetGoMs * kj::MILLISECONDS); })
        .then([this, now = rank_->fences()] { return let_go(now); });
  }

  // Tells the agent which fence the rank has reached, over the current connection.
  kj::Promise<void> exchange() {
    return kj::evalNow([this] {
             auto connection = kj::heap(local_.connecting(io_));
             return connection
                 ->then([this](kj::Own<LocalClient::Connection> made) {
                   auto gone = made->network.onDisconnect();
                   auto& local = *made;
                   return talk(local).exclusiveJoin(kj::mv(gone)).attach(kj::mv(made));
                 })
                 .attach(kj::mv(connection));
           })
        .catch_([](kj::Exception&&) {})
        .then([this] {
          return io_.provider->getTimer().afterDelay(kConnectPauseMs * kj::MILLISECONDS);
        })
        .then([this] { return exchange(); });
  }

  kj::Promise<void> talk(LocalClient::Connection& connection) {
    kj::Promise<void> notified = kj::READY_NOW;
    if (const uint32_t number = rank_->fences(); number > 0) {
      auto request = connection.local().fenceRequest();
      request.setToken(local_.token());
      request.setNumber(number);
      auto puts = request.initPuts(static_cast<unsigned>(rank_->puts().size()));
      unsigned i = 0;
      for (const auto& [key, value] : rank_->puts()) {
        puts[i].setKey(key);
        puts[i++].setValue(value);
      }
      notified = request.send().then([this, number](auto&& answer) -> kj::Promise<void> {
        if (number <= passed_) return kj::READY_NOW;
        passed_ = number;
        PmiRank::KeyValues all;
        for (auto pair : answer.getAll())
          all.emplace(std::string(pair.getKey().begin(), pair.getKey().size()),
                      std::string(pair.getValue().begin(), pair.getValue().size()));
        return send(rank_->fenced(std::move(all)));
      });
    }
    return notified.then([this, &connection]() -> kj::Promise<void> {
      if (rank_->fences() > passed_) return talk(connection);
      auto paf = kj::newPromiseAndFulfiller<void>();
      more_ = kj::mv(paf.fulfiller);
      return paf.promise.then([this, &connection] { return talk(connection); });
    });
  }

  kj::AsyncIoContext& io_;
  const LocalClient local_;
  kj::Own<kj::AsyncIoStream> stream_;
  std::optional<PmiRank> rank_;
  char bytes_[kPmiLineMax];
  std::string in_;
  uint32_t passed_ = 0;  // fences
  std::optional<int> abort_;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> more_;
};

}  // namespace

PmiRank::Reply PmiRank::take(std::string_view line) {
  const Words words = words_of(line);
  const std::string command = get(words, "cmd");
  if (command == "init") {
    unfinished_ = true;
    return {"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"};
  }
  if (command == "get_maxes")
    return {"cmd=maxes kvsname_max=256 keylen_max=" + std::to_string(kKeyMax) +
            " vallen_max=" + std::to_string(kValueMax) + "\n"};
  if (command == "get_appnum") return {"cmd=appnum appnum=0\n"};
  if (command == "get_universe_size")
    return {"cmd=universe_size size=" + std::to_string(size_) + "\n"};
  if (command == "get_my_kvsname") return {"cmd=my_kvsname kvsname=" + name_ + "\n"};
  if (command == "put") {
    const std::string key = get(words, "key"), value = get(words, "value");
    if (key.empty() || key.size() > kKeyMax || value.size() > kValueMax ||
        puts_.size() >= kKeysMax || bytes_ + key.size() + value.size() > kBytesMax)
      return {"cmd=put_result rc=-1 msg=too_long_or_too_many\n"};
    bytes_ += key.size() + value.size();
    puts_[key] = known_[key] = value;
    return {"cmd=put_result rc=0 msg=success\n"};
  }
  if (command == "get") {
    const std::string key = get(words, "key");
    const auto found = known_.find(key);
    if (found == known_.end())
      return {"cmd=get_result rc=-1 msg=key_" + key + "_not_found value=unknown\n"};
    return {"cmd=get_result rc=0 msg=success value=" + found->second + "\n"};
  }
  if (command == "barrier_in") {
    ++fences_;
    return {"", true};
  }
  if (command == "finalize") {
    unfinished_ = false;
    return {"cmd=finalize_ack rc=0\n"};
  }
  if (command == "abort") {
    int code = 1;
    const std::string text = get(words, "exitcode");
    std::from_chars(text.data(), text.data() + text.size(), code);
    Reply reply;
    reply.abort = code;
    return reply;
  }
  if (line.starts_with("mcmd=spawn")) return {"", false, false};  // its further lines follow
  if (command.empty() && line.starts_with("endcmd"))
    return {"cmd=spawn_result rc=-1 msg=not_supported\n"};
  if (command.empty()) return {"", false, words.empty()};
  return {"cmd=" + command + "_result rc=-1 msg=not_supported\n"};
}

std::string PmiRank::fenced(KeyValues all) {
  for (auto& [key, value] : all) known_[key] = std::move(value);
  return "cmd=barrier_out rc=0\n";
}

// "(vector,(FIRST_NODE,NODES,RANKS_OF_EACH),...)"
std::string process_mapping(const std::vector<std::string>& nodes) {
  std::map<std::string, size_t> numbers;
  struct Block {
    size_t first, nodes, ranks;
  };
  std::vector<Block> blocks;
  for (size_t i = 0; i < nodes.size();) {
    const size_t node = numbers.emplace(nodes[i], numbers.size()).first->second;
    size_t ranks = 0;
    for (const std::string& name = nodes[i]; i < nodes.size() && nodes[i] == name; ++i) ++ranks;
    if (!blocks.empty() && blocks.back().ranks == ranks &&
        blocks.back().first + blocks.back().nodes == node)
      ++blocks.back().nodes;
    else
      blocks.push_back({node, 1, ranks});
  }
  std::string text = "(vector";
  for (const Block& one : blocks)
    text += ",(" + std::to_string(one.first) + "," + std::to_string(one.nodes) + "," +
            std::to_string(one.ranks) + ")";
  return text + ")";
}

int run_pmi(const std::vector<std::string>& arguments) {
  size_t at = 0;
  if (at < arguments.size() && arguments[at] == "--") ++at;
  if (at == arguments.size()) return complain("usage: muster-pmi [--] COMMAND...");
  auto local = LocalClient::of_environment();
  if (!local) return complain(local.error().message);
  const char* const index = std::getenv("JOB_COMPLETION_INDEX");
  const char* const size = std::getenv("NNODES");
  const char* const job = std::getenv("MUSTER_JOB_UID");
  if (index == nullptr || size == nullptr || job == nullptr)
    return complain("it runs only in pods of a job with the annotation muster.dev/mpi");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return complain(std::string("socketpair: ") + std::strerror(errno));
  std::signal(SIGPIPE, SIG_IGN);
  const pid_t child = fork();
  if (child < 0) return complain(std::string("fork: ") + std::strerror(errno));
  if (child == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    const int fd = dup(ends[1]);  // without close-on-exec
    setenv("PMI_FD", std::to_string(fd).c_str(), 1);
    setenv("PMI_RANK", index, 1);
    setenv("PMI_SIZE", size, 1);
    std::vector<char*> words;
    for (; at < arguments.size(); ++at) words.push_back(const_cast<char*>(arguments[at].c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    const int error = errno;
    std::fprintf(stderr, "muster-pmi: %s: %s\n", words[0], std::strerror(error));
    _exit(exit_of_exec(error));
  }
  // The rank gets these too, and decides.
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) std::signal(signal, SIG_IGN);
  close(ends[1]);
  PmiServer::End end;
  {
    auto io = kj::setupAsyncIo();
    kj::UnixEventPort::captureSignal(SIGTERM);
    end = PmiServer(io, std::move(*local), ends[0]).run(std::string("kvs_") + job);
  }
  if (end.abort) {
    end_rank(child);
    return (*end.abort & 0xff) == 0 ? 1 : *end.abort & 0xff;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (end.unfinished && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    complain(std::string("rank ") + index + " exited with 0 without MPI_Finalize");
    return kUnfinished;
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace muster::agent
