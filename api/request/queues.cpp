#include "api/request/queues.hpp"

#include "base/log.hpp"

#include <kj/vector.h>

namespace muster::api {

namespace {

// How long after a failed look-up the groups are looked up again.
constexpr auto kLookAgain = 30 * kj::SECONDS;

}  // namespace

void Queues::look() {
  const std::pair ends(view_.changes(Kind::queue).end(), view_.changes(Kind::priority_class).end());
  if (std::exchange(started_, true) && ends == seen_) return;
  seen_ = ends;
  if (!busy_) read();
}

kj::Promise<void> Queues::settled() {
  if (ready_ && !busy_) return kj::READY_NOW;
  auto paf = kj::newPromiseAndFulfiller<void>();
  waiting_.push_back(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

// Looks up the groups, then publishes; starts over if something has changed meanwhile.
void Queues::read() {
  kj::Vector<kj::Promise<void>> lookups;
  view_.each_kept(core::KeptKind::queue, "", [&](const Shown& shown) {
    for (std::string& name : group_names_of(Json::parse(shown.kept->kept->json)))
      lookups.add(look_up(std::move(name)));
  });
  if (lookups.empty()) return publish();
  busy_ = true;
  missing_ = false;
  lookups_.add(kj::joinPromises(lookups.releaseAsArray()).then([this, seen = seen_] {
    busy_ = false;
    if (seen != seen_) return read();
    publish();
    if (missing_) again_ = look_again().eagerlyEvaluate(nullptr);
  }));
}

kj::Promise<void> Queues::look_again() {
  return timer_.afterDelay(kLookAgain).then([this] {
    if (!busy_) read();
  });
}

kj::Promise<void> Queues::look_up(std::string group) {
  auto failed = [this, group](const std::string& why) {
    log::warn("the group {} of a queue cannot be looked up: {}", group, why);
    groups_.try_emplace(group);
    missing_ = true;
  };
  return timer_.timeoutAfter(kAccountPatience, directory_.find_group(group))
      .then(
          [this, group, failed](Result<gid_t> gid) {
            if (gid.ok())
              groups_[group] = *gid;
            else if (gid.error().code == Errc::not_found) {
              groups_[group] = std::nullopt;
              missing_ = true;
            } else
              failed(gid.error().message);
          },
          [failed](kj::Exception&& error) { failed(error.getDescription().cStr()); });
}

void Queues::publish() {
  auto next = std::make_shared<core::QueueSet>();
  view_.each_kept(core::KeptKind::queue, "", [&](const Shown& shown) {
    next->queues.push_back(queue_of(Json::parse(shown.kept->kept->json), groups_));
  });
  view_.each_kept(core::KeptKind::priority_class, "", [&](const Shown& shown) {
    const core::Kept& kept = *shown.kept->kept;
    next->classes[kept.name] = priority_class_of(Json::parse(kept.json));
  });
  const bool first = !std::exchange(ready_, true);
  if (first || *next != *all_) {
    all_ = std::move(next);
    backend_.set_queues(*all_);
  }
  for (auto& one : waiting_) one->fulfill();
  waiting_.clear();
}

void Queues::taskFailed(kj::Exception&& failed) {
  log::error("queues: {}", failed.getDescription().cStr());
}

}  // namespace muster::api
