// muster port-forward: ports of this machine that lead to ports of a running pod, such as a
// notebook's, through the sessions of muster exec.
//
// Each connection is a session of its own, in a child process: a relay in the pod connects to the
// pod's port and copies both ways, so end of file and errors pass through. Another child, the
// witness, runs a command that does nothing in the pod for as long as the pod runs: when it ends,
// so do we, with its exit code.
#include "base/fd.hpp"
#include "cli/verbs/run/exec.hpp"
#include "cli/verbs/words.hpp"
#include "client/terminal/exit_codes.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace muster::cli {

struct ForwardOptions {
  ExecOptions exec;  // the pod, without a command
  std::string address = "127.0.0.1";
  struct Port {
    uint16_t here = 0;  // 0: any that is free
    uint16_t there = 0;
  };
  std::vector<Port> ports;
};

namespace {

// Copies between standard input and output and port $1 of the pod, until the port is closed. Both
// ways at once, as neither side may wait for the other to read.
constexpr const char* kRelay = R"(
if command -v perl >/dev/null; then
  exec perl -MIO::Socket::IP -e '
    my ($port, $s) = $ARGV[0];
    $s ||= IO::Socket::IP->new(PeerHost => $_, PeerPort => $port) for "127.0.0.1", "::1";
    $s or die "muster: port $port of the pod: $@\n";
    sub copy {
      my ($in, $out) = @_;
      while (sysread $in, my $data, 65536) {
        for (my $at = 0; $at < length $data;) {
          my $done = syswrite $out, $data, length($data) - $at, $at;
          $done or return;
          $at += $done;
        }
      }
    }
    my $child = fork // die "muster: fork: $!\n";
    if (!$child) {
      copy(*STDIN, $s);
      shutdown $s, 1;
      exit;
    }
    copy($s, *STDOUT);
    kill KILL => $child;
  ' "$1"
fi
exec python3 -c '
import os, socket, sys, threading
try:
    s = socket.create_connection(("localhost", int(sys.argv[1])))
except OSError as e:
    sys.exit(f"muster: port {sys.argv[1]} of the pod: {e}")
def send():
    while data := os.read(0, 65536):
        s.sendall(data)
    s.shutdown(socket.SHUT_WR)
threading.Thread(target=send, daemon=True).start()
while data := s.recv(65536):
    while data:
        data = data[os.write(1, data):]
os._exit(0)
' "$1")";

// Ends with the container, and says when it has begun.
constexpr const char* kWitness = R"(
if command -v perl >/dev/null || command -v python3 >/dev/null; then
  echo; exec sleep 2147483647
fi
echo "muster: port-forward needs perl or python3 on the pod's node" >&2; exit 127)";

// Signals of which we hear only while we wait.
constexpr std::array kHeard = {SIGINT, SIGTERM, SIGCHLD};
volatile std::sig_atomic_t stopped = 0;

void hear(int how) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kHeard) sigaddset(&set, signal);
  sigprocmask(how, &set, nullptr);
}

// False: a signal came instead.
bool wait_for(std::vector<pollfd>& events) {
  sigset_t none;
  sigemptyset(&none);
  return ppoll(events.data(), events.size(), nullptr, &none) > 0;
}

struct Listener {
  Fd fd;
  ForwardOptions::Port port;
};

std::string address_text(const std::string& address, uint16_t port) {
  const bool six = address.find(':') != std::string::npos;
  return (six ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

// Chooses the port here if it is 0.
Result<Fd> listen_on(const std::string& address, uint16_t& port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  if (const int why = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
      why != 0)
    return invalid("--address " + address + ": " + gai_strerror(why));
  Fd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool listens =
      bind(fd.get(), found->ai_addr, found->ai_addrlen) == 0 && listen(fd.get(), SOMAXCONN) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (!listens)
    return invalid(address_text(address, port) + ": " + std::strerror(error) +
                   "; choose another port with LOCAL:PORT, or any with :PORT");
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  // In both families the port has the same place.
  port = ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
  return fd;
}

class Forward {
 public:
  explicit Forward(const ForwardOptions& options) : o_(options) {}

  int run() {
    for (ForwardOptions::Port port : o_.ports) {
      auto fd = listen_on(o_.address, port.here);
      if (!fd) return fail(kFailed, fd.error().message);
      listeners_.push_back({std::move(*fd), port});
    }
    if (!witness()) return end(stopped ? 0 : over());
    for (const Listener& one : listeners_)
      std::cout << "Forwarding from " << address_text(o_.address, one.port.here) << " -> "
                << one.port.there << std::endl;
    std::vector<pollfd> events;
    for (const Listener& one : listeners_) events.push_back({one.fd.get(), POLLIN, 0});
    events.push_back({witness_.get(), POLLIN, 0});
    while (!stopped) {
      reap();
      if (!wait_for(events)) continue;
      if (events.back().revents != 0) return end(over());
      for (size_t i = 0; i < listeners_.size(); ++i)
        if (events[i].revents != 0) accept_on(listeners_[i]);
    }
    return end(0);
  }

 private:
  // Runs the command in the pod, with this input and output, in a child.
  pid_t in_pod(std::vector<std::string> command, bool input, int in, int out) {
    const pid_t parent = getpid(), child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGINT);
    for (const int signal : kHeard) std::signal(signal, SIG_DFL);
    hear(SIG_UNBLOCK);
    if (getppid() != parent) _exit(kInterrupted);
    if (in >= 0) dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    listeners_.clear();
    witness_ = Fd();
    ExecOptions exec = o_.exec;
    exec.command = std::move(command);
    exec.input = input;
    const int code = execute(exec);
    std::cout.flush();
    _exit(code);
  }

  // Waits until it runs in the pod.
  bool witness() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) < 0) return false;
    witness_ = Fd(ends[0]);
    {
      const Fd writes(ends[1]);
      witness_pid_ = in_pod({"sh", "-c", kWitness}, false, -1, writes.get());
    }
    std::vector<pollfd> events = {{witness_.get(), POLLIN, 0}};
    while (!stopped && !wait_for(events)) continue;
    char byte = 0;
    return !stopped && read(witness_.get(), &byte, 1) == 1;
  }

  // The exit code once the pod's container is over, or could not be joined.
  int over() {
    int status = 0;
    if (witness_pid_ < 0) return fail(kFailed, std::string("fork: ") + std::strerror(errno));
    while (waitpid(witness_pid_, &status, 0) < 0)
      if (errno != EINTR) return kFailed;
    witness_pid_ = -1;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code <= 128) return code;
    return fail(kFailed, "the pod has ended");  // and with it the sleep
  }

  void accept_on(const Listener& listener) {
    const Fd connection(accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return;  // it is gone again
    const pid_t child = in_pod({"sh", "-c", kRelay, "sh", std::to_string(listener.port.there)},
                               true, connection.get(), connection.get());
    if (child > 0)
      relays_.push_back(child);
    else
      std::cerr << "muster: fork: " << std::strerror(errno) << std::endl;
  }

  void reap() {
    std::erase_if(relays_, [](pid_t child) { return waitpid(child, nullptr, WNOHANG) == child; });
  }

  // Ends the sessions and what they run.
  int end(int code) {
    if (witness_pid_ > 0) relays_.push_back(witness_pid_);
    for (const pid_t child : relays_) kill(child, SIGINT);
    for (const pid_t child : relays_)
      while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
    return code;
  }

  const ForwardOptions& o_;
  std::vector<Listener> listeners_;
  Fd witness_;  // ends when the witness does
  pid_t witness_pid_ = -1;
  std::vector<pid_t> relays_;
};

std::optional<uint16_t> port_of(std::string_view text, uint16_t least) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), port);
  if (error != std::errc() || end != text.end() || port < least) return std::nullopt;
  return port;
}

std::optional<Usage> read_forward(const std::vector<std::string>& what, ForwardOptions& o) {
  if (what.size() < 2) return Usage{"needs a pod and a port: muster port-forward POD [LOCAL:]PORT"};
  if (auto wrong = read_pod_or_job(what[0], o.exec.pod, o.exec.job)) return wrong;
  if (auto wrong = check_chosen(o.exec, "muster port-forward job/J 8888 --index 3")) return wrong;
  for (size_t i = 1; i < what.size(); ++i) {
    const std::string_view text = what[i];
    const size_t colon = text.find(':');
    const auto there = port_of(text.substr(colon == text.npos ? 0 : colon + 1), 1);
    const auto here = colon == text.npos ? there
                      : colon == 0       ? std::optional<uint16_t>(0)
                                         : port_of(text.substr(0, colon), 0);
    if (!there || !here)
      return Usage{"`" + what[i] + "`: must be PORT, LOCAL:PORT or :PORT, with ports up to 65535"};
    o.ports.push_back({*here, *there});
  }
  return std::nullopt;
}

}  // namespace

int execute(const ForwardOptions& options) {
  for (const int signal : kHeard)
    std::signal(signal, [](int number) { stopped = stopped || number != SIGCHLD; });
  hear(SIG_BLOCK);
  std::signal(SIGPIPE, SIG_IGN);
  return Forward(options).run();
}

Verb port_forward_verb() {
  auto w = std::make_shared<Raw<ForwardOptions, std::vector<std::string>>>();
  ExecOptions& exec = w->o.exec;
  return {
      .title = {"Jobs", "port-forward", "Reach ports of a running pod from this machine"},
      .rows = {{"what", "POD|job/J PORT...",
                "Pod, or job with --index or --task, and its ports: PORT, LOCAL:PORT to listen on "
                "another port here, or :PORT to listen on any that is free",
                &w->what, kAnything, kRequired},
               {"--address", "A", "Address of this machine to listen on (default: 127.0.0.1)",
                &w->o.address},
               index_row(exec.index),
               task_row(exec.task),
               {"-c,--container", "NAME",
                "Container through which to connect (default: the pod's first container)",
                &exec.container}},
      .asks = {&exec.target},
      .footer =
          "Examples:\n  muster port-forward job/notebook 8888\n"
          "  muster port-forward job/train 6007:6006 --index 3\n"
          "  muster port-forward sweep-7-x2bqd :5432\n"
          "It runs until Ctrl-C or until the pod ends. Each connection is a command in the "
          "pod, as with muster exec, that connects to the port on the pod's node and needs "
          "perl or python3 there. Everyone who can reach the address can use the port.\n"
          "Exit codes: 0 ended by Ctrl-C or SIGTERM; 1 the pod has ended, or the port here "
          "is taken; 3 no such pod, 4 coordinator unreachable, 5 the pod or container is not "
          "running.",
      .finish = [w](const Given&) -> Judged { return judged(read_forward(w->what, w->o), w->o); }};
}

}  // namespace muster::cli
