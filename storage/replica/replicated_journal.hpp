// ReplicatedJournal: a journal whose commits count only once all in-sync replicas have them.
//
// commit() writes to the disk here and hands the batch to the replication at the same time, and
// returns when both are done. Until then, nobody sees the batch: reads and last_commit() show what
// is durable on all of them, since what one disk alone holds may never have happened for whoever
// takes over.
#pragma once

#include "storage/journal/journal.hpp"

#include <atomic>
#include <memory>
#include <mutex>

namespace muster::storage {

// What carries batches to the replicas (standby/leading.hpp). Called on the journal's thread.
class Replication {
 public:
  virtual ~Replication() = default;
  using Batch = std::shared_ptr<const std::vector<Row>>;
  // This commit is being written here, too. Commits begin in order.
  virtual void begins(uint64_t commit, Batch batch) = 0;
  virtual void synced(uint64_t commit) = 0;  // here
  // Waits until it is durable on each replica that may take over. Ends the process if this
  // coordinator may not lead any more.
  virtual void await(uint64_t commit) = 0;
};

class ReplicatedJournal final : public Journal {
 public:
  // `own` has begun writing. `replication` outlives the journal.
  ReplicatedJournal(std::unique_ptr<Journal> own, Replication& replication);

  Status commit(const std::vector<Row>& rows) override;
  Status checkpoint(const std::string& dir) override { return own_->checkpoint(dir); }
  Status check() override { return own_->check(); }
  Status go_on_at(uint64_t commit) override;
  uint64_t last_commit() const override { return last_; }
  Result<std::optional<std::string>> get(std::string_view key) override {
    return shown()->get(key);
  }
  Status walk(std::string_view prefix, std::string_view from, const Walk& visit) override {
    return shown()->walk(prefix, from, visit);
  }
  std::unique_ptr<Rows> frozen() override;

 private:
  std::shared_ptr<Rows> shown() const;

  const std::unique_ptr<Journal> own_;
  Replication& replication_;
  std::atomic<uint64_t> last_;
  mutable std::mutex mutex_;     // guards shown_
  std::shared_ptr<Rows> shown_;  // as of last_
};

}  // namespace muster::storage
