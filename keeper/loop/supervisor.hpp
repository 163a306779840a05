// Supervisor: the keeper's loop. Starts and kills processes as the agent orders, and reports to it.
//
// A process is starting (queued, or with a worker of the spawner), running, leaving (its main
// process has ended, descendants may be left), ended, and gone once forgotten. A process that was
// turned away (too late, withdrawn, or no room in the spool) is gone as soon as that is reported.
// Each turn of the loop writes its results to the spool, in one write, before it starts or reports
// anything.
//
// What the spool rejects is kept and retried; ends are reported only once they are in the spool.
// The same loop answers pings, after the write, so a hung loop answers nothing.
//
// Invariant: events name a process by its entry in the spool, never by descriptor or pid.
#pragma once

#include "base/fd.hpp"
#include "keeper/files/output_limit.hpp"
#include "keeper/files/spool.hpp"
#include "keeper/kernel/adopted.hpp"
#include "keeper/kernel/cgroup.hpp"
#include "keeper/protocol.hpp"
#include "keeper/start/spawner.hpp"

#include <csignal>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace muster::keeper {

// The loop's events carry an entry; this value is not one.
constexpr uint64_t kAgentEvent = ~uint64_t{2};

class Supervisor {
 public:
  struct Options {
    int dir_fd = -1;                      // work_dir/keeper
    int listen_fd = -1;                   // its socket
    std::function<int()> listen_again{};  // makes the socket anew
    uint64_t keeper = 0;
    std::string no_limits{};  // why some limits are not enforced, if so
    uint64_t idle_ns = 0;     // exit after this time without processes and agent
    uint64_t output_max_bytes = OutputLimit::kDefaultBytes;  // of a file; 0: no maximum
    const volatile std::sig_atomic_t* sigterms = nullptr;    // number of SIGTERMs received
  };

  // `owners`, `cgroups` may be null.
  Supervisor(Options options, Spool& spool, Outputs& outputs, Spawner& spawner,
             const Owners* owners, Cgroups* cgroups, const Spaces& spaces);
  // Takes over a record of an earlier keeper. If it has no end, writes one, as lost.
  void adopt(Record record);
  void run();  // until the keeper may exit

 private:
  struct Fence {
    uint64_t after_ns = 0;  // the age of the newest contact that triggers it
    int64_t grace_ms = 0;
  };
  enum class State { starting, running, leaving, ended };
  struct Process : Record {
    State state = State::starting;
    bool enqueued = false;  // it is or was queued
    std::unique_ptr<Cgroup> cgroup{};
    core::node::CpuList cpus{};  // as in Spawned
    std::vector<std::string> outputs{};
    std::vector<std::string> written{};  // Spawned::written, until it is watched
    bool killing = false;
    uint64_t kill_at_ns = 0;         // when to SIGKILL, if killing
    bool start_reported = false;     // as in protocol.hpp
    bool committed = false;          // its end is in the spool
    bool unstarted = false;          // as in protocol.hpp
    bool unborn = false;             // it was not past its exec when last looked at
    bool no_exec = false;            // it ended before its exec
    int looks = 0;                   // for leftovers, while leaving
    std::optional<uid_t> user{};     // whom it runs as; absent: our own user
    bool left = true;                // others in its group or cgroup may be alive
    std::set<std::string> joined{};  // ids of the sessions that joined it with a permit
    Fd input{};                      // the write end of its input; none: it reads no more
    uint64_t taken = 0;              // bytes of its input
    bool input_waits = false;        // tell the agent when there is room for input
    bool input_watched = false;      // by the loop
    std::optional<Fence> fence{};    // when the keeper ends it on its own
  };

  void rest();
  void take_news();
  void take_news_at(uint64_t ns);
  Process* find(uint64_t entry);
  template <class Do>
  void for_instances(Key key, Do act);
  Process* host_of(Key session);
  template <class Do>
  void for_sessions(Key host, Do act);
  int timeout_ms() const;
  uint64_t fresh_ns() const;
  void look_for_births();
  void show_start(Process& process);

  void on_spawned(Spawned spawned);
  void on_exited(Exited exited);
  void settle(Process& process);
  void end(Process& process);
  void turn_away(Process& process, std::string why);
  bool withdraw(Process& process, const char* why);
  void drop(Process& process, std::string why);
  void kill(Process& process, int64_t grace_ms);
  void kill_group(const Process& process, int signal);
  void stop();  // kills all; run() returns once they are gone
  void run_timers();
  uint64_t next_fence_ns() const;
  void run_fences();
  void look_for_leftovers();
  bool may_have_left(const Process& process, const Adopted::Stray& stray) const;
  void check_idle();
  void leave_deleted_dir();
  void mend_socket();
  void check_sigterms();
  bool commit();
  void tell_unwritten();

  void accept_agent();
  void drop_agent();
  void read_agent();
  void on_frame(Type type, std::string_view payload);
  void on_hello(Reader in);
  void on_spawn(Reader in, bool enqueued, bool as_owner);
  void on_permit(Reader in);
  void on_fence(Reader in);
  void on_contact(Reader in);
  void on_pods(Reader in, bool keep);
  void tell_full();
  bool read_as(Reader& in, const Key& key, SpawnJob& job);
  std::string refuses_session(Process* host, SpawnJob& job);
  void on_input(Reader in);
  bool take_input(Process& process, std::string_view data);
  void on_room_for_input(uint64_t entry);
  void close_input(Process& process);
  void tell_taken(const Key& key, uint64_t taken, bool closed);
  void remove(const Process& process);
  bool shown(const Key& key) const;
  void tell_start(Process& process);
  void tell_end(Process& process);
  void send();

  const Options options_;
  int listen_fd_ = options_.listen_fd;
  Spool& spool_;
  Outputs& outputs_;
  Spawner& spawner_;
  const Owners* const owners_;
  Cgroups* const cgroups_;
  const Spaces& spaces_;
  Adopted adopted_;
  OutputLimit output_limit_;
  const int epoll_fd_;

  uint64_t now_ns_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<Process>> processes_;
  std::map<Key, Process*> by_key_;
  std::unordered_map<int, uint64_t> by_pid_;  // running and leaving: session leaders
  size_t living_ = 0;                         // starting, running, leaving
  size_t sessions_ = 0;                       // those of them that are sessions
  std::vector<uint64_t> leaving_;
  std::set<std::pair<uint64_t, uint64_t>> kills_;   // when, entry
  std::set<std::pair<uint64_t, uint64_t>> fences_;  // after_ns, entry; living ones only
  std::map<Key, Fence> next_fences_;                // for later orders of this connection
  uint64_t contact_ns_ = 0;                         // the newest; 0: none yet
  std::deque<uint64_t> fresh_;    // running, start neither reported nor in the spool
  std::vector<uint64_t> unborn_;  // likewise, and they may still fail to start
  uint64_t next_unborn_ns_ = 0, unborn_wait_ns_ = 0;  // when to look at these
  std::vector<SpawnJob> jobs_, queue_;                // to be submitted, enqueued after the commit
  std::vector<uint64_t> starts_, ends_;               // to be reported after the commit
  bool unwritten_ = false;                            // the last write to the spool failed
  uint64_t unwritten_since_ns_ = 0;                   // the first in a row that did; 0: none
  size_t ends_told_ = 0;                              // of ends_, before they are written
  bool held_up_ = false;                              // a start takes long: spawner_.rescue()
  bool stopping_ = false;
  std::sig_atomic_t sigterms_seen_ = 0;  // as of the last check
  bool gathers_ = false;              // the spawner's news does not wake the loop until news_at_ns_
  bool news_taken_ = false;           // in this turn
  uint64_t news_at_ns_ = UINT64_MAX;  // when news is taken at the latest
  uint64_t next_scan_ns_ = 0;         // of the adopted
  uint64_t next_check_ns_ = 0, idle_since_ns_ = 0, stop_at_ns_ = 0;

  int agent_fd_ = -1;
  bool greeted_ = false;
  uint32_t agent_version_ = 0;                       // from its hello
  std::optional<uint64_t> pinged_ns_{};              // when the unanswered ping arrived
  std::unordered_map<uint64_t, PermitPtr> permits_;  // of this connection, by the agent's ids
  FrameBuffer in_;
  std::string out_;
  size_t out_done_ = 0;
};

}  // namespace muster::keeper
