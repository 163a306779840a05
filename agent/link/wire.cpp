#include "agent/link/wire.hpp"

#include "agent/files/work_dir.hpp"
#include "base/hex.hpp"
#include "core/node/space.hpp"
#include "core/node/template_codec.hpp"
#include "core/spec/values/inputs.hpp"
#include "schema/pod_end.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace muster::agent {

namespace {

uint64_t age(Millis now, Millis at) {
  return static_cast<uint64_t>(age_at(now, at).ms);
}

core::StringMap read_pairs(capnp::List<wire::Pair>::Reader in) {
  core::StringMap out;
  for (auto pair : in) out.emplace(to_string(pair.getKey()), to_string(pair.getValue()));
  return out;
}

// A limit on the wire: 0 means none.
template <class Number>
std::optional<Number> unless_zero(Number number) {
  return number == 0 ? std::nullopt : std::optional(number);
}

std::optional<uint32_t> id_of(int64_t id) {
  return id < 0 ? std::nullopt : std::optional(static_cast<uint32_t>(id));
}

core::node::TemplateContainer read_container(wire::Container::Reader in) {
  core::node::TemplateContainer container;
  core::Container& out = container.what;
  out.name = to_string(in.getName());
  for (auto word : in.getCommand()) out.command.push_back(to_string(word));
  for (auto word : in.getArgs()) out.args.push_back(to_string(word));
  out.working_dir = to_string(in.getWorkingDir());
  for (auto variable : in.getEnv()) {
    const auto path = variable.getFieldPath();
    if (path == core::kInputsKey.data() || path == core::kVolumesLabel.data() ||
        path == core::node::kConfinementMark.data() ||
        path == core::node::kSharedMemoryMark.data() || path == "envFrom")
      continue;  // for older agents
    core::EnvVar& one = out.env.emplace_back();
    one.name = to_string(variable.getName());
    one.value = to_string(variable.getValue());
    if (variable.hasSecretName()) {
      one.secret = {to_string(variable.getSecretName()), to_string(variable.getSecretKey()),
                    variable.getSecretOptional()};
    } else if (variable.hasConfigName()) {
      one.config = {to_string(variable.getConfigName()), to_string(variable.getConfigKey()),
                    variable.getConfigOptional()};
    } else {
      one.field_path = to_string(path);
    }
  }
  for (auto source : in.getEnvFrom())
    out.env_from.push_back(
        {to_string(source.getPrefix()), to_string(source.getConfigMap()), source.getOptional()});
  container.confinement = {id_of(in.getRunAsUser()), id_of(in.getRunAsGroup()),
                           in.getRunAsNonRoot(), in.getNoNewPrivileges(), in.getDropCapabilities()};
  container.memory_limit_bytes = unless_zero(in.getMemoryLimitBytes());
  container.cpu_limit_millis = unless_zero(in.getCpuLimitMillis());
  container.cpus = in.getCpus();
  for (auto one : in.getResources()) {
    constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
    container.devices[to_string(one.getName())] =
        static_cast<uint32_t>(std::min(one.getCount(), kMost));
  }
  for (auto mount : in.getVolumeMounts())
    out.volume_mounts.push_back({to_string(mount.getName()), to_string(mount.getMountPath()),
                                 to_string(mount.getSubPath()), mount.getReadOnly()});
  return container;
}

std::optional<int32_t> mode_of(int32_t mode) {
  return mode < 0 ? std::nullopt : std::optional(mode);
}

std::vector<core::Volume> read_volumes(capnp::List<wire::Volume>::Reader in) {
  std::vector<core::Volume> out;
  for (auto from : in) {
    core::Volume& to = out.emplace_back();
    to.name = to_string(from.getName());
    to.kind = static_cast<core::VolumeKind>(from.getKind());
    to.kinds = 1;
    to.medium = to_string(from.getMedium());
    to.size_limit = to_string(from.getSizeLimit());
    to.path = to_string(from.getPath());
    to.type = to_string(from.getType());
    to.secret = to_string(from.getSecret());
    for (auto item : from.getItems())
      to.items.push_back(
          {to_string(item.getKey()), to_string(item.getPath()), mode_of(item.getMode())});
    to.default_mode = mode_of(from.getDefaultMode());
    to.optional = from.getOptional();
    to.config_map = to_string(from.getConfigMap());
  }
  return out;
}

core::node::SignedPermitPtr read_signed_permit(wire::PodTemplate::Reader in) {
  if (in.getPermit().size() == 0) return nullptr;
  const auto permit = in.getPermit().asChars(), signature = in.getSignature().asChars();
  const auto job = in.getBytes().asChars();
  return std::make_shared<const core::node::SignedPermit>(
      core::node::SignedPermit{{permit.begin(), permit.size()},
                               {signature.begin(), signature.size()},
                               {job.begin(), job.size()}});
}

// Null: none, or damaged ones, which admission rejects.
core::InputTablePtr read_inputs(wire::PodTemplate::Reader in) {
  if (!in.hasInputs()) return nullptr;
  const auto bytes = in.getInputs().asChars();
  auto table = core::InputTable::of({bytes.begin(), bytes.size()});
  return table ? std::make_shared<const core::InputTable>(std::move(*table)) : nullptr;
}

core::ConfigMaps read_configs(wire::PodTemplate::Reader in) {
  core::ConfigMaps maps;
  for (auto map : in.getConfigs()) {
    auto data = std::make_shared<core::ConfigData>();
    for (auto entry : map.getEntries()) {
      const auto value = entry.getValue().asChars();
      (entry.getBinary() ? data->binary : data->text)
          .emplace(to_string(entry.getKey()), std::string(value.begin(), value.size()));
    }
    maps.emplace(to_string(map.getName()), std::move(data));
  }
  return maps;
}

// The template as the bytes of one message.
std::string message_of(wire::PodTemplate::Reader in) {
  capnp::MallocMessageBuilder message(static_cast<unsigned>(in.totalSize().wordCount + 1));
  message.setRoot(in);
  auto words = capnp::messageToFlatArray(message);
  auto bytes = words.asChars();
  return {bytes.begin(), bytes.size()};
}

}  // namespace

std::string to_string(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

core::node::Term term_of(uint64_t epoch, uint64_t nonce) {
  return {epoch, nonce};
}

std::string seal_of(capnp::Text::Reader text) {
  std::string seal = to_string(text);
  return is_hex(seal, kSealDigits) ? seal : "";
}

PodId read_pod(wire::PodId::Reader in) {
  return {in.getJob(), in.getIndex(), in.getAttempt()};
}

void write_pod(PodId pod, wire::PodId::Builder out) {
  out.setJob(pod.job);
  out.setIndex(pod.index);
  out.setAttempt(pod.attempt);
}

std::vector<PodId> read_pods(capnp::List<wire::PodId>::Reader in) {
  std::vector<PodId> out;
  out.reserve(in.size());
  for (auto pod : in) out.push_back(read_pod(pod));
  return out;
}

void write_pods(const std::vector<PodId>& pods, capnp::List<wire::PodId>::Builder out) {
  for (unsigned i = 0; i < out.size(); ++i) write_pod(pods[i], out[i]);
}

namespace {

// As coordinators of earlier versions write it, field by field.
core::node::PodTemplate read_fields(wire::PodTemplate::Reader in) {
  core::node::PodTemplate out{
      .job = in.getJob(),
      .generation = in.getGeneration(),
      .job_name = to_string(in.getJobName()),
      .job_uid = to_string(in.getJobUid()),
      .ns = to_string(in.getNamespace()),
      .owner_uid = in.getOwned() ? std::optional(in.getOwnerUid()) : std::nullopt,
      .indexed = in.getIndexed(),
      .completions = in.getCompletions() < 0 ? std::nullopt : std::optional(in.getCompletions()),
      .parallelism = in.getParallelism(),
      .grace_ms = in.getGraceMs(),
      .restarts = in.getRestartPolicy() == "OnFailure",
      .restart_delay_ms = in.getRestartDelayMs(),
      .active_deadline_ms = unless_zero(in.getActiveDeadlineMs()),
      .fence_after_ms = unless_zero(in.getFenceAfterMs()),
      .init_containers = in.getInitContainers().size(),
      .labels = read_pairs(in.getLabels()),
      .annotations = read_pairs(in.getAnnotations()),
      .mpi = to_string(in.getMpi()),
      .inputs = read_inputs(in),
      .inputs_file = to_string(in.getInputsFile()),
      .volumes = read_volumes(in.getVolumes()),
      .private_tmp = in.getPrivateTmp(),
      .configs = read_configs(in)};
  for (auto container : in.getInitContainers()) out.containers.push_back(read_container(container));
  for (auto container : in.getContainers()) out.containers.push_back(read_container(container));
  for (const auto& container : out.containers) core::add_needs(container.what, out.config_needs);
  for (const core::Volume& volume : out.volumes) core::add_needs(volume, out.config_needs);
  return out;
}

}  // namespace

core::node::PodTemplate read_template(wire::PodTemplate::Reader in,
                                      const core::node::NodeExtras& extras) {
  core::node::PodTemplate out;
  if (in.hasBytes()) {
    const auto bytes = in.getBytes().asChars();
    auto read = core::node::read_template({bytes.begin(), bytes.size()});
    KJ_REQUIRE(read.ok(), read.error().message.c_str());
    out = std::move(*read);
  } else {
    out = read_fields(in);
  }
  out.permit = read_signed_permit(in);
  out.private_tmp = out.private_tmp || extras.private_tmp;
  out.plan = core::node::plan_of(out, extras.hooks);
  if (out.plan != nullptr) out.wire = message_of(in);
  return out;
}

capnp::MessageSize size_of(const core::node::Report& report) {
  // Words for a call, a start (4, and 2 for its pod), an end (9 and 2), its message and its
  // containers, with some to spare.
  uint64_t words = 64 + report.starts.size() * 7 + report.ends.size() * 13;
  for (const auto& start : report.starts)
    words += start.containers.size() * 12 + start.cpus.size() / 8 + 2;
  for (const auto& end : report.ends) {
    words += end.message.size() / 8 + 1 + end.containers.size() * 6 + end.runs.size() * 12;
  }
  return {words, 0};
}

void write_report(const core::node::Report& report, Millis now,
                  wire::Session::ReportParams::Builder out) {
  auto starts = out.initStarts(static_cast<unsigned>(report.starts.size()));
  for (unsigned i = 0; i < starts.size(); ++i) {
    const auto& from = report.starts[i];
    write_pod(from.pod, starts[i].initPod());
    starts[i].setPid(static_cast<uint32_t>(from.pid.value_or(0)));
    starts[i].setAgeMs(age(now, from.at));
    starts[i].setRestarts(static_cast<uint32_t>(from.restarts));
    starts[i].setReadiness(wire::to_wire(from.readiness));
    wire::write_containers_now(
        from.containers, [&](unsigned size) { return starts[i].initContainers(size); },
        [now](BootInstant at) { return 1 + age(now, at.ms); });
    if (!from.cpus.empty()) starts[i].setCpus(from.cpus);
  }
  write_ends(report.ends, now, out.initEnds(static_cast<unsigned>(report.ends.size())));
}

void write_ends(const std::vector<core::node::PodEnded>& ends, Millis now,
                capnp::List<wire::PodEnd>::Builder out) {
  for (unsigned i = 0; i < out.size(); ++i) {
    const auto& from = ends[i];
    auto to = out[i];
    write_pod(from.pod, to.initPod());
    to.setCause(wire::to_wire(from.cause));
    to.setExitCode(from.exit_code);
    to.setSignal(from.signal);
    if (!from.message.empty()) to.setMessage(from.message);
    if (from.start) {
      to.setStartAgeMs(age(now, from.start->at.ms));
      to.setPid(static_cast<uint32_t>(from.start->pid));
    }
    to.setEndAgeMs(age(now, from.ended_at.ms));
    to.setRestarts(static_cast<uint32_t>(from.restarts));
    wire::write_containers(
        from.containers, [&to](unsigned size) { return to.initContainers(size); },
        [now](BootInstant at) { return 1 + age(now, at.ms); });
    wire::write_usage(from.used, [&to] { return to.initUsed(); });
    wire::write_runs(
        from.runs, [&to](unsigned size) { return to.initRuns(size); },
        [now](BootInstant at) { return 1 + age(now, at.ms); });
  }
}

}  // namespace muster::agent
