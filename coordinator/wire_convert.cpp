#include "coordinator/wire_convert.hpp"

#include "core/spec/annotations.hpp"

#include <algorithm>

namespace muster::coordinator {

namespace {

core::EndCause cause_of(wire::PodEnd::Cause cause) {
  switch (cause) {
    case wire::PodEnd::Cause::EXITED:
      return core::EndCause::exited;
    case wire::PodEnd::Cause::KILLED:
      return core::EndCause::killed;
    case wire::PodEnd::Cause::NEVER_STARTED:
      return core::EndCause::never_started;
    case wire::PodEnd::Cause::START_FAILED:
      return core::EndCause::start_failed;
    case wire::PodEnd::Cause::KEEPER_LOST:
      return core::EndCause::keeper_lost;
    case wire::PodEnd::Cause::AGENT_STOPPED:
      return core::EndCause::agent_stopped;
    case wire::PodEnd::Cause::FENCED:
      return core::EndCause::fenced;
    case wire::PodEnd::Cause::DEADLINE:
      return core::EndCause::deadline;
    case wire::PodEnd::Cause::OUT_OF_MEMORY:
      return core::EndCause::out_of_memory;
  }
  return core::EndCause::exited;
}

std::vector<PodId> read_pods(capnp::List<wire::PodId>::Reader pods) {
  std::vector<PodId> out;
  out.reserve(pods.size());
  for (auto pod : pods) out.push_back(read_pod(pod));
  return out;
}

// An age as a span that fits and cannot be negative.
Millis age(uint64_t ms) {
  return static_cast<Millis>(std::min<uint64_t>(ms, uint64_t{1} << 50));
}

void write_texts(capnp::List<capnp::Text>::Builder out, const std::vector<std::string>& texts) {
  for (unsigned i = 0; i < texts.size(); ++i) out.set(i, texts[i]);
}

void write_pairs(capnp::List<wire::Pair>::Builder out, const core::StringMap& pairs) {
  unsigned i = 0;
  for (const auto& [key, value] : pairs) {
    out[i].setKey(key);
    out[i++].setValue(value);
  }
}

void write_container(wire::Container::Builder out, const core::Container& container) {
  out.setName(container.name);
  write_texts(out.initCommand(static_cast<unsigned>(container.command.size())), container.command);
  write_texts(out.initArgs(static_cast<unsigned>(container.args.size())), container.args);
  out.setWorkingDir(container.working_dir);
  auto env = out.initEnv(static_cast<unsigned>(container.env.size()));
  for (unsigned i = 0; i < container.env.size(); ++i) {
    env[i].setName(container.env[i].name);
    env[i].setValue(container.env[i].value);
    env[i].setFieldPath(container.env[i].field_path);
  }
}

}  // namespace

actors::AgentHello read_hello(wire::Hello::Reader hello, uint64_t link) {
  actors::AgentHello out;
  out.link = link;
  out.node = hello.getNode();
  out.work_dir_id = hello.getWorkDirId();
  out.boot_id = hello.getBootId();
  out.cluster_id = hello.getClusterId();
  out.highest_epoch = hello.getHighestEpoch();
  out.epoch_nonce = hello.getEpochNonce();
  out.highest_commit = hello.getHighestCommit();
  out.slots = hello.getSlots();
  out.cpu_millis = hello.getCpuMillis();
  out.memory_bytes = hello.getMemoryBytes();
  for (auto label : hello.getLabels()) out.labels[label.getKey()] = label.getValue();
  out.address = hello.getAddress();
  out.running = read_pods(hello.getRunning());
  out.waiting = read_pods(hello.getWaiting());
  out.ended = read_pods(hello.getEnded());
  return out;
}

std::map<JobId, core::PodsReported> read_report(NodeId node,
                                                capnp::List<wire::PodStart>::Reader starts,
                                                capnp::List<wire::PodEnd>::Reader ends) {
  std::map<JobId, core::PodsReported> jobs;
  auto of = [&jobs, node](JobId id) -> core::PodsReported& {
    core::PodsReported& report = jobs[id];
    report.node = node;
    return report;
  };
  for (auto start : starts) {
    PodId pod = read_pod(start.getPod());
    of(pod.job).starts.push_back({pod.key(), static_cast<int32_t>(start.getPid()),
                                  static_cast<int32_t>(start.getRestarts()),
                                  age(start.getAgeMs())});
  }
  for (auto end : ends) {
    PodId pod = read_pod(end.getPod());
    core::PodsReported::Ended out;
    out.pod = pod.key();
    out.cause = cause_of(end.getCause());
    out.exit_code = end.getExitCode();
    out.signal = end.getSignal();
    out.pid = static_cast<int32_t>(end.getPid());
    out.restarts = static_cast<int32_t>(end.getRestarts());
    out.start_age_ms = age(end.getStartAgeMs());
    out.end_age_ms = age(end.getEndAgeMs());
    out.message = end.getMessage();
    of(pod.job).ends.push_back(std::move(out));
  }
  return jobs;
}

void write_template(wire::PodTemplate::Builder out, JobId job, const core::JobObject& object) {
  const core::PodTemplate& pod = object.spec.pod;
  out.setJob(job);
  out.setGeneration(object.meta.generation);
  out.setJobName(object.meta.name);
  out.setJobUid(object.meta.uid);
  out.setNamespace(object.meta.ns);
  out.setIndexed(object.spec.indexed());
  out.setCompletions(object.spec.completions.value_or(-1));
  out.setParallelism(object.spec.parallelism.value_or(1));
  out.setGraceMs(pod.termination_grace_s.value_or(30) * 1000);
  out.setRestartPolicy(pod.restart_policy);
  auto init = out.initInitContainers(static_cast<unsigned>(pod.init_containers.size()));
  for (unsigned i = 0; i < pod.init_containers.size(); ++i)
    write_container(init[i], pod.init_containers[i]);
  auto containers = out.initContainers(static_cast<unsigned>(pod.containers.size()));
  for (unsigned i = 0; i < pod.containers.size(); ++i)
    write_container(containers[i], pod.containers[i]);
  out.setRestartDelayMs(core::read_annotations(object.meta.annotations).restart_delay_ms);
  out.setActiveDeadlineMs(pod.active_deadline_s.value_or(0) * 1000);
  write_pairs(out.initLabels(static_cast<unsigned>(pod.labels.size())), pod.labels);
  write_pairs(out.initAnnotations(static_cast<unsigned>(pod.annotations.size())), pod.annotations);
}

}  // namespace muster::coordinator
