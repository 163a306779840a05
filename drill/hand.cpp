#include "drill/hand.hpp"

#include "base/files/private_files.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/text.hpp"
#include "drill/process/cut.hpp"
#include "drill/process/process.hpp"
#include "drill/proof/scenario.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <poll.h>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::cli::drill {
namespace {

namespace fs = std::filesystem;

constexpr Millis kHandGoneMax = 10'000, kHandStoppedMax = 2'000;
constexpr Millis kCutLook = 20;          // between checks for other processes' connections
constexpr size_t kHandLogMax = 100'000;  // bytes of each log
constexpr Millis kLockMax = 5'000;       // until an interrupted drill's hand is done
constexpr int kVanishedMax = 20;         // attempts, 10 ms apart
constexpr char kRootNotes[] = "/run/muster-drill", kNoteName[] = "note";

std::string program_of(const Process& process) {
  return fs::path(process.executable()).filename().string();
}

// The process's open files whose paths end in `name`.
std::vector<std::string> open_files(pid_t pid, const std::string& name) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at("/proc/" + std::to_string(pid) + "/fd", error), end;
       !error && at != end; at.increment(error)) {
    std::error_code gone;
    std::string target = fs::read_symlink(at->path(), gone).string();
    if (target.ends_with(name)) found.push_back(std::move(target));
  }
  return found;
}

std::string value_in(const std::string& text, const std::string& key) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key + " ")) return line.substr(key.size() + 1);
  return "";
}

struct Found {
  std::optional<Process> agent, keeper;
  std::string work_dir;
};

// The keeper holds its lock. So do its children until they exec, but their parent is the keeper.
std::optional<Process> keeper_below(const std::string& work_dir) {
  const std::string lock = work_dir + "/keeper/lock";
  const auto is_keeper = [&lock](pid_t pid) {
    auto process = Process::open(pid);
    return process && program_of(*process) == "muster-keeper" && !open_files(pid, lock).empty();
  };
  for (const pid_t pid : all_pids()) {
    if (!is_keeper(pid)) continue;
    const auto facts = facts_of(pid);
    if (!facts || facts->state == 'Z' || is_keeper(facts->parent)) continue;
    auto process = Process::open(pid);
    if (process && process->start_ticks() == facts->start_ticks) return std::move(*process);
  }
  return std::nullopt;
}

Result<Found> find_node(const std::string& uid) {
  Found found;
  for (const pid_t pid : all_pids()) {
    const std::vector<std::string> words = command_of(pid);
    if (words.size() < 2 || words[1] != "agent") continue;
    auto process = Process::open(pid);
    if (!process || !program_of(*process).starts_with("muster")) continue;
    if (geteuid() != 0 && process->owner() != geteuid()) continue;
    for (const std::string& lock : open_files(pid, "/lock")) {
      const std::string work_dir = fs::path(lock).parent_path().string();
      if (value_in(text_of_file(work_dir + "/identity"), "id") != uid || process->gone()) continue;
      found.agent = std::move(*process);
      found.work_dir = work_dir;
      found.keeper = keeper_below(work_dir);
      return found;
    }
  }
  return Error{Errc::not_found,
               "no agent of this node runs on this machine as " +
                   std::string(geteuid() == 0 ? "any user" : "our user"),
               {}};
}

Json facts(const Process& process) {
  return {{"pid", process.pid()},
          {"ticks", process.start_ticks()},
          {"uid", process.owner()},
          {"executable", process.executable()}};
}

// The process's systemd unit; empty: none.
std::string unit_of(pid_t pid) {
  std::istringstream lines(text_of_file("/proc/" + std::to_string(pid) + "/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    std::string last = line.substr(line.rfind('/') + 1);
    if (last.ends_with(".service")) return last;
  }
  return "";
}

std::string table_of(const std::string& uid) {
  return "muster_drill_" + uid.substr(0, 16);
}

void say(const Json& json) {
  std::cout << dumped(json) << std::endl;
}

int refuse(const std::string& why) {
  say({{"error", why}});
  return 1;
}

// Waits until the drill says to go on (true) or is gone (false), calling `meanwhile` repeatedly.
bool asked_to_go_on(const std::function<void()>& meanwhile = {}) {
  for (;;) {
    pollfd in{STDIN_FILENO, POLLIN, 0};
    const int n = poll(&in, 1, meanwhile ? static_cast<int>(kCutLook) : -1);
    if (n == 1) {
      char byte = 0;
      const ssize_t got = read(STDIN_FILENO, &byte, 1);
      if (got == 1) return true;
      if (got == 0 || errno != EINTR) return false;
    }
    if (meanwhile) meanwhile();
  }
}

// What must be undone, in a file that only our user can have written. Locked by one hand at a time,
// together with its watcher.
class Note {
 public:
  static Result<Note> of(const Found& found, const std::string& uid) {
    // For root, outside the work-dir, which belongs to the agent's user.
    const std::string dir =
        geteuid() == 0 ? std::string(kRootNotes) + "/" + uid : found.work_dir + "/drill";
    for (const Millis until = boot_now() + kLockMax;; usleep(10'000)) {
      auto opened = open_private_dir(dir, "the drill's directory");
      if (!opened) return opened.error();
      const bool locked = flock(opened->get(), LOCK_EX | LOCK_NB) == 0;
      struct stat st {};
      if (locked && fstat(opened->get(), &st) == 0 && st.st_nlink > 0)
        return Note(std::move(*opened), dir);
      if (!locked && boot_now() >= until) return unavailable("another drill is in progress here");
    }
  }
  Note(Note&&) = default;
  ~Note() {
    // Keep the common parent: another drill's hand may be about to create its folder there.
    if (dir_) rmdir(path_.c_str());  // fails if there is a note in it
  }

  std::optional<Json> read() const {
    const auto text = read_private_file(dir_.get(), kNoteName);
    if (!text) return std::nullopt;
    return read_json(*text);
  }
  Status write(const Process& process, const char* fault) const {
    return replace_private_file(
        dir_.get(), kNoteName,
        dumped(Json{{"fault", fault}, {"pid", process.pid()}, {"ticks", process.start_ticks()}}));
  }
  void erase() const { unlinkat(dir_.get(), kNoteName, 0); }

 private:
  Note(Fd dir, std::string path) : dir_(std::move(dir)), path_(std::move(path)) {}
  Fd dir_;
  std::string path_;
};

// Undoes what the note says and returns a description; empty: nothing was left.
std::string mend(const Note& note, const std::string& uid) {
  const auto left = note.read();
  if (!left) return "";
  const auto pid = static_cast<pid_t>(number_at(*left, {"pid"}));
  auto process = Process::open(pid);
  if (process && process->start_ticks() == static_cast<uint64_t>(number_at(*left, {"ticks"}))) {
    (void)process->send(SIGCONT);
  }
  const std::string fault = text_at(*left, {"fault"});
  if (fault == name(Fault::partition)) remove_rules(pid, table_of(uid));
  note.erase();
  return fault + " of pid " + std::to_string(pid);
}

class Hand {
 public:
  Hand(Found found, std::string uid, Note note)
      : found_(std::move(found)), uid_(std::move(uid)), note_(std::move(note)) {}

  int look() const {
    Json json = {{"agent", facts(*found_.agent)},
                 {"workDir", found_.work_dir},
                 {"left", note_.read().has_value()}};
    if (found_.keeper) {
      json["keeper"] = facts(*found_.keeper);
      json["pods"] = descendants(found_.keeper->pid()).size();
    }
    if (const std::string unit = unit_of(found_.agent->pid()); !unit.empty()) json["unit"] = unit;
    if (Status s = Cut::possible(*found_.agent); !s) json["noCut"] = s.error().message;
    say(json);
    return 0;
  }

  int logs(const std::string& job_uid) const {
    Json logs = Json::object();
    std::error_code error;
    constexpr std::string_view kSuffix = ".main.stdout";
    for (fs::directory_iterator at(found_.work_dir + "/logs/" + job_uid, error), end;
         !error && at != end; at.increment(error)) {
      const std::string file = at->path().filename().string();
      if (!file.ends_with(kSuffix)) continue;
      logs[file.substr(0, file.size() - kSuffix.size())] =
          cut(text_of_file(at->path()), kHandLogMax);
    }
    // Bytes that are not UTF-8 are not the canary's.
    std::cout << Json{{"logs", logs}}.dump(-1, ' ', false, Json::error_handler_t::replace)
              << std::endl;
    return 0;
  }

  int digest() const {
    say({{"sha256", digest_of(*found_.agent)}});
    return 0;
  }

  int leave() const {
    (void)found_.agent->send(SIGUSR2);
    if (!found_.agent->wait_gone(kHandGoneMax)) return refuse("the agent has not ended");
    say({{"left", true}});
    return 0;
  }

  int kill_agent() const {
    (void)found_.agent->send(SIGKILL);
    const bool gone = found_.agent->wait_gone(kHandGoneMax);
    say({{"hit", "agent " + found_.agent->name()}});
    if (!asked_to_go_on()) return 1;
    std::string proof = "agent " + found_.agent->name() + (gone ? " is gone" : " has not ended");
    if (found_.keeper)
      proof += found_.keeper->gone() ? "; its keeper also ended" : "; its keeper keeps running";
    return over(gone, proof);
  }

  int kill_keeper() const {
    if (!found_.keeper) return refuse("the node has no keeper: no pod runs there");
    (void)found_.keeper->send(SIGKILL);
    const bool gone = found_.keeper->wait_gone(kHandGoneMax);
    say({{"hit", "keeper " + found_.keeper->name()}});
    if (!asked_to_go_on()) return 1;
    return over(gone, "keeper " + found_.keeper->name() + (gone ? " is gone" : " has not ended"));
  }

  int freeze_agent() const {
    const Process& agent = *found_.agent;
    if (Status s = note_.write(agent, name(Fault::agent_freeze)); !s)
      return refuse(s.error().message);
    bool stopped = false;
    Millis held_ms = 0;
    bool wanted = false;
    {
      const Frozen frozen(agent);
      stopped = agent.wait_state('T', kHandStoppedMax);
      const Millis begin = boot_now();
      say({{"hit", "agent " + agent.name()}});
      wanted = asked_to_go_on();
      held_ms = boot_now() - begin;
      stopped = stopped && agent.state() == 'T';
    }
    note_.erase();
    if (!wanted) return 1;
    return over(stopped, "agent " + agent.name() + ": state " +
                             (stopped ? "T for " + std::to_string(held_ms) + " ms"
                                      : "was not T the whole time"));
  }

  // The agent is stopped before its keeper and pods are killed, so that it does not report their
  // ends, and killed afterwards.
  int lose_node() const {
    if (!found_.keeper) return refuse("the node has no keeper: no pod runs there");
    const Process &agent = *found_.agent, &keeper = *found_.keeper;
    if (Status s = note_.write(agent, name(Fault::node_loss)); !s) return refuse(s.error().message);
    bool gone = false, wanted = false;
    size_t count = 0;
    {
      const Frozen frozen(agent);
      gone = agent.wait_state('T', kHandStoppedMax);
      (void)keeper.send(SIGSTOP);  // so that it does not see its pods end
      keeper.wait_state('T', kHandStoppedMax);
      const std::vector<Process> pods = descendants(keeper.pid());
      count = pods.size();
      for (const Process& pod : pods) (void)pod.send(SIGKILL);
      (void)keeper.send(SIGKILL);
      gone = keeper.wait_gone(kHandGoneMax) && gone;
      for (const Process& pod : pods) gone = pod.wait_gone(kHandGoneMax) && gone;
      say({{"hit", "keeper " + keeper.name()}});
      wanted = asked_to_go_on();
      if (wanted) {
        (void)agent.send(SIGKILL);
        gone = agent.wait_gone(kHandGoneMax) && gone;
      }
    }
    note_.erase();
    if (!wanted) return 1;
    return over(gone, "agent " + agent.name() + ", keeper " + keeper.name() + " and " +
                          std::to_string(count) + " processes of pods " +
                          (gone ? "are gone" : "were killed, but some are still running"));
  }

  int cut_off() const {
    if (Status s = note_.write(*found_.agent, name(Fault::partition)); !s)
      return refuse(s.error().message);
    // The watcher removes the rules if we are killed.
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return refuse("cannot make a pipe");
    const pid_t watcher = fork();
    if (watcher == 0) {
      setsid();
      close(ends[1]);
      char byte = 0;
      ssize_t n = 0;
      while ((n = read(ends[0], &byte, 1)) < 0 && errno == EINTR) {
      }
      if (n == 0) mend(note_, uid_);
      _exit(0);
    }
    close(ends[0]);
    const Fd to_watcher(ends[1]);
    const auto dismiss = [&] {
      note_.erase();
      (void)!::write(to_watcher.get(), "x", 1);
      if (watcher > 0) waitpid(watcher, nullptr, 0);
    };
    uint64_t dropped = 0;
    std::string what;
    bool wanted = false;
    {
      auto made = Cut::make(*found_.agent, table_of(uid_));
      if (!made) {
        dismiss();
        return refuse(made.error().message);
      }
      what = made->name();
      say({{"hit", what}});
      wanted = asked_to_go_on([&made] { made->refresh(); });
      dropped = made->dropped();
    }
    dismiss();
    if (!wanted) return 1;
    return over(dropped > 0,
                std::to_string(dropped) + " packets between " + what + " were dropped");
  }

  const Note& note() const { return note_; }

 private:
  static int over(bool confirmed, const std::string& proof) {
    say({{"confirmed", confirmed}, {"proof", proof}});
    return 0;
  }

  const Found found_;
  const std::string uid_;
  const Note note_;
};

}  // namespace

int run_hand(const std::vector<std::string>& words) {
  // It must stay alive to undo what it did.
  for (const int signal : {SIGPIPE, SIGHUP, SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);
  if (words.size() < 2) {
    std::cerr << "muster drill hand: runs only as part of a drill\n";
    return 1;
  }
  const std::string &verb = words[0], &uid = words[1];
  auto found = find_node(uid);
  if (!found) return refuse(found.error().message);
  auto note = Note::of(*found, uid);
  if (!note) return refuse(note.error().message);
  if (verb == "mend") {
    say({{"mended", mend(*note, uid)}});
    return 0;
  }
  const bool harmless = verb == "look" || verb == "logs" || verb == "digest";
  if (!harmless) mend(*note, uid);
  const Hand hand(std::move(*found), uid, std::move(*note));
  if (verb == "look") return hand.look();
  if (verb == "logs" && words.size() == 3) return hand.logs(words[2]);
  if (verb == "digest") return hand.digest();
  if (verb == "leave") return hand.leave();
  if (verb == name(Fault::agent_kill)) return hand.kill_agent();
  if (verb == name(Fault::agent_freeze)) return hand.freeze_agent();
  if (verb == name(Fault::keeper_kill)) return hand.kill_keeper();
  if (verb == name(Fault::node_loss)) return hand.lose_node();
  if (verb == name(Fault::partition)) return hand.cut_off();
  return refuse("`" + verb + "`: no such verb");
}

}  // namespace muster::cli::drill
