#include "actors/kept_actor.hpp"

#include "actors/gate.hpp"
#include "actors/supervise.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace muster::actors {

namespace {

constexpr std::chrono::minutes kLookEvery{1};
constexpr size_t kSweepMax = 1'000;  // old events removed in one batch

using Place = std::tuple<core::KeptKind, std::string, std::string>;  // kind, namespace, name

Place place_of(const core::Kept& kept) {
  return {kept.kind, kept.ns, kept.name};
}

class KeptObjects : public GatedActor<kept_actor> {
 public:
  KeptObjects(caf::actor_config& config, journal_actor journal, WallClock clock,
              const std::vector<core::Kept>& kept)
      : GatedActor(config, std::move(journal), SealedLink()), clock_(std::move(clock)) {
    for (const core::Kept& one : kept) {
      last_id_ = std::max(last_id_, one.id);
      Slot& slot = slots_[place_of(one)];
      slot.now = std::make_shared<const core::Kept>(one);
      note(*slot.now, true);
      book(*slot.now, true);
    }
  }

  behavior_type make_behavior() override {
    send(this, wake_atom_v);
    return {[this](const WriteKept& m) { take(m); },
            [this](const durable_atom&, uint64_t number, uint64_t commit) {
              gate_.open(number, commit);
            },
            [this](const wake_atom&) {
              sweep();
              delayed_send(this, kLookEvery, wake_atom_v);
            },
            [this](const stop_atom&) { quit(); }};
  }

  void on_exit() override { gate_.close(); }

 private:
  struct Slot {
    core::KeptPtr now;  // on disk; nullptr: nothing
    bool busy = false;
    std::deque<WriteKept> waiting;
  };

  void take(const WriteKept& m) {
    const Place place = place_of(m.seen ? *m.seen : *m.next);
    slots_[place].waiting.push_back(m);
    go_on(place);
  }

  // Handles waiting requests in order, until a write is in flight.
  void go_on(const Place& place) {
    Slot& slot = slots_.at(place);
    while (!slot.busy && !slot.waiting.empty()) {
      const WriteKept m = std::move(slot.waiting.front());
      slot.waiting.pop_front();
      if (auto refused = refusal(slot, m))
        gate_.after(
            [done = m.done, why = *refused](const Durable& durable) { done(durable, why); });
      else
        write(slot, m);
    }
    if (!slot.busy && !slot.now) slots_.erase(place);
  }

  void write(Slot& slot, const WriteKept& m) {
    Append append;
    slot.busy = true;
    if (slot.now) book(*slot.now, false);
    if (m.next) book(*m.next, true);
    if (m.next) {
      auto next = std::make_shared<core::Kept>(*m.next);
      next->id = slot.now ? slot.now->id : ++last_id_;
      next->written_ms = clock_();
      append.kept.push_back({std::move(next), false});
      if (!slot.now && m.next->kind == core::KeptKind::event) make_room(append);
    } else {
      append.kept.push_back({slot.now, true});
    }
    ask(std::move(append), [done = m.done](const Durable& durable) { done(durable, Nothing{}); });
  }

  std::optional<Error> refusal(const Slot& slot, const WriteKept& m) const {
    if (!m.seen && slot.now) return Error{Errc::exists, "", {}};
    if (m.seen && (!slot.now || slot.now->uid != m.seen->uid))
      return Error{Errc::not_found, "", {}};
    if (m.seen && slot.now->version != m.seen->version) return Error{Errc::conflict, "", {}};
    if (m.next && !m.seen && m.next->kind == core::KeptKind::lease &&
        leases_ >= core::kKeptLeasesMax)
      return Error{Errc::overloaded,
                   "there are already " + std::to_string(leases_) + " leases, the maximum",
                   {}};
    return m.next ? beyond_limits(slot, m) : std::nullopt;
  }

  // An error if an object exceeds the limits of its kind, given those stored or being written.
  std::optional<Error> beyond_limits(const Slot& slot, const WriteKept& m) const {
    const core::KeptKind kind = m.next->kind;
    const Limits* const limits = limits_of(kind);
    if (limits == nullptr) return std::nullopt;
    const size_t more = slot.now ? 0 : 1, old_bytes = slot.now ? slot.now->json.size() : 0;
    auto beyond = [&](const Usage& used, size_t count_max, size_t bytes_max) {
      const bool grows = m.next->json.size() > old_bytes;
      return (count_max != 0 && more != 0 && used.count + more > count_max) ||
             (bytes_max != 0 && grows && used.bytes - old_bytes + m.next->json.size() > bytes_max);
    };
    auto text = [&](const Usage& used, size_t count_max, size_t bytes_max) {
      return std::string(" at most ") + std::to_string(count_max) + " " + limits->what + " with " +
             std::to_string(bytes_max >> 20) + " MiB, and there are " + std::to_string(used.count) +
             " with " + std::to_string(used.bytes >> 20) + " MiB";
    };
    const Usage all = usage_of(all_, kind);
    if (beyond(all, limits->count, limits->bytes))
      return Error{
          Errc::overloaded, "the coordinator keeps" + text(all, limits->count, limits->bytes), {}};
    if (!m.next->owner) return std::nullopt;
    const Usage own = usage_of(owned_, {kind, *m.next->owner});
    if (beyond(own, m.quota.count, m.quota.bytes))
      return Error{Errc::overloaded,
                   "exceeded quota: a user may have" + text(own, m.quota.count, m.quota.bytes),
                   {}};
    return std::nullopt;
  }

  // How many objects of a kind are stored, and their JSON's size.
  struct Limits {
    const char* what;
    size_t count, bytes;
  };
  // nullptr: leases have a limit of their own, and old events make room for new ones.
  static const Limits* limits_of(core::KeptKind kind) {
    static constexpr Limits kConfigMaps{"config maps", core::kConfigMapsMax,
                                        core::kConfigMapsBytesMax},
        kNamespaces{"namespaces", core::kNamespacesMax, core::kNamespacesMax * core::kKeptBytesMax},
        kCronJobs{"cron jobs", core::kCronJobsMax, core::kCronJobsBytesMax},
        kQueues{"queues", core::kQueuesMax, core::kQueuesMax * core::kKeptBytesMax},
        kPriorityClasses{"priority classes", core::kPriorityClassesMax,
                         core::kPriorityClassesMax * core::kKeptBytesMax};
    switch (kind) {
      case core::KeptKind::config_map:
        return &kConfigMaps;
      case core::KeptKind::name_space:
        return &kNamespaces;
      case core::KeptKind::cron_job:
        return &kCronJobs;
      case core::KeptKind::queue:
        return &kQueues;
      case core::KeptKind::priority_class:
        return &kPriorityClasses;
      case core::KeptKind::lease:
      case core::KeptKind::event:
        break;
    }
    return nullptr;
  }

  struct Usage {
    size_t count = 0, bytes = 0;
  };
  template <class Map>
  static Usage usage_of(const Map& map, const typename Map::key_type& key) {
    const auto it = map.find(key);
    return it == map.end() ? Usage{} : it->second;
  }
  template <class Map>
  static void book_in(Map& map, const typename Map::key_type& key, size_t bytes, bool there) {
    Usage& usage = map[key];
    usage.count += there ? 1 : size_t(-1);
    usage.bytes += there ? bytes : size_t(0) - bytes;
    if (usage.count == 0) map.erase(key);
  }
  // Counts an object as soon as its write begins.
  void book(const core::Kept& kept, bool there) {
    if (limits_of(kept.kind) == nullptr) return;
    book_in(all_, kept.kind, kept.json.size(), there);
    if (kept.owner) book_in(owned_, {kept.kind, *kept.owner}, kept.json.size(), there);
  }

  // Applies a change that is on disk.
  void settle(const core::KeptChange& change, uint64_t commit) {
    Slot& slot = slots_.at(place_of(*change.now));
    if (slot.now) note(*slot.now, false);
    slot.now = nullptr;
    slot.busy = false;
    if (change.removed) return;
    auto written = std::make_shared<core::Kept>(*change.now);
    written->version = commit;
    note(*written, true);
    slot.now = std::move(written);
  }

  void note(const core::Kept& kept, bool there) {
    if (kept.kind == core::KeptKind::lease)
      leases_ += there ? 1 : -1;
    else if (kept.kind != core::KeptKind::event)
      return;
    else if (there)
      events_.emplace(kept.version, place_of(kept));
    else
      events_.erase({kept.version, place_of(kept)});
  }

  // Removes the oldest events in the append that adds one, so that they never exceed the maximum.
  void make_room(Append& append) {
    size_t more = events_.size() + under_way_ + 1;
    for (auto it = events_.begin(); it != events_.end() && more > core::kKeptEventsMax; ++it)
      if (drop(append, it->second)) --more;
  }

  // Removes events written more than an hour ago.
  void sweep() {
    Append append;
    const Millis since = clock_() - core::kKeptEventMs;
    for (const auto& [version, place] : events_) {
      if (append.kept.size() == kSweepMax || slots_.at(place).now->written_ms > since) break;
      drop(append, place);
    }
    if (append.kept.empty()) return;
    const bool more = append.kept.size() == kSweepMax;
    ask(std::move(append), [this, more](const Durable&) {
      if (more) sweep();
    });
  }

  // Adds the object's removal to the append; false if a write to it is in flight.
  bool drop(Append& append, const Place& place) {
    Slot& slot = slots_.at(place);
    if (slot.busy) return false;
    slot.busy = true;
    append.kept.push_back({slot.now, true});
    return true;
  }

  void ask(Append append, Gate::Effects then) {
    under_way_ += append.kept.size();
    auto settled = [this, changes = append.kept, then = std::move(then)](const Durable& durable) {
      under_way_ -= changes.size();
      for (const core::KeptChange& change : changes) settle(change, durable.commit());
      then(durable);
      for (const core::KeptChange& change : changes) go_on(place_of(*change.now));
    };
    gate_.after(std::move(append), std::move(settled));
  }

  WallClock clock_;
  std::map<Place, Slot> slots_;
  std::set<std::pair<uint64_t, Place>> events_;  // on disk, the oldest first
  uint64_t last_id_ = 0;
  size_t leases_ = 0;                    // on disk
  size_t under_way_ = 0;                 // objects that are being written or removed
  std::map<core::KeptKind, Usage> all_;  // of kinds with limits
  std::map<std::pair<core::KeptKind, uint32_t>, Usage> owned_;  // likewise, by owner
};

}  // namespace

kept_actor spawn_kept(caf::actor_system& system, journal_actor journal, WallClock clock,
                      const std::vector<core::Kept>& kept) {
  return vital(kept_actor{system.spawn<KeptObjects>(std::move(journal), std::move(clock), kept)});
}

}  // namespace muster::actors
