// World: a simulated cluster of two or three coordinators that replicate their journal, with the
// consensus store that decides who leads, clients and a network.
//
// What decides is the product's: core::standby::Leader and Follower, and core::EpochLine. Around
// them is a shell that does what the threads of a coordinator do (standby/): it sends, syncs, asks
// the store, and answers. Between any two of its steps a replica may crash, or freeze and go on.
// Links break, lose a batch or deliver late; parts of the network are cut off from each other; the
// store (standby_store.hpp) loses its quorum, answers late or never, or gets a request twice; disks
// hang, fail, forget what was not synced, or are replaced by an older copy; clocks run at different
// speeds. History (standby_history.hpp) is the witness.
//
// Deterministic: one seed, one history.
#pragma once

#include "core/cluster/nodes/epoch_line.hpp"
#include "core/standby/follower.hpp"
#include "core/standby/leader.hpp"
#include "tests/sim/standby_history.hpp"
#include "tests/sim/standby_plants.hpp"
#include "tests/sim/standby_store.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace muster::sim::standby {

using Micros = int64_t;  // of true time, which nobody can read

struct Plan {
  uint64_t seed = 1;
  Plant plant = Plant::none;
  int replicas = 2;
  Millis faults_ms = 60'000;  // how long there are faults
  // The mean time between two faults of a kind, in ms; 0: there are none.
  Millis crashes = 0;     // of one replica
  Millis blackouts = 0;   // of all at once
  Millis freezes = 0;     // of one replica, for up to a minute
  Millis cuts = 0;        // between two of replicas, store, clients, for some seconds
  Millis isolations = 0;  // of the leader, from the others and from the store
  double sleeps = 0.6;    // the chance that it sleeps meanwhile, for at least this long
  Millis sleeps_ms = 100;
  Millis breaks = 0;         // of a link
  Millis quorum_losses = 0;  // of the store
  Millis hung_disks = 0;
  Millis hand_overs = 0;
  Millis removals = 0;               // of a replica, by an operator; it comes back
  Millis old_copies = 0;             // of data-dirs, each put in place at the next crash
  double step_crash = 0;             // the chance of a crash between two steps
  double lost_batch = 0;             // the chance that a batch is lost on a link that goes on
  double failed_sync = 0;            // the chance of an error of the disk
  double lost_request = 0;           // to the store, or its answer
  double late_request = 0;           // delayed by seconds
  double twice_request = 0;          // arrives again, later
  Millis far_ms = 0;                 // what messages between one pair take longer
  std::pair<int, int> far = {0, 0};  // which; 3 is the store; {0, 0}: one of the others
  bool drift = false;                // clocks run at speeds that differ by the stated bound
  bool power = false;                // a crash also loses what was not synced
  bool verbose = false;
};
// The plan of a seed: which faults there are, and how often.
Plan plan_of(uint64_t seed);
// Whether that plan has few faults but those in which it matters who counts time how.
inline bool is_of_edge(uint64_t seed) {
  return seed % 4 == 3;
}

class World {
 public:
  explicit World(Plan plan);
  ~World();

  // Runs with faults, then without, until all replicas are in sync and clients are answered.
  void run();
  const std::vector<std::string>& broken() const { return history_.broken; }

  struct Count {
    uint64_t crashes = 0, faults = 0, acknowledged = 0, read = 0, leads = 0, added = 0, copies = 0,
             checkpoints = 0, events = 0;
  };
  Count count() const;

 private:
  using Leader = core::standby::Leader;
  static constexpr int kStore = 3, kClients = 4, kParties = 5;

  // A commit: what the clients wrote, or the entry of an epoch.
  struct Commit {
    uint64_t id = 0;      // unique
    uint64_t before = 0;  // the id of the commit before it
    core::EpochEntry epoch;
    std::vector<std::pair<size_t, uint64_t>> writes;
  };
  using CommitPtr = const Commit*;     // of commits_
  using Log = std::vector<CommitPtr>;  // commit n is at n - 1

  // A data-dir. What is behind `synced` may be lost in a crash.
  struct DataDir {
    Log log;
    size_t synced = 0;
    std::vector<std::string> seats;  // that it has had, the newest last
    std::string seat() const { return seats.empty() ? "" : seats.back(); }
  };

  // A connection between two replicas: messages arrive in order, until it breaks.
  struct Link {
    std::array<int, 2> ends{};
    std::array<uint64_t, 2> lives{};
    std::array<Micros, 2> busy_until{};  // towards each end
    bool open = true;
    bool lost = false;  // what was under way when it broke
  };
  using LinkPtr = std::shared_ptr<Link>;

  struct Request {  // of a client
    bool write = false;
    size_t key = 0;
    uint64_t value = 0;
    std::function<void(uint64_t)> answer;  // at the client
  };

  struct Event {
    Micros at = 0;
    uint64_t order = 0;
    int replica = -1;  // -1: of nobody
    uint64_t life = 0;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };

  struct Session;
  struct Process;
  struct Replica {
    int id = 0;
    std::string name;
    double speed = 1;
    DataDir disk;
    std::optional<DataDir> backup, newest;  // an older copy; what it has replaced
    bool restore = false;                   // the next start is on the older copy
    Micros hung_until = 0;                  // the disk
    uint64_t life = 0;
    std::unique_ptr<Process> process;  // null: down
    Micros frozen_until = 0;
    std::deque<Event> deferred;  // while it is frozen
    int leader = -1;             // where it sends clients
  };
  struct Crashed {};  // thrown by step()

  // ---- chance, time and the network (standby_world.cpp)
  bool chance(double p) { return p > 0 && std::uniform_real_distribution<>(0, 1)(random_) < p; }
  int64_t between(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random_);
  }
  bool planted(Plant plant) const { return plan_.plant == plant; }
  void trace(const Replica& replica, const std::string& what) const;
  void at(Micros when, std::function<void()> what);
  // In the present process of a replica, `delay` from now; not if it has ended by then.
  void in(Replica& replica, Micros delay, std::function<void()> what);
  void in_life(const Replica& replica, uint64_t life, Micros when, std::function<void()> what);
  void run_event(Event event);
  void advance(Micros until);
  Millis clock(const Replica& replica) const;
  Micros local(const Replica& replica, Millis ms) const;
  bool cut(int a, int b) const { return cut_[static_cast<size_t>(a)][static_cast<size_t>(b)] > 0; }
  Micros travel(int a, int b);
  void step(Replica& replica);  // a point at which it may crash
  void send(const LinkPtr& link, int to, std::function<void(Replica&)> what);
  void break_link(const LinkPtr& link);
  LinkPtr connect(Replica& from, Replica& to);
  void on_break(Replica& replica, const LinkPtr& link);
  struct Asked;
  void arrive(const std::shared_ptr<Asked>& asked);
  using Answered = std::function<void(std::optional<Answer>)>;
  void ask(Replica& replica, std::function<Answer(Store&, Millis)> what, Answered answered);
  Millis store_clock() const { return static_cast<Millis>(double(now_) * store_speed_ / 1000); }

  // ---- faults and clients (standby_world.cpp)
  void repeat(Millis mean, std::function<void()> fault);
  void plan_faults();
  void cut_off();
  void cut_for(int a, int b, Micros from, Micros how_long);
  void isolate_leader();
  void crash(Replica& replica, bool power);
  void start(Replica& replica);
  [[noreturn]] void end(Replica& replica, const char* why);
  void freeze(Replica& replica, Micros how_long);
  void thaw(Replica& replica);
  void lose_quorum();
  void put_older_copy(Replica& replica);
  void put_newest_back(Replica& replica);
  void take_backups();
  void hand_over();
  void remove_replica();
  void calm();
  bool all_well() const;
  std::string picture() const;  // for a failure's message
  void write_next(size_t key);
  void read_next();
  void to_replica(int from, int to, const std::shared_ptr<Request>& request);
  void handle(Replica& replica, int from, const std::shared_ptr<Request>& request);
  void check_in_sync(bool whole);
  bool has_commit(const Replica& replica, uint64_t commit) const;

  // ---- a follower (standby_follower.cpp)
  void tick_follower(Replica& replica);
  void poll(Replica& replica);
  void polled(Replica& replica, const Held& held);
  void join(Replica& replica, int leader);
  void say_hello(Replica& replica, const LinkPtr& link);
  void drop_upstream(Replica& replica);
  void on_batch(Replica& replica, const LinkPtr& link, uint64_t term, uint64_t number,
                CommitPtr commit);
  void reply_has(Replica& replica, const LinkPtr& link, uint64_t number);
  void on_beat(Replica& replica, const LinkPtr& link, uint64_t term, Millis sent);
  void on_checkpoint(Replica& replica, const LinkPtr& link, uint64_t term,
                     const std::shared_ptr<Log>& log);
  void on_seat(Replica& replica, const LinkPtr& link, const std::string& seat);
  void take(Replica& replica, const Held& held);
  void write_take(Replica& replica, const core::standby::Configuration& wanted, const Held& seen,
                  uint64_t lease, Millis asked);
  void settle(Replica& replica);
  void sync(Replica& replica, size_t commits, std::function<void()> done);
  core::EpochLine line_of(const Log& log) const;
  std::string draw_seat() { return std::to_string(random_() % 1'000'000'000); }

  // ---- a leader (standby_leader.cpp)
  void lead(Replica& replica, const Held& held, uint64_t lease, Millis asked);
  void tick_leader(Replica& replica);
  void begin_commit(Replica& replica, Commit commit);
  void next_commit(Replica& replica);
  void advance_commit(Replica& replica);
  bool is_durable(Replica& replica, uint64_t commit) const;
  void apply(Replica& replica, const Commit& commit);
  void serve(Replica& replica, const std::shared_ptr<Request>& request);
  void answer(Replica& replica, const std::shared_ptr<Request>& request, uint64_t value);
  bool may_answer(Replica& replica);
  void on_hello(Replica& replica, const LinkPtr& link, int member, core::KnownHistory known,
                const std::vector<std::string>& seats);
  void send_checkpoint(Replica& replica, int member);
  void on_has(Replica& replica, const LinkPtr& link, int member, uint64_t commit);
  void on_promise(Replica& replica, const LinkPtr& link, int member, Millis sent);
  void on_seated(Replica& replica, const LinkPtr& link, int member, const std::string& seat);
  void session_gone(Replica& replica, const LinkPtr& link);
  void send_batch(Replica& replica, int member, uint64_t number);
  void beat(Replica& replica);
  void renew(Replica& replica);
  void put_key_again(Replica& replica);
  void change_configuration(Replica& replica);
  void write_configuration(Replica& replica, const Transaction& write);
  void answered_configuration(Replica& replica, const Held& held);
  void seat_followers(Replica& replica);
  std::optional<core::standby::Configuration> wished(Replica& replica) const;
  void write_key(Replica& replica, const Transaction& write, Millis asked);
  void give_up(Replica& replica, int to);

  Plan plan_;
  std::mt19937_64 random_;
  core::standby::Timing timing_, believed_;  // the second is what a Leader gets
  Micros now_ = 1'000'000;
  uint64_t order_ = 0;
  std::priority_queue<Event> events_;
  std::vector<Replica> replicas_;
  std::array<std::array<int, kParties>, kParties> cut_{};
  std::vector<std::weak_ptr<Link>> links_;
  std::pair<int, int> far_;  // which pair
  double store_speed_ = 1;
  bool quorum_ = true;
  std::unique_ptr<Store> store_;
  bool calm_ = false;
  Micros calm_at_ = 0;
  std::deque<Commit> commits_;                 // all that there ever were; the id is the index + 1
  std::map<std::string, size_t> sitting_;      // seats that a member had when it was added
  std::array<bool, 2> answered_since_calm_{};  // a read, and a write, that began after calm()
  History history_;
  Count count_;
};

}  // namespace muster::sim::standby
