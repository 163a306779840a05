#include "api/routes/pods/log_routes.hpp"

#include "api/routes/pods/pod_container.hpp"
#include "base/text/time_text.hpp"

#include <utility>

namespace muster::api {
namespace {

// The time that sinceSeconds or sinceTime gives; 0: none.
Result<Millis> log_since(const Url& url, Millis now_ms) {
  const std::string seconds = url.get("sinceSeconds"), time = url.get("sinceTime");
  if (!seconds.empty() && !time.empty())
    return Error{Errc::invalid, "at most one of sinceTime or sinceSeconds may be specified", {}};
  if (!seconds.empty()) {
    const auto n = whole_number<int64_t>(seconds);
    if (!n || *n <= 0 || *n > now_ms / 1000)
      return Error{Errc::invalid, "sinceSeconds: not a number above 0: \"" + seconds + "\"", {}};
    return now_ms - *n * 1000;
  }
  if (time.empty()) return Millis{0};
  const auto instant = parse_time(time);
  if (!instant)
    return Error{
        Errc::invalid, "sinceTime: not a time such as 2026-03-01T12:00:00Z: \"" + time + "\"", {}};
  return *instant;
}

}  // namespace

kj::Promise<void> LogRoutes::get(Exchange& exchange, const Target& target) {
  const auto shown = view_.pod(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "pods", target.name);
  return of_pod(exchange, *shown, target.name);
}

kj::Promise<void> LogRoutes::of_pod(Exchange& exchange, const Shown& shown,
                                    const std::string& name) {
  const Url& url = exchange.url;
  LogQuery query;
  query.pod = key_of(shown);
  if (shown.pod->ended) query.ended_on = shown.pod->node;
  query.job_uid = shown.job->object().meta.uid;
  query.pod_name = name;
  const core::PodTemplate& spec = shown.job->spec().pod;
  // muster's own commands ask for a stream, and read the first container.
  std::string wanted = url.get("container");
  if (wanted.empty() && !url.get("stream").empty() && !spec.containers.empty())
    wanted = spec.containers.front().name;
  auto container = chosen_container(spec, wanted, name);
  if (!container) return exchange.bad(container.error().message);
  query.container = std::move(*container);
  if (url.flag("previous"))
    return exchange.bad("previous terminated container \"" + query.container + "\" in pod \"" +
                        name + "\" not found");
  query.follow = url.flag("follow");
  const std::string stream = url.get("stream");
  if (!stream.empty() && stream != "All" && stream != "Stdout" && stream != "Stderr")
    return exchange.bad("stream: Unsupported value: \"" + stream +
                        "\": supported values: \"All\", \"Stdout\", \"Stderr\"");
  query.out = stream != "Stderr";
  query.err = stream != "Stdout";
  std::optional<int64_t> offset;
  for (auto [name, field] : {std::pair{"tailLines", &query.tail_lines},
                             {"limitBytes", &query.limit_bytes},
                             {"offset", &offset}}) {
    const std::string text = url.get(name);
    if (text.empty()) continue;
    const auto n = whole_number<int64_t>(text);
    if (!n || *n < 0) return exchange.bad(std::string(name) + ": not a number: \"" + text + "\"");
    *field = *n;
  }
  query.offset = offset.value_or(0);
  if (query.offset > 0 && (query.tail_lines || (query.out && query.err)))
    return exchange.bad("offset: needs one stream, Stdout or Stderr, and no tailLines");
  if (url.flag("timestamps"))
    return exchange.bad(
        "timestamps: output is stored as it was written, without the time of each line");
  const auto since = log_since(url, options_.now());
  if (!since.ok()) return exchange.bad(since.error().message);
  const core::Pod& pod = *shown.pod;
  if (pod.ended && pod.end.ended_at < *since)
    return exchange.send(200, "", "text/plain; charset=utf-8");
  if (pod.started_at && *pod.started_at < *since)
    exchange.warnings.push_back(
        "the times of lines are not known, so this is the pod's whole output");
  return stream_log(streams_, exchange, backend_, std::move(query));
}

}  // namespace muster::api
