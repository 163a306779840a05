// Cut: drops every packet between one agent and its coordinator, with nftables, on the agent's
// machine and in its network namespace. Needs root and nft.
//
// The rules match both addresses and the coordinator's port, and exempt the source ports of other
// processes, so other agents on the machine stay connected. A new connection is dropped until its
// owner is known, so the agent never gets one through. Both directions are dropped and counted.
#pragma once

#include "base/result.hpp"
#include "drill/process/process.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli::drill {

// A row of /proc/PID/net/tcp or tcp6.
struct TcpSocket {
  std::string local, remote;  // addresses; an IPv4-mapped IPv6 address as IPv4
  uint16_t local_port = 0, remote_port = 0;
  int state = 0;  // as in the kernel's tcp_states.h: 1 established, 2 being connected, 10 listening
  uint64_t inode = 0;
  bool operator==(const TcpSocket&) const = default;
};
// Skips lines that are not rows.
std::vector<TcpSocket> tcp_sockets(std::string_view text);
// The TCP sockets of the process's network namespace.
std::vector<TcpSocket> sockets_around(pid_t pid);
// The process's descriptors of sockets, by inode; empty: it is gone or another user's.
std::map<uint64_t, int> socket_fds(pid_t pid);

// What is cut: all packets between `here` and `there` on port `port`, except those of `spared`.
struct Link {
  std::string here, there;
  uint16_t port = 0;
  std::set<uint16_t> spared;  // ports of `here`
};
// The rules, for `nft -f -`.
std::string rules_of(const std::string& table, const std::vector<Link>& links);
// Packets dropped so far, from the output of `nft -j list table`.
uint64_t dropped_of(std::string_view listing);
// "10.0.0.7 and 10.0.0.1:7444"
std::string to_text(const Link& link);

class Cut {
 public:
  // unavailable: not possible here; says what is needed.
  static Status possible(const Process& agent);
  // Enters the agent's network namespace for good. unavailable: nothing was cut.
  static Result<Cut> make(const Process& agent, std::string table);
  Cut(Cut&& other) noexcept;
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;
  ~Cut();  // removes the rules

  // Spares other processes' new connections. Call it every few milliseconds.
  void refresh();
  // Packets dropped; 0 if they cannot be counted.
  uint64_t dropped() const;
  std::string name() const;

 private:
  Cut(pid_t agent, std::string table) : agent_(agent), table_(std::move(table)) {}
  Status find();

  pid_t agent_;
  std::string table_;  // empty: moved from
  std::vector<Link> links_;
};

// Removes rules that a drill has left in this process's network namespace, or in ours if the
// process is gone.
void remove_rules(pid_t pid, const std::string& table);

}  // namespace muster::cli::drill
