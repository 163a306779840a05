#include "api/routes/pods/log_routes.hpp"

#include "api/routes/pods/log_options.hpp"
#include "api/routes/pods/log_stream.hpp"
#include "api/routes/pods/pod_container.hpp"
#include "core/job/shown/container_run.hpp"

#include <utility>

namespace muster::api {

kj::Promise<void> LogRoutes::get(Exchange& exchange, const Target& target) {
  const auto shown = view_.pod(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "pods", target.name);
  return of_pod(exchange, *shown, target.name);
}

kj::Promise<void> LogRoutes::of_pod(Exchange& exchange, const Shown& shown,
                                    const std::string& name) {
  const auto options = read_log_options(exchange.url, options_.now());
  if (!options) return exchange.send_error(options.error(), "PodLogOptions", name);
  const core::PodTemplate& pod = shown.job->spec().pod;
  // muster's own commands ask for a stream, and read the first container.
  std::string wanted = options->container;
  if (wanted.empty() && options->stream_given && !pod.containers.empty())
    wanted = pod.containers.front().name;
  const auto chosen = chosen_container(pod, wanted, name);
  if (!chosen) return exchange.bad(chosen.error().message);
  const auto& [container, position] = *chosen;

  LogQuery query;
  query.pod = key_of(shown);
  if (shown.pod->ended) query.ended_on = shown.pod->node;
  query.job_uid = shown.job->object().meta.uid;
  query.pod_name = name;
  query.container = container;
  query.position = position;
  query.only_one = pod.init_containers.size() + pod.containers.size() == 1;
  query.follow = options->follow;
  query.out = options->out;
  query.err = options->err;
  query.timestamps = options->timestamps;
  query.tail_lines = options->tail_lines;
  query.limit_bytes = options->limit_bytes;
  query.since = options->since;
  query.offset = options->offset;
  query.otherwise_at = shown.pod->ended ? shown.pod->end.ended_at : options_.now();
  const core::ContainerRun run = core::container_run(*shown.pod, position, query.only_one);
  if (!options->follow && !options->stream_given && !run.begun && shown.pod->bound() &&
      shown.pod->open())
    return exchange.bad("container \"" + container + "\" in pod \"" + name +
                        "\" is waiting to start: " +
                        (pod.init_containers.empty() ? "ContainerCreating" : "PodInitializing"));
  if (options->previous && !run.previous)
    return exchange.bad("previous terminated container \"" + container + "\" in pod \"" + name +
                        "\" not found");
  if (options->previous)
    query.run = *run.previous;
  else if (!options->stream_given)
    query.run = run.current;
  if (shown.pod->ended && shown.pod->end.ended_at < options->since)
    return exchange.send(200, "", "text/plain; charset=utf-8");
  return stream_log(streams_, exchange, backend_, std::move(query));
}

}  // namespace muster::api
