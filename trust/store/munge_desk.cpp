#include "trust/store/munge_desk.hpp"

#include "base/printable.hpp"
#include "base/secret.hpp"
#include "trust/store/used_nonces.hpp"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace muster::coordinator {
namespace {

constexpr size_t kStartBytes = 8;

Error too_busy() {
  return {Errc::overloaded, "too many munge logins are waiting", {}};
}

}  // namespace

struct MungeDesk::Shared {
  struct Asked {
    std::string credential, from;
    std::function<void(Result<uid_t>)> done;
    Millis since = 0;
  };

  Decode decode;
  std::function<Millis()> now, elapsed;
  mutable std::mutex mutex;  // guards what follows, up to `used`
  std::condition_variable wake;
  std::optional<munge::Audience> audience;
  std::deque<Asked> waiting;
  std::map<std::string, size_t> waiting_of;  // by address; only counts above 0
  bool stopping = false, busy = false;
  UsedNonces used;  // used by the thread only

  Asked take() {
    Asked asked = std::move(waiting.front());
    waiting.pop_front();
    if (const auto it = waiting_of.find(asked.from); --it->second == 0) waiting_of.erase(it);
    return asked;
  }
  bool gave_up(const Asked& asked) const { return elapsed() - asked.since > kPatienceMs; }

  Result<uid_t> judge(const std::string& credential, const munge::Audience& here) {
    auto decoded = decode(credential);
    if (!decoded.ok()) return decoded.error();
    const auto claim = munge::Claim::parse(decoded->payload);
    if (!claim) return invalid("its payload is not a muster claim");
    if (claim->audience.cluster != here.cluster)
      return invalid("it was made for cluster " + claim->audience.cluster);
    if (claim->audience.start != here.start)
      return invalid("it was made for another run of this coordinator");
    if (decoded->life_ms > kLifeMaxMs) return invalid("it is valid for more than an hour");
    const Millis until = decoded->made_ms + decoded->life_ms + 1'000;  // munge uses whole seconds
    switch (used.use(decoded->uid, claim->nonce, until, now())) {
      case UsedNonces::Use::first:
        return decoded->uid;
      case UsedNonces::Use::again:
        return invalid("it was used before");
      case UsedNonces::Use::too_many:
        break;
    }
    return Error{Errc::overloaded,
                 "uid " + std::to_string(decoded->uid) + " has used too many munge credentials",
                 {}};
  }
};

MungeDesk::MungeDesk(Decode decode, std::function<Millis()> now, std::function<Millis()> elapsed)
    : shared_(std::make_shared<Shared>()) {
  shared_->decode = std::move(decode);
  shared_->now = std::move(now);
  shared_->elapsed = std::move(elapsed);
  thread_ = std::thread([shared = shared_] { run(shared); });
}

MungeDesk::~MungeDesk() {
  std::deque<Shared::Asked> dropped;
  bool busy = false;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
    dropped.swap(shared_->waiting);
    busy = shared_->busy;
  }
  shared_->wake.notify_all();
  if (busy)
    thread_.detach();
  else
    thread_.join();
}

void MungeDesk::open(const std::string& cluster) {
  const std::lock_guard lock(shared_->mutex);
  shared_->audience = munge::Audience{cluster, random_hex(kStartBytes)};
}

std::optional<munge::Audience> MungeDesk::audience() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->audience;
}

void MungeDesk::judge(std::string credential, const std::string& from,
                      const std::function<void(Result<uid_t>)>& done) {
  std::vector<Shared::Asked> late;
  bool accepted = false;
  {
    const std::lock_guard lock(shared_->mutex);
    Shared& s = *shared_;
    while (!s.waiting.empty() && s.gave_up(s.waiting.front())) late.push_back(s.take());
    const auto others = s.waiting_of.find(from);
    const bool full = s.waiting.size() >= kWaitingMax ||
                      (others != s.waiting_of.end() && others->second >= kWaitingOfOneMax);
    accepted = !full && s.audience;
    if (accepted) {
      ++s.waiting_of[from];
      s.waiting.push_back({std::move(credential), from, done, s.elapsed()});
    }
  }
  if (!accepted) return done(too_busy());
  shared_->wake.notify_one();
}

void MungeDesk::run(const std::shared_ptr<Shared>& shared) {
  Shared& s = *shared;
  std::unique_lock lock(s.mutex);
  for (;;) {
    s.wake.wait(lock, [&s] { return s.stopping || !s.waiting.empty(); });
    if (s.stopping) return;
    const Shared::Asked asked = s.take();
    const munge::Audience here = *s.audience;
    s.busy = true;
    lock.unlock();
    std::optional<Result<uid_t>> judged;
    if (!s.gave_up(asked)) judged = s.judge(asked.credential, here);
    lock.lock();
    s.busy = false;
    if (s.stopping) return;  // the receiver of the answer may be gone
    lock.unlock();
    if (judged) asked.done(std::move(*judged));
    lock.lock();
  }
}

}  // namespace muster::coordinator
