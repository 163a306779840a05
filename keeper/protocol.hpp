// Protocol: the messages between agent and keeper on work_dir/keeper/socket.
//
//   frame   := length:u32 type:u8 payload        length counts type and payload
//   agent   := hello (spawn | kill | forget | end_all | ping | room | enqueue | withdraw | permit |
//              spawn_as | enqueue_as | input | fence | contact | release | keep |
//              signal)*
//   keeper  := refused
//            | welcome (living | ended)* inventory_done (started | ended | pong | taken | full)*
//
// A keeper of several users also answers the agent on work_dir/keeper/output_socket, a packet
// socket. There it opens outputs for reading, since outputs are private to their owners:
//
//   request := job_uid:text pod_name:text container:text stderr:u8
//   answer  := error:text         with the descriptor, if there is such a file
//
// One request and one answer per connection.
//
// One record per frame. Times are sent as ages in milliseconds, except not_after and that of a
// contact: an age would grow stale in the socket of a frozen process, so these are instants of
// CLOCK_BOOTTIME, which all processes of a machine share. bytes.hpp encodes numbers and texts.
//
// Invariant: the keeper works with agents of other versions, so a new version only adds types, or
// fields at the end of a payload; a reader ignores what follows the fields it knows. The client
// says hello with kVersion and, while it is refused, with each earlier version in turn.
#pragma once

#include "base/bytes.hpp"
#include "core/ids.hpp"
#include "core/node/values.hpp"

#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace muster::keeper {

constexpr uint32_t kVersion = 17;       // newest version spoken
constexpr uint32_t kOldestVersion = 1;  // oldest version accepted
constexpr uint32_t kSpoolVersion = 3;   // newest version of the spool's segments (spool_format.hpp)

// The first version in which ...
constexpr uint32_t kHooks = 17;        // with permits, too, pods have a prolog and an epilog
constexpr uint32_t kBinds = 16;        // processes can have CPUs for themselves
constexpr uint32_t kSaysVersion = 15;  // the welcome says which version of muster the keeper is
constexpr uint32_t kFiles = 14;  // processes write to files and get signals; ends say what was used
constexpr uint32_t kTemplates =
    13;  // permits come with the bytes of a template, orders with settings
constexpr uint32_t kConfines = 12;     // processes give up privileges
constexpr uint32_t kSpaces = 11;       // the keeper makes pods' directories and mounts
constexpr uint32_t kFences = 10;       // the keeper ends processes on its own
constexpr uint32_t kInput = 9;         // processes can have input
constexpr uint32_t kSessions = 8;      // the agent knows about sessions
constexpr uint32_t kOpensOutputs = 7;  // the agent need not read outputs itself

constexpr uint32_t kFrameMax = 64u << 20;
constexpr size_t kFrameHead = 4;
constexpr size_t kPermitsMax = 10'000;  // held by a keeper; one more, and it drops them all

// What a keeper can do on its machine; bits in its welcome.
constexpr uint8_t kCanCgroup = 1;
constexpr uint8_t kCanLimitMemory = 2;
constexpr uint8_t kCanLimitCpu = 4;
constexpr uint8_t kCanMount = 16;  // gives processes their own mounts
constexpr uint8_t kCanRunAs = 8;   // starts processes of several users, with permits only

// What a process reads; bits in its spawn. With neither, its standard input is /dev/null.
constexpr uint8_t kReadsInput = 1;
constexpr uint8_t kReadsTerminal = 2;  // a terminal; framed (base/terminal_input.hpp)

// The keeper's exit codes.
constexpr int kExitDamaged = 3;  // the spool is damaged beyond a torn tail
constexpr int kExitLocked = 4;   // another keeper has this work-dir
constexpr int kExitFailed = 5;   // no access to the directory, socket or spool; the log says why

enum class Type : uint8_t {
  hello = 1,     // version:u32 cluster_id:text
  spawn,         // key note:text cwd stdout stderr:text argc:u32 argv:text* envc:u32 env:text*
                 // memory_bytes:u64 cpu_millis:u64 contained:u8 (since version 2; 0: no limit)
                 // not_after_ms:i64 (since version 3; 0: none)
                 // secrets:u32 (variable:text path:text optional:u8)* (since version 6)
                 // reads:u8 (since version 9)
                 // space:text (since version 11; core/node/space.hpp; empty: none)
                 // none_new:u8 dropped:u64 (since version 12; keeper/kernel/privileges.hpp)
                 // settings:text (since version 13; core/node/template_codec.hpp; empty: none)
                 // cpus:u32 (since version 16): how many it gets for itself; with fewer free, it
                 // runs without. 0: none. A session runs where its container does.
  kill,          // key grace_ms:i64
  forget,        // entry:u64
  end_all,       // -
  ping,          // - (since version 3)
  room,          // count:u32 (since version 4): how many enqueued processes may live at once
  enqueue,       // as spawn, but it is queued: the keeper starts it while fewer of them than `room`
                 // live; jobs take turns, each in its order of arrival (since version 4)
  withdraw,      // key (since version 4): if it is still queued, it ends as unstarted
  permit,        // id:u64 permit:text signature:text (since version 5): for later orders of this
                 // connection
                 // job:text (since version 13): its template's bytes; empty: it has its own
  spawn_as,      // key note:text permit:u64 memory_bytes:u64 cpu_millis:u64 contained:u8
                 // not_after_ms:i64 devices:u32 (name:text count:u32 number:u32*)*
                 // (since version 5)
                 // run:text leader:text iface:text (since version 8; core/node/mpi.hpp, `run` is
                 // a name of 32 hexadecimal digits below work_dir/run; empty: none)
                 // private_tmp:u8 (since version 11): even if its permit does not ask for it
                 // cpus:u32 (since version 16): as in spawn
  enqueue_as,    // as spawn_as, but queued, like enqueue (since version 5)
  input,         // key offset:u64 eof:u8 data:text (since version 9): its input from `offset` on.
                 // Bytes that were taken before are ignored; of the others, as many are taken as
                 // the process's pipe has room for. `eof`: nothing follows. Answered by taken: at
                 // once or, if nothing could be taken, when there is room, and then the agent
                 // sends it again.
  fence,         // key after_ms:i64 grace_ms:i64 (since version 10): the next order with this key
                 // starts a process that the keeper ends, with this grace, when the newest contact
                 // is that old
  contact,       // at_ms:i64 (since version 10): the coordinator answered what was sent then
  release,       // count:u32 pod* (since version 11): these are over; removes their directories
  keep,          // count:u32 pod* (since version 11): removes the directories of all others
                 // pod := job:u64 index:u32 attempt:u32
  signal,        // key number:u8 first_only:u8 (since version 14): to the process, or to its group
  welcome = 64,  // version:u32 can:u8 (since version 2)
                 // no_limits:text (why `can` lacks a limit; may be absent)
                 // scratch:text no_scratch:text no_mounts:text (since version 11): where pods'
                 // directories are, else why there are none; why `can` lacks mounts
                 // memory:text (since version 12): where in-memory ones are; empty: nowhere
                 // program:text (since version 15): the version of muster
  refused,       // why:text
  living,        // key pid:i32 age_ms:i64 killing:u8 note:text
                 // enqueued:u8 (since version 4)
                 // cpus:text (since version 16): that it has for itself, as "0-3,8"
  inventory_done,  // -
  started,         // key pid:i32 age_ms:i64
                   // cpus:text (since version 16): as in living
  ended,           // see Ended
  pong,            // unwritten:text (since version 3)
  taken,           // key taken:u64 closed:u8 (since version 9): bytes taken so far; `closed`: no
                   // more will be, because the input or the process has ended or nobody reads it
  full,            // pod volume:text used:u64 limit:u64 (since version 11): it exceeds its limit
};

// In Key::container: the process is a session, a command that joins that container while it runs
// (`muster exec`, muster-rsh), and `instance` is its number. It is started only while the
// container's process runs, and ends before that process is reported as ended. Since version 8.
constexpr uint16_t kSessionBit = 0x8000;

// core::node::kProlog or kEpilog: a program of the site, before or after the pod's containers. With
// a permit, it is the keeper's own (Owners::hook()), since version 17; else it is ordered like any
// other process.

// A process: `instance` counts restarts in place.
struct Key {
  uint64_t job = 0;
  uint32_t index = 0, attempt = 0;
  uint16_t container = 0, instance = 0;
  auto operator<=>(const Key&) const = default;
  bool session() const { return (container & kSessionBit) != 0; }
  PodId pod() const { return {job, index, attempt}; }
  core::node::Step step() const { return {container, instance}; }
  static Key of(PodId pod, core::node::Step step) {
    return {pod.job, pod.index, pod.attempt, step.container, step.instance};
  }

  void write(Writer& out) const {
    out.num(job).num(index).num(attempt).num(container).num(instance);
  }
  static Key read(Reader& in) {
    Key key;
    key.job = in.num<uint64_t>();
    key.index = in.num<uint32_t>();
    key.attempt = in.num<uint32_t>();
    key.container = in.num<uint16_t>();
    key.instance = in.num<uint16_t>();
    return key;
  }
};

inline void write_pod(Writer& out, PodId pod) {
  out.num(pod.job).num(pod.index).num(pod.attempt);
}

inline PodId read_pod(Reader& in) {
  PodId pod;
  pod.job = in.num<uint64_t>();
  pod.index = in.num<uint32_t>();
  pod.attempt = in.num<uint32_t>();
  return pod;
}

// How long ago a process started. In frames, pid 0 stands for none.
struct ReportedStart {
  int32_t pid = 0;
  int64_t age_ms = 0;

  static std::optional<ReportedStart> from(int32_t pid, int64_t age_ms) {
    return pid == 0 ? std::nullopt : std::optional(ReportedStart{pid, age_ms});
  }
  static std::optional<ReportedStart> read(Reader& in) {
    const auto pid = in.num<int32_t>();
    return from(pid, in.num<int64_t>());
  }
  static void write(Writer& out, const std::optional<ReportedStart>& start) {
    const ReportedStart reported = start.value_or(ReportedStart{});
    out.num(reported.pid).num(reported.age_ms);
  }
};

// The end of a process as a frame carries it. Its times are instants of CLOCK_BOOTTIME, and ages in
// the frame. `entry` is absent, and `lost` set for earlier agents, if it is `unstarted`; `origin`
// is what the note says.
struct Ended : core::node::ProcessEnd {
  bool start_reported = false;  // this connection has already carried its start (a started or
                                // living frame, or an earlier end)
  std::string note{};

  Key key() const { return Key::of(pod, step); }
  // `now`: milliseconds of CLOCK_BOOTTIME.
  void write(Writer& out, Millis now) const {
    key().write(out);
    out.num(entry.value_or(0)).num(int32_t{start ? start->pid : 0});
    out.num(int32_t{exit_code}).num(int32_t{signal}).num(uint8_t{lost || unstarted});
    out.num(uint8_t{start_reported}).num(int64_t{start ? age_at(now, start->at).ms : 0});
    out.num(int64_t{age_at(now, ended_at).ms}).text(error).text(note);
    out.num(uint8_t{out_of_memory}).num(uint8_t{unstarted}).num(uint8_t{fenced});
    out.num(used.user_us).num(used.system_us).num(used.peak_bytes);
  }
  static Ended read(Reader& in, Millis now) {
    Ended end;
    const Key key = Key::read(in);
    end.pod = key.pod();
    end.step = key.step();
    if (const auto entry = in.num<uint64_t>(); entry != 0) end.entry = entry;
    const auto pid = in.num<int32_t>();
    end.exit_code = in.num<int32_t>();
    end.signal = in.num<int32_t>();
    end.lost = in.num<uint8_t>() != 0;
    end.start_reported = in.num<uint8_t>() != 0;
    const auto start_age_ms = in.num<int64_t>();
    if (pid != 0) end.start = {pid, now - start_age_ms};
    end.ended_at = now - in.num<int64_t>();
    end.error = in.text();
    end.note = in.text();
    // Since version 2, 3, 10 and 14.
    end.out_of_memory = !in.rest().empty() && in.num<uint8_t>() != 0;
    end.unstarted = !in.rest().empty() && in.num<uint8_t>() != 0;
    end.fenced = !in.rest().empty() && in.num<uint8_t>() != 0;
    if (!in.rest().empty()) {
      end.used.user_us = in.num<uint64_t>();
      end.used.system_us = in.num<uint64_t>();
      end.used.peak_bytes = in.num<uint64_t>();
    }
    return end;
  }
};

// Identifies an output of a pod.
struct OutputName {
  std::string job_uid, pod_name, container;
  bool err = false;

  void write(Writer& out) const {
    out.text(job_uid).text(pod_name).text(container).num(uint8_t{err});
  }
  static OutputName read(Reader& in) {
    OutputName name;
    name.job_uid = in.text();
    name.pod_name = in.text();
    name.container = in.text();
    name.err = in.num<uint8_t>() != 0;
    return name;
  }
};
constexpr const char* kSocketName = "socket";
constexpr const char* kOutputSocket = "output_socket";
constexpr size_t kOutputPacketMax = 4096;

// A frame being appended to `out`; the destructor fills in its length.
class Frame : public Writer {
 public:
  Frame(std::string& out, Type type) : Writer(out), bytes_(out), start_(out.size()) {
    num(uint32_t{0}).num(static_cast<uint8_t>(type));
  }
  ~Frame() {
    auto length = static_cast<uint32_t>(bytes_.size() - start_ - kFrameHead);
    std::memcpy(bytes_.data() + start_, &length, sizeof length);
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

 private:
  std::string& bytes_;
  size_t start_;
};

// Received bytes, cut into frames.
class FrameBuffer {
 public:
  void append(const char* bytes, size_t size) { bytes_.append(bytes, size); }
  // False: no complete frame yet. The payload is valid until the next call of any method.
  bool next(Type& type, std::string_view& payload) {
    uint32_t length = 0;
    if (bytes_.size() - done_ >= kFrameHead)
      std::memcpy(&length, bytes_.data() + done_, sizeof length);
    if (length == 0 || bytes_.size() - done_ - kFrameHead < length) {
      broken_ =
          broken_ || length > kFrameMax || (length == 0 && bytes_.size() - done_ >= kFrameHead);
      bytes_.erase(0, done_);
      done_ = 0;
      return false;
    }
    type = static_cast<Type>(bytes_[done_ + kFrameHead]);
    payload = std::string_view(bytes_).substr(done_ + kFrameHead + 1, length - 1);
    done_ += kFrameHead + length;
    return true;
  }
  bool broken() const { return broken_; }  // the bytes are not a valid frame

 private:
  std::string bytes_;
  size_t done_ = 0;
  bool broken_ = false;
};

}  // namespace muster::keeper
