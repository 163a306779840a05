#include "api/routes/jobs/collection_routes.hpp"

#include "api/request/writes.hpp"
#include "api/routes/jobs/job_routes.hpp"
#include "api/routes/kept/owner_deletion.hpp"
#include "api/routes/kept/read_routes.hpp"

#include <map>
#include <vector>

namespace muster::api {
namespace {

constexpr size_t kListMax = 4u << 20;  // bytes of deleted objects in the response

}  // namespace

// Deletes all selected objects, each as if it were deleted alone. Responds with a list of them or,
// if it is long, just with a success.
kj::Promise<void> CollectionRoutes::remove(Exchange& exchange, const Target& target,
                                           const std::string& body) {
  auto options = delete_options(exchange.url, body, exchange.content_type);
  if (!options.ok()) return exchange.bad_options(options.error());
  auto query = query_of(exchange, target, gate_);
  if (!query.ok()) return exchange.bad(query.error().message);
  if (target.kind == Kind::job && !options->propagation) exchange.warnings = {kOrphansByDefault};
  std::string items;
  std::vector<core::JobObjectPtr> jobs;
  std::map<JobId, std::vector<PodKey>> pods;
  view_.each(query->kind, query->ns, query->wanted(), [&](const Shown& shown) {
    if (!query->matches(view_, shown)) return;
    if (items.size() <= kListMax) {
      if (!items.empty()) items += ",";
      renderer_.object(items, shown);
    }
    if (target.kind == Kind::job)
      jobs.push_back(shown.job->object_ptr());
    else
      pods[shown.job->id()].push_back(shown.pod->key);
  });
  std::string answer = items.size() > kListMax
                           ? dumped(success_json(resource_name(target.kind), "", "")) + "\n"
                           : renderer_.list_head(target.kind, Form::plain) + items +
                                 renderer_.list_tail({view_.version(), "", 0});
  if (options->dry) return exchange.send(200, std::move(answer));
  kj::Vector<kj::Promise<void>> all;
  const Propagation propagation = options->propagation.value_or(Propagation::orphan);
  OwnerDeletion deletion(view_, backend_);
  for (const core::JobObjectPtr& job : jobs)
    all.add(deletion.job(job->meta, propagation).ignoreResult());
  for (auto& [job, keys] : pods) {
    Call call = new_call();
    backend_.delete_pods(job, std::move(keys), false, options->grace_ms, std::move(call.done));
    all.add(call.promise.ignoreResult());
  }
  return kj::joinPromises(all.releaseAsArray())
      .then([&exchange, answer = std::move(answer)]() mutable {
        return exchange.send(200, std::move(answer));
      });
}

}  // namespace muster::api
