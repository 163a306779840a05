// Gate: holds back an actor's effects until everything they rest on is on disk.
//
// An actor hands its gate rows together with the effects that rest on them, and the effects run on
// the actor's thread once the journal has synced the rows. Effects without rows wait for the rows
// that this actor has in flight, since they may rest on them; with none in flight they run at once.
// Effects run in the order of the calls.
//
// Replies, acknowledgements and the link to the agents need a Durable, which only a gate makes, and
// only a GatedActor has a gate: exactly one, its own.
#pragma once

#include "actors/durable.hpp"
#include "actors/interfaces.hpp"
#include "actors/supervise.hpp"

#include <caf/actor_config.hpp>
#include <caf/send.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

namespace muster::actors {

class Gate {
 public:
  using Effects = std::function<void(const Durable&)>;
  // Makes the function that sends (number, commit) to the actor as durable_atom, from any thread.
  // Called for each append, so that the gate does not keep its actor alive.
  using Notifier = std::function<std::function<void(uint64_t number, uint64_t commit)>()>;

  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void after(Append append, Effects effects);
  void after(Effects effects);
  // For an answer that rests on nothing newer than the rows in flight.
  template <class T>
  void reply(const Reply<T>& to, T value) {
    after([to, value = std::move(value)](const Durable& durable) { to(durable, value); });
  }
  // The actor's handler of durable_atom.
  void open(uint64_t number, uint64_t commit);
  bool closed() const { return !waiting_.empty(); }
  // Called when the actor ends: pending effects are dropped.
  void close() {
    waiting_.clear();
    destroy(journal_);
  }

 private:
  template <class Handle>
  friend class GatedActor;
  friend struct TestGate;
  Gate(journal_actor journal, SealedLink link, Notifier notifier);

  struct Waiting {
    uint64_t number;  // of the append that it waits for
    Effects effects;
  };

  journal_actor journal_;
  AgentLink* link_;
  Notifier notifier_;
  std::deque<Waiting> waiting_;
  uint64_t last_ = 0;
};

// An actor with a gate. Its handler of durable_atom must open the gate, its on_exit() close it.
template <class Handle>
class GatedActor : public Handle::base {
 protected:
  GatedActor(caf::actor_config& config, journal_actor journal, SealedLink link)
      : Handle::base(config),
        gate_(std::move(journal), link, [this]() -> std::function<void(uint64_t, uint64_t)> {
          return [me = Handle{this}](uint64_t number, uint64_t commit) {
            caf::anon_send(me, durable_atom_v, number, commit);
          };
        }) {
    end_on_exceptions(*this);
  }

  Gate gate_;
};

}  // namespace muster::actors
