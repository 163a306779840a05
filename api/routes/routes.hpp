// Routes: what the paths and methods of the objects' API do.
//
// Reading is in routes.cpp (what is muster's own in muster_routes.cpp), writing in a file a kind
// (job_routes.cpp, status_routes.cpp, pod_routes.cpp, node_routes.cpp, kept_routes.cpp). Whoever
// changes an object reads it from the View, makes the new one, judges it and hands both to the
// Backend, which refuses when the object is another one by then; a patch is then made anew.
#pragma once

#include "api/kube/managed_fields.hpp"
#include "api/routes/backend.hpp"
#include "api/routes/exchange.hpp"
#include "api/routes/server_options.hpp"
#include "api/routes/streams.hpp"
#include "api/routes/write_options.hpp"

#include <kj/debug.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::api {

// Which object or collection a path names.
struct Target {
  Kind kind = Kind::job;
  std::string ns;    // empty: all namespaces, or a kind without
  std::string name;  // empty: the collection
  std::string sub;   // "log", "status", "scale", "eviction"

  bool is_kept() const { return kind == Kind::lease || kind == Kind::event; }

  static std::optional<Target> of(const Url& url);
};

// What a path of the group muster.dev/v1 names: something beyond Kubernetes' own objects.
struct MusterTarget {
  std::string ns, job;  // empty: of no job
  std::string what;     // the last word of the path: "indexes"

  static std::optional<MusterTarget> of(const Url& url);
};

// What a client wrote, without its connection: a job's is judged beside the API thread.
struct SaidBody {
  bool put = false;  // else a patch
  std::string content_type;
  std::shared_ptr<const std::string>
      text;  // may be megabytes, and is not copied with whoever holds it

  static SaidBody of(const Exchange& exchange, const std::string& text) {
    return {exchange.method == kj::HttpMethod::PUT, exchange.content_type,
            std::make_shared<const std::string>(text)};
  }
};

// A job as whoever changes it sees it.
struct SeenJob {
  std::shared_ptr<const core::Job> job;
  uint64_t version = 0;        // of the View
  uint64_t own_version = 0;    // of the job
  uint64_t since = 0;          // Shown::since
  uint64_t owner_version = 0;  // View::owner_version
};
struct MadeJob {
  core::JobObjectPtr job;
  std::vector<std::string> warnings;
};

// What is looked at on the API thread itself.
constexpr size_t kHereMax = 32u << 10;  // bytes
// Of everything but jobs.
constexpr size_t kSmallBodyMax = 512u << 10;  // bytes

// A call of the Backend as a promise.
struct Call {
  kj::Promise<Status> promise;
  std::function<void(Status)> done;
};
Call new_call();

// How often a patch or an apply is made anew of an object that changes meanwhile.
constexpr int kWriteTries = 20;

class Routes {
 public:
  Routes(StreamContext& context, const View& view, Backend& backend, Renderer& renderer,
         const ServerOptions& options)
      : context_(context), view_(view), backend_(backend), renderer_(renderer), options_(options) {}

  kj::Promise<void> answer(Exchange& exchange, Target target);
  kj::Promise<void> answer_own(Exchange& exchange, const MusterTarget& target);

 private:
  using Promise = kj::Promise<void>;
  using Handler = Promise (Routes::*)(Exchange&, const Target&, const std::string& body);
  // Makes the new object from the one that is there; on any thread.
  using MakeJob = std::function<Result<MadeJob>(const SeenJob& seen)>;
  using MakeNode = std::function<Result<core::NodeSpec>(const Shown& seen)>;
  // Answers once the change is shown (or pretended).
  using Respond = std::function<Promise(const Shown&)>;

  // Calls work() beside this thread if it has so many bytes to look at that it would hold it up.
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

  // As whoever changes it beside this thread sees it; what is judged here and now is the View's
  // own.
  SeenJob seen_job(const Shown& shown, size_t bytes) const {
    return {bytes <= kHereMax ? std::shared_ptr<const core::Job>(shown.job, [](auto) {})
                              : std::make_shared<const core::Job>(*shown.job),
            view_.version(), shown.version, shown.since, view_.owner_version(shown.job->id())};
  }

  Promise with_body(Exchange& exchange, const Target& target, Handler handler);
  Promise not_allowed(Exchange& exchange, std::string methods);
  Promise respond(Exchange& exchange, const Shown& shown, int code = 200);
  std::optional<Shown> find(const Target& target) const;
  std::optional<std::string> damage(const Target& target, bool reads) const;
  Promise get(Exchange& exchange, const Target& target);
  Promise list(Exchange& exchange, const Target& target);
  std::optional<Promise> refuse_version(Exchange& exchange);
  Promise watch(Exchange& exchange, Query query);
  Promise log(Exchange& exchange, const Target& target);
  Promise pod_log(Exchange& exchange, const Shown& shown, const std::string& name);
  Promise attempts(Exchange& exchange, const Shown& shown);
  Promise attempt_log(Exchange& exchange, const Shown& shown);
  Promise why(Exchange& exchange, const Shown& shown);
  Result<std::optional<core::Pod>> last_attempt(const core::Job& job, uint32_t index);

  Promise indexes(Exchange& exchange, const Shown& job);
  Promise node_use(Exchange& exchange);
  Promise back_up(Exchange& exchange, const Target&, const std::string& body);
  Promise verification(Exchange& exchange);

  Promise create(Exchange& exchange, const Target& target, const std::string& body);
  // A new job, judged. `writer`: who created it; nullptr: its managers are known already, it was
  // applied.
  struct Admitted {
    std::optional<Error> refused;
    core::JobObjectPtr job;
    std::string name;  // also of one that is refused
    std::vector<std::string> warnings;
  };
  static Admitted admitted(Result<ParsedJob> parsed, const Admission& admission,
                           const Writer* writer);
  Promise admit(Exchange& exchange, const Target& target, Admitted admitted, bool dry,
                std::function<Promise()> when_exists);
  Promise apply_job(Exchange& exchange, const Target& target, const std::string& body);
  Promise apply_parsed(Exchange& exchange, const Target& target, const std::string& body,
                       const WriteOptions& options, ParsedJob parsed);
  Promise apply_node(Exchange& exchange, const Target& target, const std::string& body);
  Promise write_job(Exchange& exchange, const Target& target, const std::string& body);
  Promise write_job_status(Exchange& exchange, const Target& target, const std::string& body);
  Promise change_status(Exchange& exchange, const Target& target, const std::string& body,
                        const WriteOptions& options, int tries);
  Promise get_scale(Exchange& exchange, const Target& target);
  Promise write_scale(Exchange& exchange, const Target& target, const std::string& body);
  Promise remove_job(Exchange& exchange, const Target& target, const std::string& body);
  Promise remove_all(Exchange& exchange, const Target& target, const std::string& body);
  // `said`: bytes that were sent.
  Promise change_job(Exchange& exchange, const Target& target, size_t said, bool dry, MakeJob make,
                     Respond respond, int tries);
  Promise removed(Exchange& exchange, const Target& target, const std::string& uid);

  Promise write_pod(Exchange& exchange, const Target& target, const std::string& body);
  Promise remove_pod(Exchange& exchange, const Target& target, const std::string& body);
  Promise evict(Exchange& exchange, const Target& target, const std::string& body);
  Promise delete_pod(Exchange& exchange, const Target& target, const DeleteOptions& options,
                     bool evict);
  Promise pod_or_success(Exchange& exchange, const Target& target, const std::string& uid);

  Promise write_node(Exchange& exchange, const Target& target, const std::string& body);
  Promise remove_node(Exchange& exchange, const Target& target, const std::string& body);
  Promise change_node(Exchange& exchange, const Target& target, bool dry, MakeNode make, int tries);

  // What a request wants of what it looks at; nothing of it: it goes.
  using MakeKept = std::function<Result<core::KeptPtr>(const std::optional<Shown>& seen)>;
  Promise create_kept(Exchange& exchange, const Target& target, const std::string& body);
  Promise write_kept(Exchange& exchange, const Target& target, const std::string& body);
  Promise change_kept(Exchange& exchange, const Target& target, bool dry, MakeKept make, int tries);
  Promise remove_kept(Exchange& exchange, const Target& target, const std::string& body);
  Promise remove_all_kept(Exchange& exchange, const Target& target, const std::string& body);

  Writer writer(const Exchange& exchange, const WriteOptions& options, Kind kind,
                const std::string& subresource = "") const;
  std::string random_uid();
  std::string random_suffix();

  StreamContext& context_;
  const View& view_;
  Backend& backend_;
  Renderer& renderer_;
  const ServerOptions& options_;
};

// The `{"kind": "Status", "status": "Success"}` of a deletion.
OrderedJson success_json(const std::string& resource, const std::string& name,
                         const std::string& uid);

// What of the preconditions of a deletion does not hold, if anything. `since`: the lowest version
// that stands for the object as it is; `version`: its own.
std::optional<Error> broken_precondition(const DeleteOptions& options, const std::string& uid,
                                         uint64_t version, uint64_t since);
// "Precondition failed: UID in precondition: …"
std::string precondition_text(const std::string& what, const std::string& wanted,
                              const std::string& is);

// Which objects a list, a watch or a deletion means.
Result<Query> query_of(const Url& url, const Target& target);

// As etcd bounds a request: an object with its managed fields, or the status of one.
constexpr size_t kObjectMax = 3u << 19;  // bytes
// Why an object is not kept; nothing: it is. One that was too large `before` may only shrink.
std::optional<std::string> beyond_bounds(const std::string& json, size_t before = 0);
kj::Promise<void> too_large(Exchange& exchange, const std::string& why);
// The same as an error of a judged object, which send_refused() tells from the others.
Error beyond(std::string why);
kj::Promise<void> send_refused(Exchange& exchange, const Error& error, const std::string& name);

// What the rules of an update look at in the status.
core::ObservedStatus observed(const core::Job& job);

// What a PUT (the body itself) or a PATCH makes of `base`.
Result<Json> written(const SaidBody& said, const Json& base);

// The same job, with the managers that it has once this writer made it of what was there (empty:
// nothing, it is new).
core::JobObjectPtr tracked(core::JobObjectPtr job, const std::string& before, const Writer& writer);

// The same of a new job, made of what was `said`.
core::JobObjectPtr tracked_new(core::JobObjectPtr job, const Json& said, const Writer& writer);

// The same for what people set of a node. `said`: the node as it was written.
core::NodeSpec tracked(core::NodeSpec spec, const Shown& seen, const Json& said,
                       const Writer& writer);
// What people may set of a written Node. Labels that the agent tells stay its own.
Result<core::NodeSpec> node_spec(const Json& json, const core::NodeInfo& node);

// The metadata.resourceVersion that an object names; empty: none.
std::string version_text(const Json& object);
// A resourceVersion that the client wants: none, or one at which the object's own part was already
// as it is now.
bool version_holds(const std::string& wanted, uint64_t owner_version);

}  // namespace muster::api
