#include "storage/replica/replicated_journal.hpp"

#include <utility>

namespace muster::storage {
namespace {

class Shared final : public Rows {
 public:
  explicit Shared(std::shared_ptr<Rows> rows) : rows_(std::move(rows)) {}
  Result<std::optional<std::string>> get(std::string_view key) override { return rows_->get(key); }
  Status walk(std::string_view prefix, std::string_view from, const Walk& visit) override {
    return rows_->walk(prefix, from, visit);
  }

 private:
  std::shared_ptr<Rows> rows_;
};

}  // namespace

ReplicatedJournal::ReplicatedJournal(std::unique_ptr<Journal> own, Replication& replication)
    : own_(std::move(own)),
      replication_(replication),
      last_(own_->last_commit()),
      shown_(own_->frozen()) {}

Status ReplicatedJournal::commit(const std::vector<Row>& rows) {
  const uint64_t number = own_->last_commit() + 1;
  replication_.begins(number, std::make_shared<const std::vector<Row>>(rows));
  if (Status written = own_->commit(rows); !written) return written;
  replication_.synced(number);
  replication_.await(number);
  std::shared_ptr<Rows> shown = own_->frozen();
  {
    const std::lock_guard lock(mutex_);
    shown_.swap(shown);
  }
  last_ = number;
  return Nothing{};
}

Status ReplicatedJournal::go_on_at(uint64_t commit) {
  if (Status ok = own_->go_on_at(commit); !ok) return ok;
  last_ = commit - 1;
  return Nothing{};
}

std::unique_ptr<Rows> ReplicatedJournal::frozen() {
  return std::make_unique<Shared>(shown());
}

std::shared_ptr<Rows> ReplicatedJournal::shown() const {
  const std::lock_guard lock(mutex_);
  return shown_;
}

}  // namespace muster::storage
