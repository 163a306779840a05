#include "coordinator/links/wire_convert.hpp"

#include "base/printable.hpp"
#include "core/cluster/nodes/node_rules.hpp"
#include "core/node/space.hpp"
#include "core/node/template_codec.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/values/inputs.hpp"
#include "core/spec/values/quantity.hpp"
#include "schema/pod_end.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::coordinator {

namespace {

// Only the coordinator decides that a node is lost or deleted, and a newer agent may report a cause
// that is unknown here: both become `exited`.
core::EndCause cause_of(wire::EndCause from) {
  const auto cause = wire::from_wire(from);
  const bool ours = cause == core::EndCause::node_lost || cause == core::EndCause::node_deleted;
  return cause && !ours ? *cause : core::EndCause::exited;
}

std::vector<PodId> read_pods(capnp::List<wire::PodId>::Reader pods) {
  std::vector<PodId> out;
  out.reserve(pods.size());
  for (auto pod : pods) out.push_back(read_pod(pod));
  return out;
}

// Bounds an age, so that it fits and can't be negative.
Age age(uint64_t ms) {
  return {static_cast<Millis>(std::min<uint64_t>(ms, uint64_t{1} << 50))};
}

int32_t number(uint32_t value) {
  return static_cast<int32_t>(std::min<uint32_t>(value, std::numeric_limits<int32_t>::max()));
}

std::optional<int32_t> pid_of(uint32_t pid) {
  return pid == 0 ? std::nullopt : std::optional(number(pid));
}

core::ContainerEndOf<Age> read_container_end(wire::ContainerEnd::Reader in) {
  auto out = wire::read_container<Age>(
      in, [](uint64_t code) { return age(code == 0 ? 0 : code - 1); }, cause_of);
  out.restarts = std::max(0, out.restarts);
  return out;
}

core::RunEndOf<Age> read_run_end(wire::RunEnd::Reader in) {
  auto out = wire::read_run<Age>(
      in, [](uint64_t code) { return age(code == 0 ? 0 : code - 1); }, cause_of);
  out.end.restarts = std::max(0, out.end.restarts);
  return out;
}

core::ContainerNowOf<Age> read_container_now(wire::ContainerNow::Reader in) {
  auto out = wire::read_container_now<Age>(
      in, [](uint64_t code) { return age(code == 0 ? 0 : code - 1); }, cause_of);
  out.restarts = std::max(0, out.restarts);
  return out;
}

kj::ArrayPtr<const kj::byte> data_of(const std::string& text) {
  return kj::arrayPtr(reinterpret_cast<const kj::byte*>(text.data()), text.size());
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

// In thousandths; 0 if it is absent or can't be read (admission has validated it).
int64_t amount(const core::StringMap& amounts, const char* name) {
  auto found = amounts.find(name);
  if (found == amounts.end()) return 0;
  auto milli = core::parse_quantity_milli(found->second);
  return milli ? std::max<int64_t>(0, *milli) : 0;
}

// Named resources that a container requests; a limit counts if there is no request.
std::map<std::string, uint64_t> named(const core::Resources& resources) {
  std::map<std::string, uint64_t> counts;
  for (const auto* amounts : {&resources.limits, &resources.requests}) {
    for (const auto& [name, text] : *amounts) {
      if (name.find('/') == std::string::npos) continue;
      counts[name] = static_cast<uint64_t>((amount(*amounts, name.c_str()) + 999) / 1000);
    }
  }
  std::erase_if(counts, [](const auto& one) { return one.second == 0; });
  return counts;
}

core::node::TemplateContainer container_of(const core::Container& container,
                                           const core::PodTemplate& pod,
                                           const core::NodeFigures& figures) {
  core::node::TemplateContainer out;
  out.what = container;
  const core::StringMap& limits = container.resources.limits;
  if (const int64_t bytes = (amount(limits, "memory") + 999) / 1000; bytes > 0)
    out.memory_limit_bytes = static_cast<uint64_t>(bytes);
  if (const int64_t cpu = amount(limits, "cpu"); cpu > 0)
    out.cpu_limit_millis = static_cast<uint64_t>(cpu);
  const core::StringMap& requests = container.resources.requests;
  const int64_t cpu = amount(requests.contains("cpu") ? requests : limits, "cpu");
  out.cpus = core::node::whole_cpus(static_cast<uint64_t>(cpu), out.cpu_limit_millis.value_or(0));
  for (const auto& [name, count] : named(container.resources))
    out.devices[name] = static_cast<uint32_t>(count);
  out.confinement = core::node::confinement_of(pod.security, container.security);
  core::put_values(out.what, pod, figures);
  return out;
}

}  // namespace

core::node::PodTemplate template_of(JobId job, const core::JobObject& object,
                                    const core::NodeFigures& figures,
                                    const core::ImageRuntime& runtime,
                                    const core::ConfigMaps& configs) {
  const core::PodTemplate& pod = object.spec.pod;
  const core::JobAnnotations annotations = core::read_annotations(object.meta.annotations);
  core::node::PodTemplate out{.job = job,
                              .generation = object.meta.generation,
                              .job_name = object.meta.name,
                              .job_uid = object.meta.uid,
                              .ns = object.meta.ns,
                              .owner_uid = core::owner_uid(object.meta.annotations),
                              .indexed = object.spec.indexed(),
                              .completions = object.spec.completions,
                              .parallelism = object.spec.parallelism.value_or(1),
                              .grace_ms = pod.termination_grace_s.value_or(30) * 1000,
                              .restarts = pod.restart_policy == "OnFailure",
                              .restart_delay_ms = annotations.restart_delay_ms,
                              .signal = core::limit_signal_of(object.meta.annotations),
                              .fence_after_ms = annotations.fence_after_ms,
                              .init_containers = pod.init_containers.size(),
                              .labels = pod.labels,
                              .annotations = pod.annotations,
                              .volumes = pod.volumes,
                              .private_tmp = annotations.private_tmp,
                              .process = core::read_process_settings(object.meta.annotations),
                              .config_needs = core::config_needs(pod),
                              .configs = configs};
  if (const auto mpi = object.meta.annotations.find(std::string(core::kMpiKey));
      mpi != object.meta.annotations.end())
    out.mpi = mpi->second;
  if (const auto lines = object.meta.annotations.find(std::string(core::kInputsKey));
      lines != object.meta.annotations.end())
    if (auto table = core::InputTable::of(lines->second))
      out.inputs = std::make_shared<const core::InputTable>(std::move(*table));
  if (const auto file = object.meta.annotations.find(std::string(core::kInputsFileKey));
      file != object.meta.annotations.end())
    out.inputs_file = file->second;
  if (pod.active_deadline_s) out.active_deadline_ms = *pod.active_deadline_s * 1000;
  for (size_t i = 0; i < pod.init_containers.size(); ++i)
    if (pod.init_containers[i].sidecar) out.sidecars.push_back(static_cast<uint16_t>(i));
  for (const auto* containers : {&pod.init_containers, &pod.containers})
    for (const core::Container& container : *containers) {
      out.containers.push_back(container_of(container, pod, figures));
      runtime.wrap(out.containers.back().what);
    }
  return out;
}

namespace {

// Variables that make an agent without support for inputs, volumes, confined processes, files in
// place of logs, signals before a limit or sidecars refuse the pod. All agents confine processes
// that run as a job's owner.
std::vector<std::pair<std::string_view, std::string_view>> marks_of(
    const core::node::PodTemplate& job) {
  std::vector<std::pair<std::string_view, std::string_view>> marks;
  if (job.inputs || !job.inputs_file.empty())
    marks.emplace_back(core::kInputVariable, core::kInputsKey);
  if (core::node::has_space(job)) marks.emplace_back(core::kScratchVariable, core::kVolumesLabel);
  if (core::node::shares_memory(job))
    marks.emplace_back("MUSTER_SHARED_MEMORY", core::node::kSharedMemoryMark);
  if (!job.owner_uid && std::any_of(job.containers.begin(), job.containers.end(),
                                    [](const auto& one) { return one.confinement.any(); }))
    marks.emplace_back("MUSTER_SECURITY_CONTEXT", core::node::kConfinementMark);
  if (job.process.files()) marks.emplace_back("MUSTER_OUTPUT_FILES", core::kStdoutKey);
  if (job.signal) marks.emplace_back("MUSTER_LIMIT_SIGNAL", core::kSignalKey);
  if (!job.sidecars.empty()) marks.emplace_back("MUSTER_SIDECARS", "initContainers.restartPolicy");
  return marks;
}

void write_volumes(capnp::List<wire::Volume>::Builder out,
                   const std::vector<core::Volume>& volumes) {
  for (unsigned i = 0; i < volumes.size(); ++i) {
    const core::Volume& from = volumes[i];
    auto to = out[i];
    to.setName(from.name);
    to.setKind(static_cast<uint8_t>(from.kind));
    to.setMedium(from.medium);
    to.setSizeLimit(from.size_limit);
    to.setPath(from.path);
    to.setType(from.type);
    to.setSecret(from.secret);
    auto items = to.initItems(static_cast<unsigned>(from.items.size()));
    for (unsigned k = 0; k < from.items.size(); ++k) {
      items[k].setKey(from.items[k].key);
      items[k].setPath(from.items[k].path);
      if (from.items[k].mode) items[k].setMode(*from.items[k].mode);
    }
    if (from.default_mode) to.setDefaultMode(*from.default_mode);
    to.setOptional(from.optional);
    to.setConfigMap(from.config_map);
  }
}

void write_mounts(capnp::List<wire::VolumeMount>::Builder out,
                  const std::vector<core::VolumeMount>& mounts) {
  for (unsigned i = 0; i < mounts.size(); ++i) {
    out[i].setName(mounts[i].name);
    out[i].setMountPath(mounts[i].mount_path);
    out[i].setSubPath(mounts[i].sub_path);
    out[i].setReadOnly(mounts[i].read_only);
  }
}

void write_configs(wire::PodTemplate::Builder out, const core::ConfigMaps& configs) {
  if (configs.empty()) return;
  auto maps = out.initConfigs(static_cast<unsigned>(configs.size()));
  unsigned nth = 0;
  for (const auto& [name, data] : configs) {
    auto map = maps[nth++];
    map.setName(name);
    auto entries = map.initEntries(static_cast<unsigned>(data->text.size() + data->binary.size()));
    unsigned i = 0;
    for (const auto* values : {&data->text, &data->binary})
      for (const auto& [key, value] : *values) {
        entries[i].setKey(key);
        entries[i].setValue(data_of(value));
        entries[i++].setBinary(values == &data->binary);
      }
  }
}

void write_container(wire::Container::Builder out, const core::node::TemplateContainer& from,
                     const std::vector<std::pair<std::string_view, std::string_view>>& marks = {}) {
  const core::Container& container = from.what;
  out.setName(container.name);
  write_texts(out.initCommand(static_cast<unsigned>(container.command.size())), container.command);
  write_texts(out.initArgs(static_cast<unsigned>(container.args.size())), container.args);
  out.setWorkingDir(container.working_dir);
  const auto variables = static_cast<unsigned>(container.env.size());
  const unsigned from_maps = container.env_from.empty() ? 0 : 1;
  auto env = out.initEnv(variables + static_cast<unsigned>(marks.size()) + from_maps);
  for (unsigned i = 0; i < marks.size(); ++i) {
    env[variables + i].setName(marks[i].first.data());
    env[variables + i].setFieldPath(marks[i].second.data());
  }
  if (from_maps != 0) {
    env[env.size() - 1].setName("MUSTER_ENV_FROM");
    env[env.size() - 1].setFieldPath("envFrom");
    auto sources = out.initEnvFrom(static_cast<unsigned>(container.env_from.size()));
    for (unsigned i = 0; i < sources.size(); ++i) {
      sources[i].setPrefix(container.env_from[i].prefix);
      sources[i].setConfigMap(container.env_from[i].config_map);
      sources[i].setOptional(container.env_from[i].optional);
    }
  }
  for (unsigned i = 0; i < container.env.size(); ++i) {
    env[i].setName(container.env[i].name);
    env[i].setValue(container.env[i].value);
    env[i].setFieldPath(container.env[i].field_path);
    if (const auto& secret = container.env[i].secret) {
      env[i].setFieldPath("secretKeyRef");
      env[i].setSecretName(secret->name);
      env[i].setSecretKey(secret->key);
      env[i].setSecretOptional(secret->optional);
    }
    if (const auto& config = container.env[i].config) {
      env[i].setFieldPath("configMapKeyRef");
      env[i].setConfigName(config->name);
      env[i].setConfigKey(config->key);
      env[i].setConfigOptional(config->optional);
    }
  }
  out.setRunAsUser(from.confinement.uid ? int64_t{*from.confinement.uid} : -1);
  out.setRunAsGroup(from.confinement.gid ? int64_t{*from.confinement.gid} : -1);
  out.setRunAsNonRoot(from.confinement.non_root);
  out.setNoNewPrivileges(from.confinement.no_new_privileges);
  out.setDropCapabilities(from.confinement.dropped);
  out.setMemoryLimitBytes(from.memory_limit_bytes.value_or(0));
  out.setCpuLimitMillis(from.cpu_limit_millis.value_or(0));
  out.setCpus(from.cpus);
  auto resources = out.initResources(static_cast<unsigned>(from.devices.size()));
  unsigned next = 0;
  for (const auto& [name, count] : from.devices) {
    resources[next].setName(name);
    resources[next++].setCount(count);
  }
  write_mounts(out.initVolumeMounts(static_cast<unsigned>(container.volume_mounts.size())),
               container.volume_mounts);
}

}  // namespace

Result<actors::AgentHello> read_hello(wire::Hello::Reader hello, uint64_t link) {
  for (unsigned size :
       {hello.getRunning().size(), hello.getWaiting().size(), hello.getEnded().size()})
    if (size > kHelloPodsMax)
      return Error{Errc::invalid,
                   "it names " + std::to_string(size) + " pods in one list; the maximum is " +
                       std::to_string(kHelloPodsMax),
                   {}};
  if (hello.getLabels().size() > core::kNodeLabelsMax ||
      hello.getResources().size() > core::kNodeResourcesMax)
    return Error{Errc::invalid, "it has too many labels or named resources", {}};
  actors::AgentHello out;
  out.link = link;
  out.node = hello.getNode();
  out.work_dir_id = hello.getWorkDirId();
  out.boot_id = hello.getBootId();
  out.cluster_id = hello.getClusterId();
  out.secret = hello.getSecret();
  out.cluster_key = hello.getClusterKey();
  out.highest_epoch = hello.getHighestEpoch();
  out.epoch_nonce = hello.getEpochNonce();
  out.highest_commit = hello.getHighestCommit();
  out.slots = hello.getSlots();
  out.cpu_millis = hello.getCpuMillis();
  out.memory_bytes = hello.getMemoryBytes();
  for (auto resource : hello.getResources()) {
    constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
    out.resources[resource.getName()] = static_cast<int64_t>(std::min(resource.getCount(), kMost));
  }
  for (auto label : hello.getLabels()) out.labels[label.getKey()] = label.getValue();
  out.address = hello.getAddress();
  auto version = hello.getVersion(), keeper = hello.getKeeperVersion();
  out.agent_version = utf8_prefix({version.begin(), version.size()}, kVersionMax);
  out.keeper_version = utf8_prefix({keeper.begin(), keeper.size()}, kVersionMax);
  constexpr uint64_t kLivesMaxMs = 10ull * 365 * 24 * 3600 * 1000;
  if (const uint64_t lives = hello.getLivesMs(); lives > 0)
    out.lives_ms = static_cast<Millis>(std::min(lives - 1, kLivesMaxMs));
  auto no_limits = hello.getNoLimits();
  out.limits = {hello.getEnforcesMemory(), hello.getEnforcesCpu(),
                utf8_prefix({no_limits.begin(), no_limits.size()}, kMessageMax)};
  core::NodeInfo info{.name = out.node,
                      .work_dir_id = out.work_dir_id,
                      .boot_id = out.boot_id,
                      .secret = out.secret,
                      .slots = out.slots,
                      .resources = out.resources,
                      .labels = out.labels,
                      .address = out.address};
  if (std::string wrong = core::node_error(info); !wrong.empty())
    return Error{Errc::invalid, wrong, {}};
  if (out.cluster_id.size() > core::kNodeIdMax || out.cluster_key.size() > core::kNodeIdMax)
    return Error{Errc::invalid, "the cluster id or key is not valid", {}};
  out.running = read_pods(hello.getRunning());
  out.waiting = read_pods(hello.getWaiting());
  out.ended = read_pods(hello.getEnded());
  if (hello.getEnds().size() > core::node::kHelloEndsMax)
    return Error{Errc::invalid, "a registration can have at most 10000 ends", {}};
  out.ends = read_report(kNoNode, {}, hello.getEnds());
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
    core::PodsReported::Start out{
        pod.key(), pid_of(start.getPid()), number(start.getRestarts()), age(start.getAgeMs()),
        wire::from_wire(start.getReadiness()).value_or(core::Readiness::ready)};
    auto containers = start.getContainers();
    for (unsigned i = 0; i < std::min(containers.size(), kContainersMax); ++i)
      out.containers.push_back(read_container_now(containers[i]));
    if (const auto cpus = core::node::parse_cpu_list(start.getCpus().cStr()))
      out.cpus = core::node::cpu_list_text(*cpus);
    of(pod.job).starts.push_back(std::move(out));
  }
  for (auto end : ends) {
    PodId pod = read_pod(end.getPod());
    core::PodsReported::Ended out;
    out.pod = pod.key();
    out.cause = cause_of(end.getCause());
    out.exit_code = end.getExitCode();
    out.signal = end.getSignal();
    if (const auto pid = pid_of(end.getPid())) out.start = {*pid, age(end.getStartAgeMs())};
    out.restarts = number(end.getRestarts());
    out.ended_at = age(end.getEndAgeMs());
    auto message = end.getMessage();
    out.message = utf8_prefix({message.begin(), message.size()}, kMessageMax);
    auto containers = end.getContainers();
    for (unsigned i = 0; i < std::min(containers.size(), kContainersMax); ++i)
      out.containers.push_back(read_container_end(containers[i]));
    out.used = wire::read_usage(end.getUsed());
    auto runs = end.getRuns();
    for (unsigned i = 0; i < std::min<size_t>(runs.size(), core::kRunsMax); ++i)
      out.runs.push_back(read_run_end(runs[i]));
    of(pod.job).ends.push_back(std::move(out));
  }
  return jobs;
}

void write_template(wire::PodTemplate::Builder out, const core::node::PodTemplate& job,
                    bool as_bytes) {
  if (as_bytes) return out.setBytes(data_of(core::node::template_bytes(job)));
  out.setJob(job.job);
  out.setGeneration(job.generation);
  out.setJobName(job.job_name);
  out.setJobUid(job.job_uid);
  out.setNamespace(job.ns);
  out.setIndexed(job.indexed);
  out.setCompletions(job.completions.value_or(-1));
  out.setParallelism(job.parallelism);
  out.setGraceMs(job.grace_ms);
  out.setRestartPolicy(job.restarts ? "OnFailure" : "Never");
  const auto containers = static_cast<unsigned>(job.containers.size());
  const auto inits = static_cast<unsigned>(job.init_containers);
  auto init = out.initInitContainers(inits);
  auto main = out.initContainers(containers - inits);
  const auto marks = marks_of(job);
  for (unsigned i = 0; i < containers; ++i)
    write_container(i < inits ? init[i] : main[i - inits], job.containers[i],
                    i == 0 ? marks : decltype(marks){});
  out.setRestartDelayMs(job.restart_delay_ms);
  out.setActiveDeadlineMs(job.active_deadline_ms.value_or(0));
  if (job.owner_uid) {
    out.setOwned(true);
    out.setOwnerUid(*job.owner_uid);
  }
  out.setMpi(job.mpi);
  out.setFenceAfterMs(job.fence_after_ms.value_or(0));
  if (job.inputs) out.setInputs(data_of(job.inputs->bytes()));
  out.setInputsFile(job.inputs_file);
  write_volumes(out.initVolumes(static_cast<unsigned>(job.volumes.size())), job.volumes);
  out.setPrivateTmp(job.private_tmp);
  write_configs(out, job.configs);
  write_pairs(out.initLabels(static_cast<unsigned>(job.labels.size())), job.labels);
  write_pairs(out.initAnnotations(static_cast<unsigned>(job.annotations.size())), job.annotations);
}

void write_signed(wire::PodTemplate::Builder out, const Permit& permit, const PermitKey& key) {
  const auto job = out.getBytes().asChars();
  const std::string beside(job.begin(), job.size());
  const std::string bytes = permit_bytes(permit, beside), signature = key.sign(bytes + beside);
  out.setPermit(data_of(bytes));
  out.setSignature(data_of(signature));
}

std::optional<Permit> permit_for(const std::string& cluster_id, const std::string& node,
                                 const core::JobObject& object, core::node::PodTemplate job,
                                 Millis now_ms) {
  constexpr Millis kPermitMs = Millis{30} * 86'400'000;
  auto owner = core::owner_of(object.meta.annotations);
  if (!owner) return std::nullopt;
  return Permit{cluster_id, node, now_ms + kPermitMs, std::move(*owner), std::move(job)};
}

Error no_answer(const kj::Exception& e) {
  return {
      Errc::unavailable, std::string("the node did not answer: ") + e.getDescription().cStr(), {}};
}

}  // namespace muster::coordinator
