#include "api/routes/pods/attempt_routes.hpp"

#include "api/view/query/object_json.hpp"
#include "api/view/render/pod_runs.hpp"
#include "api/view/render/why.hpp"
#include "core/index_set.hpp"
#include "core/job/fold/text.hpp"
#include "core/pod_name.hpp"

namespace muster::api {
namespace {

constexpr size_t kPageMax = 1000, kPageDefault = 500;

}  // namespace

kj::Promise<void> AttemptRoutes::list(Exchange& exchange, const Shown& shown) {
  const core::Job& job = *shown.job;
  const core::JobMeta& meta = job.object().meta;
  return list(
      exchange, job.id(),
      {meta.name, meta.uid, job.indexed(), &job.spec().pod, &job.object(), job.state().admitted_ms},
      &job);
}

kj::Promise<void> AttemptRoutes::list(Exchange& exchange, JobId id, const AttemptOf& job,
                                      const core::Job* now) {
  const Url& url = exchange.url;
  AttemptRequest request{.job = id, .limit = kPageDefault};
  core::IndexSet indexes;
  const std::string set = url.get("index");
  if (!set.empty()) {
    auto parsed = core::IndexSet::parse_strict(set, int64_t{1} << 31);
    if (!parsed.ok()) return exchange.bad("index: " + parsed.error().message);
    indexes = std::move(*parsed);
  }
  if (const std::string limit = url.get("limit"); !limit.empty()) {
    auto n = whole_number<size_t>(limit);
    if (!n || *n == 0) return exchange.bad("limit: not a number above 0: \"" + limit + "\"");
    request.limit = std::min(*n, kPageMax);
  }
  if (const std::string token = url.get("continue"); !token.empty()) {
    auto from = attempt_token(token);
    if (!from) return exchange.bad("continue: not a token of this server: \"" + token + "\"");
    request.from = *from;
  }
  const bool failed = url.flag("failed");
  request.wanted = [&](const core::Pod& pod) {
    if (failed && (!pod.ended || pod.end.succeeded())) return false;
    return set.empty() || indexes.contains(pod.key.index);
  };
  auto page = backend_.read_attempts(request);
  if (!page.ok()) return exchange.send_status(500, "InternalError", page.error().message);
  // Those whose replacement does not exist yet (deferred) are not in the history, nor are those
  // that have not ended.
  const bool uncounted = url.flag("uncounted"), open = url.flag("open");
  if ((uncounted || open) && now != nullptr && !page->next)
    now->each_pod([&](const core::Pod& pod) {
      const bool more = pod.ended ? uncounted && pod.counted == core::Counted::not_yet : open;
      if (more && request.wanted(pod)) page->attempts.push_back(pod);
    });
  return exchange.send(200, dumped(attempt_list(view_, job, *page)) + "\n");
}

// The pod that `index` and `attempt` choose; in a NonIndexed job either has its number, and earlier
// clients say that the attempt is 0.
std::optional<PodKey> chosen_pod(const Url& url, bool indexed) {
  const std::string index = url.get("index"), attempt = url.get("attempt");
  const auto of_index = whole_number<uint32_t>(index), of_attempt = whole_number<uint32_t>(attempt);
  const bool needs_index = indexed || !index.empty();
  if (!of_attempt || (needs_index && !of_index)) return std::nullopt;
  const bool whole_key = indexed || (of_index && *of_attempt != 0 && *of_attempt != *of_index);
  if (whole_key) return PodKey{*of_index, *of_attempt};
  return PodKey{of_index.value_or(*of_attempt), 0};
}

// Other parameters than those of chosen_pod() are those of a pod's log.
kj::Promise<void> AttemptRoutes::log(Exchange& exchange, const Shown& shown) {
  const core::Job& job = *shown.job;
  const auto chosen = chosen_pod(exchange.url, job.indexed());
  if (!chosen) return exchange.bad("index and attempt: each must be a number");
  const PodKey key = *chosen;
  const core::JobMeta& meta = job.object().meta;
  const std::string name = core::pod_name(meta.name, meta.uid, job.indexed(), key);
  if (const core::Pod* pod = job.pod(key))
    return logs_.of_pod(exchange, Shown{.kind = Kind::pod, .job = &job, .pod = pod}, name);
  AttemptRequest request{.job = job.id(), .limit = 1};
  request.wanted = [key](const core::Pod& pod) { return pod.key == key; };
  for (;;) {
    auto page = backend_.read_attempts(request);
    if (!page.ok()) return exchange.send_status(500, "InternalError", page.error().message);
    if (!page->attempts.empty())
      return logs_.of_pod(exchange,
                          Shown{.kind = Kind::pod, .job = &job, .pod = &page->attempts[0]}, name);
    if (!page->next) return exchange.send_error({Errc::not_found, "", {}}, "attempts", name);
    request.from = *page->next;
  }
}

// The newest ended attempt of an index: a shown pod or, failing that, the last one in the history.
Result<std::optional<core::Pod>> AttemptRoutes::last_attempt(const core::Job& job, uint32_t index) {
  std::optional<core::Pod> last;
  job.each_pod([&](const core::Pod& pod) {
    if (pod.ended && pod.key.index == index && (!last || last->key.attempt < pod.key.attempt))
      last = pod;
  });
  if (last) return last;
  AttemptRequest request{.job = job.id(), .limit = kPageMax};
  request.wanted = [index](const core::Pod& pod) { return pod.key.index == index; };
  for (;;) {
    auto page = backend_.read_attempts(request);
    if (!page.ok()) return page.error();
    if (!page->attempts.empty()) last = page->attempts.back();
    if (!page->next) return last;
    request.from = *page->next;
  }
}

kj::Promise<void> AttemptRoutes::why(Exchange& exchange, const Shown& shown) {
  const core::Job& job = *shown.job;
  Explanation why;
  const std::string text = exchange.url.get("index");
  if (text.empty()) {
    why = why_job(view_, job, options_.now(), options_.knobs, options_.quotas.pods_max);
  } else {
    if (!job.indexed()) return exchange.bad("index: the job is not Indexed");
    auto index = whole_number<uint32_t>(text);
    if (!index || int64_t{*index} >= job.index_count())
      return exchange.bad("index: \"" + text + "\" is not one of 0-" +
                          std::to_string(job.index_count() - 1));
    auto last = last_attempt(job, *index);
    if (!last.ok()) return exchange.send_status(500, "InternalError", last.error().message);
    why = why_index(view_, job, *index, *last, options_.now(), options_.knobs,
                    options_.quotas.pods_max);
  }
  OrderedJson out;
  out["kind"] = "Explanation";
  out["apiVersion"] = "muster.dev/v1";
  out["state"] = why.state;
  out["summary"] = why.summary;
  out["details"] = why.details;
  if (why.until_ms != 0) out["until"] = core::instant_text(why.until_ms);
  if (why.next_retry_ms != 0) out["nextRetry"] = core::instant_text(why.next_retry_ms);
  const auto pairs = view_.unreached().find(job.id());
  if (pairs != view_.unreached().end() && !pairs->second.empty())
    out["unreached"] = core::reach_lines(pairs->second);
  const std::string queue = core::queue_of(core::placed_object(job)->meta.annotations);
  if (queue != core::kDefaultQueue || !queues_.all()->queues.empty()) out["queue"] = queue;
  return exchange.send(200, dumped(out) + "\n");
}

kj::Promise<void> AttemptRoutes::usage(Exchange& exchange, const Shown& shown) {
  const core::JobUsage& usage = shown.job->state().usage;
  OrderedJson out;
  out["kind"] = "JobUsage";
  out["apiVersion"] = "muster.dev/v1";
  put_usage(out, usage.used);
  out["ranSeconds"] = static_cast<double>(usage.ran_ms) / 1e3;
  return exchange.send(200, dumped(out) + "\n");
}

}  // namespace muster::api
