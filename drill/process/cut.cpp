#include "drill/process/cut.hpp"

#include "base/fd.hpp"
#include "client/terminal/json.hpp"
#include "drill/process/command.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <unistd.h>
#include <utility>

namespace muster::cli::drill {
namespace {

constexpr Millis kNftMax = 10'000;
constexpr int kEstablished = 1, kConnecting = 2, kListening = 10;

// "0100007F:1F90", each word of four bytes in the machine's byte order.
bool read_end(const std::string& text, std::string& address, uint16_t& port) {
  const size_t colon = text.find(':');
  if (colon != 8 && colon != 32) return false;
  uint32_t words[4] = {};
  for (size_t i = 0; i < colon / 8; ++i)
    words[i] = static_cast<uint32_t>(std::strtoul(text.substr(i * 8, 8).c_str(), nullptr, 16));
  port = static_cast<uint16_t>(std::strtoul(text.c_str() + colon + 1, nullptr, 16));
  char out[INET6_ADDRSTRLEN] = {};
  if (colon == 8) {
    inet_ntop(AF_INET, words, out, sizeof out);
  } else {
    in6_addr six;
    std::memcpy(&six, words, sizeof six);
    if (IN6_IS_ADDR_V4MAPPED(&six))
      inet_ntop(AF_INET, &words[3], out, sizeof out);
    else
      inet_ntop(AF_INET6, &six, out, sizeof out);
  }
  address = out;
  return true;
}

std::string program() {
  for (const char* path : {"/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft", "/usr/local/sbin/nft"})
    if (access(path, X_OK) == 0) return path;
  return "";
}

std::string namespace_of(const std::string& process) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/" + process + "/ns/net", error).string();
}

bool enter_namespace_of(pid_t pid) {
  const std::string process = std::to_string(pid);
  if (namespace_of(process) == namespace_of("self")) return true;
  const Fd ns(open(("/proc/" + process + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
  return ns && setns(ns.get(), CLONE_NEWNET) == 0;
}

const char* family(const std::string& address) {
  return address.find(':') == std::string::npos ? "ip" : "ip6";
}

std::string set_name(size_t link) {
  return "others" + std::to_string(link);
}

}  // namespace

std::vector<TcpSocket> tcp_sockets(std::string_view text) {
  std::vector<TcpSocket> sockets;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    constexpr size_t kInode = 9;
    TcpSocket socket;
    if (words.size() <= kInode || !read_end(words[1], socket.local, socket.local_port) ||
        !read_end(words[2], socket.remote, socket.remote_port))
      continue;
    socket.state = static_cast<int>(std::strtol(words[3].c_str(), nullptr, 16));
    socket.inode = std::strtoull(words[kInode].c_str(), nullptr, 10);
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

std::vector<TcpSocket> sockets_around(pid_t pid) {
  const std::string net = "/proc/" + std::to_string(pid) + "/net/";
  return tcp_sockets(text_of_file(net + "tcp") + text_of_file(net + "tcp6"));
}

std::map<uint64_t, int> socket_fds(pid_t pid) {
  std::map<uint64_t, int> found;
  std::error_code error;
  const std::string fds = "/proc/" + std::to_string(pid) + "/fd";
  for (std::filesystem::directory_iterator at(fds, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(at->path(), gone).string();
    if (target.starts_with("socket:["))
      found[std::strtoull(&target[8], nullptr, 10)] = std::atoi(at->path().filename().c_str());
  }
  return found;
}

std::string rules_of(const std::string& table, const std::vector<Link>& links) {
  std::ostringstream sets, rules;
  for (size_t i = 0; i < links.size(); ++i) {
    const Link& link = links[i];
    const std::string ip = family(link.here), port = std::to_string(link.port);
    sets << "  set " << set_name(i) << " {\n    type inet_service\n";
    if (!link.spared.empty()) {
      sets << "    elements = {";
      for (const uint16_t spared : link.spared)
        sets << (spared == *link.spared.begin() ? " " : ", ") << spared;
      sets << " }\n";
    }
    sets << "  }\n";
    rules << "    " << ip << " saddr " << link.here << ' ' << ip << " daddr " << link.there
          << " tcp dport " << port << " tcp sport != @" << set_name(i) << " counter drop\n    "
          << ip << " saddr " << link.there << ' ' << ip << " daddr " << link.here << " tcp sport "
          << port << " tcp dport != @" << set_name(i) << " counter drop\n";
  }
  std::string text = "table inet " + table + " {\n" + sets.str();
  for (const char* hook : {"output", "input"})  // on loopback, both directions are output
    text += std::string("  chain ") + hook + " {\n    type filter hook " + hook +
            " priority -150; policy accept;\n" + rules.str() + "  }\n";
  return text + "}\n";
}

uint64_t dropped_of(std::string_view listing) {
  uint64_t packets = 0;
  const Json read = read_json(listing);
  for (const Json& one : at(read, {"nftables"}))
    for (const Json& part : at(one, {"rule", "expr"}))
      packets += static_cast<uint64_t>(number_at(part, {"counter", "packets"}));
  return packets;
}

std::string to_text(const Link& link) {
  const bool six = std::string_view(family(link.there)) == "ip6";
  return link.here + " and " + (six ? "[" + link.there + "]" : link.there) + ":" +
         std::to_string(link.port);
}

Status Cut::possible(const Process& agent) {
  if (geteuid() != 0) return unavailable("a partition needs root on the node");
  if (program().empty())
    return unavailable("a partition needs nft on the node (Debian: apt-get install nftables)");
  Cut cut(agent.pid(), "");
  return cut.find();
}

// Finds the agent's current connections, and other processes' connections to the same place.
Status Cut::find() {
  const std::vector<TcpSocket> sockets = sockets_around(agent_);
  const std::map<uint64_t, int> own = socket_fds(agent_);  // after the sockets, so none is missing
  std::set<uint16_t> listening;
  for (const TcpSocket& socket : sockets)
    if (socket.state == kListening && own.contains(socket.inode))
      listening.insert(socket.local_port);
  links_.clear();
  for (const TcpSocket& socket : sockets) {
    if (socket.state != kEstablished || !own.contains(socket.inode) ||
        listening.contains(socket.local_port))
      continue;
    const bool known = std::any_of(links_.begin(), links_.end(), [&](const Link& link) {
      return link.here == socket.local && link.there == socket.remote &&
             link.port == socket.remote_port;
    });
    if (!known) links_.push_back({socket.local, socket.remote, socket.remote_port, {}});
  }
  if (links_.empty()) return unavailable("the agent has no TCP connection to a coordinator");
  for (Link& link : links_)
    for (const TcpSocket& socket : sockets)
      if ((socket.state == kEstablished || socket.state == kConnecting) && socket.inode != 0 &&
          !own.contains(socket.inode) && socket.local == link.here && socket.remote == link.there &&
          socket.remote_port == link.port)
        link.spared.insert(socket.local_port);
  return Nothing{};
}

Result<Cut> Cut::make(const Process& agent, std::string table) {
  if (Status s = possible(agent); !s) return s.error();
  Cut cut(agent.pid(), "");
  if (Status s = cut.find(); !s) return s.error();
  if (!enter_namespace_of(agent.pid()))
    return unavailable("cannot enter the network namespace of the agent");
  auto done = output_of({program(), "-f", "-"}, rules_of(table, cut.links_), kNftMax);
  if (!done) return unavailable("nft: " + done.error().message);
  cut.table_ = std::move(table);
  return cut;
}

Cut::Cut(Cut&& other) noexcept
    : agent_(other.agent_),
      table_(std::exchange(other.table_, "")),
      links_(std::move(other.links_)) {}

Cut::~Cut() {
  if (!table_.empty()) (void)output_of({program(), "delete", "table", "inet", table_}, "", kNftMax);
}

void Cut::refresh() {
  const std::vector<TcpSocket> sockets = sockets_around(agent_);
  const std::map<uint64_t, int> own = socket_fds(agent_);
  if (own.empty()) return;  // the agent is gone
  std::string more;
  for (size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    for (const TcpSocket& socket : sockets)
      if ((socket.state == kEstablished || socket.state == kConnecting) && socket.inode != 0 &&
          !own.contains(socket.inode) && socket.local == link.here && socket.remote == link.there &&
          socket.remote_port == link.port && link.spared.insert(socket.local_port).second)
        more += "add element inet " + table_ + " " + set_name(i) + " { " +
                std::to_string(socket.local_port) + " }\n";
  }
  if (!more.empty()) (void)output_of({program(), "-f", "-"}, more, kNftMax);
}

uint64_t Cut::dropped() const {
  auto listing = output_of({program(), "-j", "list", "table", "inet", table_}, "", kNftMax);
  return listing ? dropped_of(*listing) : 0;
}

std::string Cut::name() const {
  std::string text;
  for (const Link& link : links_) text += (text.empty() ? "" : ", ") + to_text(link);
  return text;
}

void remove_rules(pid_t pid, const std::string& table) {
  if (geteuid() != 0 || program().empty()) return;
  if (Process::open(pid)) (void)enter_namespace_of(pid);
  (void)output_of({program(), "delete", "table", "inet", table}, "", kNftMax);
}

}  // namespace muster::cli::drill
