// JobWriter: the one path by which all routes create or change a job.
//
// It reads the job from the View, makes the new one, checks it, and hands both to the Backend. If
// the job has changed meanwhile, the Backend refuses and JobWriter starts over. Large objects are
// checked on another thread.
#pragma once

#include "api/kube/objects/manifest.hpp"
#include "api/request/route_base.hpp"
#include "api/request/writes.hpp"

#include <kj/debug.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::api {

// A job as seen by the code that changes it.
struct SeenJob {
  std::shared_ptr<const core::Job> job;
  uint64_t version = 0;        // of the View
  uint64_t own_version = 0;    // of the job
  uint64_t owner_version = 0;  // View::owner_version
};
struct MadeJob {
  core::JobObjectPtr job;
  std::vector<std::string> warnings;
};

// Up to this many bytes are processed on the API thread itself.
constexpr size_t kHereMax = 32u << 10;

// The parts of the status that the rules for updates use.
core::ObservedStatus observed(const core::Job& job);

class JobWriter : protected RouteBase {
 protected:
  using RouteBase::RouteBase;
  // Makes the new object from the current one; runs on any thread.
  using MakeJob = std::function<Result<MadeJob>(const SeenJob& seen)>;
  // Responds once the change is shown, or simulated in a dry run.
  using Respond = std::function<Promise(const Shown&)>;

  // A new job that has been checked.
  struct Admitted {
    std::optional<Error> refused;
    core::JobObjectPtr job;
    std::string name;  // also set if it is refused
    std::vector<std::string> warnings;
  };
  // `writer`: the creator; nullptr: an apply has already set the managers.
  static Admitted admitted(Result<ParsedJob> parsed, const Admission& admission,
                           const Writer* writer);
  Promise admit(Exchange& exchange, const Target& target, Admitted admitted, bool dry,
                std::function<Promise()> when_exists);
  // `sent`: number of bytes that the client sent.
  Promise change(Exchange& exchange, const Target& target, size_t sent, bool dry, MakeJob make,
                 Respond respond, int tries = kWriteTries);

  // Creates a job for a user, with the rights that they have now; without one (where users have no
  // roles), with all. `component`: the controller that does it, for the managed fields. exists:
  // there is a job of that name. overloaded: its owner may have no more jobs now. invalid: it is
  // refused.
  kj::Promise<Result<core::JobObjectPtr>> create_for(std::optional<uint32_t> user, Json job,
                                                     const char* component);

  // Why the caller may not have this job, which asks for what only operators may have.
  std::optional<std::string> lacks_privilege(const Caller& caller,
                                             const core::JobObject& job) const;
  // Why the caller may not make this change: what runs as the owner once the job has finished is
  // for the owner and for admins, like commands in the owner's pods.
  std::optional<std::string> notifies_as_another(const Caller& caller, const core::JobMeta& old,
                                                 const core::JobMeta& next) const;
  // Why the job cannot be in the queue that it names.
  std::optional<Error> cannot_enter(const core::JobObject& job) const;
  // Why the caller may not create one more job now. If they may, call quotas_.arrived() afterwards.
  std::optional<std::string> take_quota(const Caller& caller);

  // Refuses a job that asks for what only operators may have.
  std::optional<Promise> refuse_privileges(Exchange& exchange, const core::JobObject& job) const;

  // Runs work() on another thread if it has so many bytes to process that it would block this one.
  template <class T>
  kj::Promise<T> aside(size_t bytes, std::function<T()> work) {
    if (bytes <= kHereMax) return work();
    auto result = std::make_shared<std::optional<T>>();
    auto failed = std::make_shared<std::string>();
    auto paf = kj::newPromiseAndFulfiller<T>();
    auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<T>>>(kj::mv(paf.fulfiller));
    backend_.compute(
        [result, failed, work = std::move(work)] {
          try {
            *result = work();
          } catch (const std::exception& e) {
            *failed = e.what();
          }
        },
        [result, failed, fulfiller] {
          if (*result)
            (*fulfiller)->fulfill(std::move(**result));
          else
            (*fulfiller)->reject(KJ_EXCEPTION(FAILED, failed->c_str()));
        });
    return kj::mv(paf.promise);
  }

  // Copies the job if it is processed on another thread; otherwise refers to the View's.
  SeenJob seen_job(const Shown& shown, size_t bytes) const {
    return {bytes <= kHereMax ? std::shared_ptr<const core::Job>(shown.job, [](auto) {})
                              : std::make_shared<const core::Job>(*shown.job),
            view_.version(), shown.version, view_.owner_version(shown.job->id())};
  }

 private:
  kj::Promise<Result<core::JobObjectPtr>> create_as(Caller caller, Json job, const char* component);
};

}  // namespace muster::api
