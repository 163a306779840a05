// LeadHandle: the lead as other threads see it: the coordinator that serves (coordinator/lead.hpp)
// and the journal that it writes.
//
// What the peers' thread finds out is published here: until when anything may be answered, and up
// to which commit everything is durable on all in-sync replicas. Who reads an outdated value waits
// longer or answers less.
#pragma once

#include "coordinator/lead.hpp"
#include "coordinator/threads/inbox.hpp"
#include "storage/replica/replicated_journal.hpp"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace muster::standby {

// The part on the peers' thread (leading.hpp).
class LeadWork {
 public:
  virtual ~LeadWork() = default;
  virtual void begins(uint64_t commit, storage::Replication::Batch batch) = 0;
  virtual void synced(uint64_t commit) = 0;
  virtual coordinator::LeadFigures figures() = 0;
  // As Lead::change.
  virtual void change(coordinator::LeadChange change, const std::string& member,
                      std::function<void(Status)> done) = 0;
};

class LeadHandle final : public coordinator::Lead, public storage::Replication {
 public:
  // `journal` has begun writing. `end` ends the process. `door` is that of the peers' thread, where
  // `work` is used until retire().
  LeadHandle(uint64_t term, std::unique_ptr<storage::Journal> journal,
             std::shared_ptr<coordinator::Door> door, LeadWork& work,
             std::function<void(const std::string&)> end);

  // ---- coordinator::Lead
  uint64_t term() const override { return term_; }
  std::unique_ptr<storage::Journal> journal() override { return std::move(journal_); }
  void must_lead() const override;
  void figures(std::function<void(coordinator::LeadFigures)> done) override;
  void change(coordinator::LeadChange change, std::string member,
              std::function<void(Status)> done) override;
  void serve(coordinator::Served served) override;

  // ---- storage::Replication
  void begins(uint64_t commit, Batch batch) override;
  void synced(uint64_t commit) override;
  void await(uint64_t commit) override;

  // ---- on the peers' thread
  // False: the coordinator does not serve yet, or no longer.
  bool admit(Fd socket, api::PassedPeer peer);
  // Whether the holder of this certificate may follow. unavailable: the coordinator does not serve
  // yet, or no longer. invalid: it may not, and why.
  Status takes_part(const tls::Identity& who);
  void publish(Millis answers_until, uint64_t durable);
  void retire() { work_ = nullptr; }
  // The store holds no configuration, so nobody can take over.
  void store_wiped(bool wiped) { store_wiped_ = wiped; }
  // The lead may be another's by now.
  void end_unled() const;
  // For reading, from when the coordinator takes it until it stops.
  storage::Journal* served_journal() const { return served_journal_; }

 private:
  void post(std::function<void(LeadWork&)> task);

  const uint64_t term_;
  std::unique_ptr<storage::Journal> journal_;
  storage::Journal* const served_journal_;
  const std::shared_ptr<coordinator::Door> door_;
  LeadWork* work_;  // used on the peers' thread only; null: the lead is over
  const std::function<void(const std::string&)> end_;
  std::atomic<Millis> answers_until_{0};
  std::atomic<bool> store_wiped_{false};
  std::mutex served_mutex_;  // guards served_, also while it is called
  coordinator::Served served_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  uint64_t durable_ = 0;
};

}  // namespace muster::standby
