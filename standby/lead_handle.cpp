#include "standby/lead_handle.hpp"

#include <utility>

namespace muster::standby {

using coordinator::LeadChange;
using coordinator::LeadFigures;

LeadHandle::LeadHandle(uint64_t term, std::unique_ptr<storage::Journal> journal,
                       std::shared_ptr<coordinator::Door> door, LeadWork& work,
                       std::function<void(const std::string&)> end)
    : term_(term),
      journal_(std::make_unique<storage::ReplicatedJournal>(std::move(journal), *this)),
      served_journal_(journal_.get()),
      door_(std::move(door)),
      work_(&work),
      end_(std::move(end)) {}

void LeadHandle::must_lead() const {
  if (boot_now() >= answers_until_) end_unled();
}

void LeadHandle::end_unled() const {
  end_(coordinator::kMayNotLead +
       std::string(store_wiped_
                       ? ". The store no longer holds the configuration of this cluster, so "
                         "nobody can take over: start this coordinator with --new-store, "
                         "once; the others follow it"
                       : ""));
}

// The handle outlives what is posted: whoever starts a coordinator with it keeps it until the
// peers' thread has ended.
void LeadHandle::post(std::function<void(LeadWork&)> task) {
  door_->post([this, task = std::move(task)] {
    if (work_ != nullptr) task(*work_);
  });
}

void LeadHandle::figures(std::function<void(LeadFigures)> done) {
  post([done = std::move(done)](LeadWork& work) { done(work.figures()); });
}

void LeadHandle::change(LeadChange change, std::string member, std::function<void(Status)> done) {
  post([change, member = std::move(member), done = std::move(done)](LeadWork& work) mutable {
    work.change(change, member, std::move(done));
  });
}

void LeadHandle::serve(coordinator::Served served) {
  const std::lock_guard lock(served_mutex_);
  served_ = std::move(served);
}

bool LeadHandle::admit(Fd socket, api::PassedPeer peer) {
  const std::lock_guard lock(served_mutex_);
  if (!served_.admit) return false;
  served_.admit(std::move(socket), std::move(peer));
  return true;
}

Status LeadHandle::takes_part(const tls::Identity& who) {
  const std::lock_guard lock(served_mutex_);
  if (!served_.refuses) return Error{Errc::unavailable, "it does not serve yet", {}};
  if (const auto why = served_.refuses(who)) return invalid(*why);
  return Nothing{};
}

void LeadHandle::begins(uint64_t commit, Batch batch) {
  post([commit, batch = std::move(batch)](LeadWork& work) { work.begins(commit, batch); });
}

void LeadHandle::synced(uint64_t commit) {
  post([commit](LeadWork& work) { work.synced(commit); });
}

void LeadHandle::await(uint64_t commit) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this, commit] { return durable_ >= commit; });
}

void LeadHandle::publish(Millis answers_until, uint64_t durable) {
  answers_until_ = answers_until;
  {
    const std::lock_guard lock(mutex_);
    if (durable <= durable_) return;
    durable_ = durable;
  }
  changed_.notify_all();
}

}  // namespace muster::standby
