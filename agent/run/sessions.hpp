// Sessions: commands that join running pods of this node, for muster-rsh and `muster exec`.
//
// A session is a child of the keeper, like the processes of pods: it outlives the agent, ends
// before its pod does, and writes to files (POD.CONTAINER~N.stdout), which are read here and sent.
// So it is found again after a restart of agent or coordinator, and its output is sent from the
// offset that the reader names. Its input goes to the keeper, from the offset that the keeper has
// reached; none is kept here.
//
// Invariants: a session is started once; it is forgotten when its reader says so, or when it has
// had no reader for kUnheldMs while this node was connected.
//
// Belongs to the agent's KJ thread.
#pragma once

#include "agent/files/logs.hpp"
#include "agent/run/executor.hpp"
#include "core/node/pod_template.hpp"

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <schema/agent.capnp.h>
#include <string>
#include <vector>

namespace muster::agent {

class Sessions final : public Executor::SessionListener {
 public:
  static constexpr Millis kUnheldMs = 60'000;

  Sessions(kj::UnixEventPort& port, kj::Timer& timer, Executor& executor, LogStore& logs);
  ~Sessions() noexcept(false) override;

  // The command, running or ended, or why there is none. Without words, only a command that was
  // started before.
  struct Command {
    std::vector<std::string> words;
    bool reads = false;                   // its input comes from Process.write
    bool terminal = false;                // it has a terminal
    std::optional<uint16_t> container{};  // in the template; absent: the first, no init container
  };
  Result<wire::Process::Client> join(const core::node::PodTemplatePtr& job, PodId pod,
                                     const std::string& id, Command command,
                                     core::node::DeviceMapPtr devices);
  // Whether join() would find a command of this pod.
  bool has(const std::string& id, PodId pod) const;
  // Call it every kCheckMs. `connected`: whether readers could have reached this
  // node since the last check.
  static constexpr Millis kCheckMs = 5'000;
  void check(bool connected);

  void on_session_ended(const Executor::SessionEnd& end) override;
  void on_session_input(const Executor::SessionKey& key, uint64_t taken, bool closed) override;
  // What the keeper has at a (re)connect; sessions that it does not list are lost.
  void on_sessions(std::vector<Executor::SessionFound> found) override;

 private:
  class Server;
  struct Taken {                      // of the input
    std::optional<uint64_t> bytes{};  // so far; nullopt: unknown
    bool closed = false;
  };
  struct Session {
    std::string id;
    Executor::SessionKey key;
    std::string job_uid, pod_name, log;  // where its output is
    std::optional<Executor::SessionEnd> end{};
    bool ending = false;   // forgotten once it has ended
    bool writing = false;  // its logs are held
    uint64_t writes = 0;   // to its output, as far as noticed
    unsigned holders = 0;
    Millis unheld_ms = 0;
    kj::Maybe<kj::Own<kj::PromiseFulfiller<Taken>>> writer{};  // the waiting write
  };
  struct Waiting {  // a read for which there was nothing yet
    std::string id;
    kj::Own<kj::PromiseFulfiller<void>> wake;
  };

  using ReadCall = capnp::CallContext<wire::Process::ReadParams, wire::Process::ReadResults>;
  // Answers at `until` even if there is nothing.
  kj::Promise<void> read(const std::string& id, ReadCall context, kj::TimePoint until);
  kj::Promise<void> wait(const std::string& id, ReadCall context, kj::TimePoint until,
                         uint64_t before);
  using WriteCall = capnp::CallContext<wire::Process::WriteParams, wire::Process::WriteResults>;
  kj::Promise<void> write(const std::string& id, WriteCall context, kj::TimePoint until);
  static void answer_writer(Session& session, Taken taken);
  kj::Promise<LogChunk> chunk(const LogName& name, uint64_t offset, size_t limit);
  void end(const std::string& id);
  void forget(const std::string& id);
  void hold(const std::string& id, int change);
  void wake(const std::string& id);
  std::optional<uint16_t> next_number(PodId pod, const std::string& job_uid,
                                      const std::string& pod_name, const std::string& container);
  void watch(const std::string& job_uid);
  kj::Promise<void> watch_files();
  Session* find(const Executor::SessionKey& key);

  kj::UnixEventPort& port_;
  kj::Timer& timer_;
  Executor& executor_;
  LogStore& logs_;
  std::map<std::string, Session> sessions_;  // by id
  std::map<PodId, uint16_t> numbers_;        // last given
  std::list<Waiting> waiting_;
  kj::AutoCloseFd inotify_;
  std::map<std::string, int> watched_;  // folders of logs, by the uid of their job
  kj::Maybe<kj::UnixEventPort::FdObserver> observer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  kj::Promise<void> watching_ = kj::READY_NOW;
};

}  // namespace muster::agent
