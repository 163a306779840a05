#include "actors/gate.hpp"

#include "base/check.hpp"

#include <caf/send.hpp>

#include <utility>

namespace muster::actors {

Gate::Gate(journal_actor journal, SealedLink link, Notifier notifier)
    : journal_(std::move(journal)), link_(link.link_), notifier_(std::move(notifier)) {}

void Gate::after(Append append, Effects effects) {
  const uint64_t number = ++last_;
  waiting_.push_back({number, std::move(effects)});
  append.done = [notify = notifier_(), number](uint64_t commit) { notify(number, commit); };
  caf::anon_send(journal_, std::move(append));
}

void Gate::after(Effects effects) {
  if (waiting_.empty()) return effects(Durable(link_, 0));
  waiting_.push_back({last_, std::move(effects)});
}

void Gate::open(uint64_t number, uint64_t commit) {
  MUSTER_CHECK(!waiting_.empty() && waiting_.front().number == number, number, last_);
  while (!waiting_.empty() && waiting_.front().number == number) {
    const Effects effects = std::move(waiting_.front().effects);
    waiting_.pop_front();
    effects(Durable(link_, commit));
  }
}

}  // namespace muster::actors
