// Looking: fills the facts that are judged. Reads, and writes nothing but a file without a name in
// the directories whose disk it measures.
#pragma once

#include "agent/agent.hpp"
#include "base/result.hpp"
#include "cli/doctor/client.hpp"
#include "cli/doctor/head.hpp"
#include "cli/doctor/node.hpp"
#include "client/connect/response.hpp"
#include "client/settings/target.hpp"
#include "coordinator/coordinator.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli::doctor {

// How thoroughly a node is looked at: an agent that starts wants only what breaks pods, and waits
// for no disk, name server or other machine.
enum class Depth { breaking_pods, all };

ClientFacts look_at_client(const Target& target);
NodeFacts look_at_node(const agent::AgentOptions& options, Depth depth);
// `peers`: --peers; empty: it is alone.
HeadFacts look_at_head(const coordinator::Options& options, const std::string& peers);

// The agent and the keeper that run on this work-dir.
KeeperFacts look_at_keeper(const std::string& work_dir);
// The process of the coordinator that runs on this data-dir, by its endpoints.json; 0: none does.
// unavailable: that file may not be read.
Result<int> coordinator_of(const std::string& data_dir);
// Whether the executable of a process has been replaced or removed, if we may know.
bool is_outdated(int pid);
// The command line of a process; empty: not known.
std::vector<std::string> command_of(int pid);

// Of one thing.
// `thorough`: also measures its disk and asks for the owner's name, which may take a while.
PlaceFacts look_at_place(const std::string& path, bool thorough);
LimitFacts look_at_limits(int pid, std::string whose);  // pid 0: this process
HostFacts look_up(const std::string& address);          // HOST:PORT, https://HOST:PORT, unix:PATH
Reply reply_of(const Result<Response>& response, const std::string& address);
CertificateFacts look_at_certificate(const std::string& path);
MungeFacts look_at_munge(const std::string& socket);

// From a mount table in the format of /proc/self/mountinfo: the type of the file system of an
// absolute path without links. Empty: not known.
std::string type_of_mount(std::string_view mounts, const std::string& path);
// From a list of locks in the format of /proc/locks: the processes that hold one on this inode.
// Devices are not compared, since those of some file systems differ from stat(2)'s.
std::vector<int> holders_of(std::string_view locks, uint64_t inode);
// The value of a metric without labels, or with exactly these, from the text of /metrics.
std::optional<double> metric(std::string_view text, std::string_view series);

// The whole file, or what can be read of it; empty: it cannot be read (errno says why).
std::string text_of_file(const std::string& path);
// The name of a running process (/proc/PID/comm); empty: there is no such process.
std::string process_name(int pid);

}  // namespace muster::cli::doctor
