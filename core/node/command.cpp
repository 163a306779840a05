#include "core/node/command.hpp"

#include "base/exec_exit.hpp"
#include "core/node/space.hpp"
#include "core/pod_name.hpp"
#include "core/spec/values/expansion.hpp"
#include "core/spec/values/inputs.hpp"
#include "core/spec/values/names.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

namespace muster::core::node {

namespace {

// What exec counts for a string of this length, including its terminator and the pointer to it.
constexpr size_t cost(size_t length) {
  return length + 1 + sizeof(char*);
}

// Variables in the order in which they were first set; setting one again replaces its value.
class Environment {
 public:
  explicit Environment(size_t expected) {
    texts_.reserve(expected);
    where_.reserve(expected);
  }
  // `seen`: visible to $(VAR), unlike variables that the process only inherits.
  void set(const std::string& name, const std::string& value, bool seen = true) {
    std::string text;
    text.reserve(name.size() + 1 + value.size());
    text.append(name).append(1, '=').append(value);
    cost_ += cost(text.size());
    auto [at, fresh] = where_.try_emplace(name, Place{texts_.size(), seen});
    if (fresh) {
      texts_.push_back(std::move(text));
    } else {
      at->second.seen |= seen;
      std::string& old = texts_[at->second.at];
      cost_ -= cost(old.size());
      old = std::move(text);
      secrets_.erase(at->second.at);
    }
  }
  void set_secret(SecretFile file) {
    set(file.variable, "");
    secrets_.insert_or_assign(where_.at(file.variable).at, std::move(file));
  }
  size_t cost_of_all() const { return cost_; }
  std::optional<std::string_view> find(const std::string& name) const {
    auto found = where_.find(name);
    if (found == where_.end() || !found->second.seen) return std::nullopt;
    return std::string_view(texts_[found->second.at]).substr(name.size() + 1);
  }
  std::optional<std::string_view> inherited(const std::string& name) const {
    auto found = where_.find(name);
    if (found == where_.end()) return std::nullopt;
    return std::string_view(texts_[found->second.at]).substr(name.size() + 1);
  }
  void take(Command& into) && {
    for (auto& [at, file] : secrets_) into.secrets.push_back(std::move(file));
    size_t at = 0;
    std::erase_if(texts_, [&](const std::string&) { return secrets_.contains(at++); });
    into.env = std::move(texts_);
  }

 private:
  struct Place {
    size_t at;
    bool seen;
  };
  std::vector<std::string> texts_;  // NAME=value
  std::unordered_map<std::string, Place> where_;
  std::map<size_t, SecretFile> secrets_;  // by position in texts_
  size_t cost_ = 0;
};

// Errors of this kind have the violation as well.
Error too_large(const std::string& what, std::string why) {
  return {
      Errc::invalid, what + ": " + why, {{what, Violation::Kind::too_long, "", std::move(why)}}};
}

Error too_long(const std::string& what) {
  return too_large(what, "longer than " + std::to_string(kStringMax >> 10) +
                             " KiB, the maximum for one argument or variable");
}

Error too_much(const std::string& what) {
  return too_large(what, "with it, the environment and the command line exceed " +
                             std::to_string(kStringsMax >> 20) + " MiB, the maximum for a program");
}

// What differs between the pods of a job, apart from devices.
struct Names {
  std::string name, uid, hostname, index, attempt;
};

Names names_of(const PodTemplate& job, PodId pod) {
  return {pod_name(job.job_name, job.job_uid, job.indexed, pod.key()),
          pod_uid(job.job_uid, pod.key()),
          pod_hostname(job.job_name, job.job_uid, job.indexed, pod.key()),
          std::to_string(pod.index), std::to_string(shown_attempt(job.indexed, pod.key()))};
}

// A hole in a pattern is this character and one for the member of Names whose value goes there.
constexpr char kHole = '\1';
constexpr size_t kHoleMax = 256;  // longer than any such value
constexpr std::pair<char, std::string Names::*> kHoles[] = {{'n', &Names::name},
                                                            {'u', &Names::uid},
                                                            {'h', &Names::hostname},
                                                            {'i', &Names::index},
                                                            {'a', &Names::attempt}};

// Whether `path` is of the form metadata.labels['KEY'], with this field; sets `key` to KEY.
bool subscript(std::string_view path, std::string_view field, std::string& key) {
  if (!path.starts_with(field)) return false;
  path.remove_prefix(field.size());
  if (path.size() < 4 || !path.starts_with("['") || !path.ends_with("']")) return false;
  key = path.substr(2, path.size() - 4);
  return true;
}

std::string keyed(const StringMap& map, const std::string& key, const PodTemplate& job,
                  const Names& names) {
  if (auto found = map.find(key); found != map.end()) return found->second;
  return job.indexed && key == kCompletionIndexKey ? names.index : "";
}

Result<std::string> field(const std::string& path, const PodTemplate& job, const Names& names,
                          const NodeFacts& node) {
  std::string key;
  if (path == "metadata.name") return names.name;
  if (path == "metadata.namespace") return job.ns;
  if (path == "metadata.uid") return names.uid;
  if (path == "spec.nodeName") return node.node_name;
  if (subscript(path, "metadata.labels", key)) return keyed(job.labels, key, job, names);
  if (subscript(path, "metadata.annotations", key)) return keyed(job.annotations, key, job, names);
  return Error{Errc::invalid, "unsupported fieldRef " + path +
                                  " (supported: metadata.name, .namespace, .uid, .labels['KEY'], "
                                  ".annotations['KEY'], spec.nodeName)"};
}

// The file in which a user keeps a secret.
std::string secret_path(const std::string& home, const SecretRef& secret) {
  return home + "/.config/muster/secrets/" + secret.name + "/" + secret.key;
}

// Variables by which libraries limit a program to some devices, and what makes them see none:
// without a variable, they see all. CUDA and ROCm stop at the first number that no device has;
// "void" is the NVIDIA container runtime's own word.
struct Visible {
  std::string_view resource, variable, none;
};
constexpr Visible kVisible[] = {{"nvidia.com/gpu", "CUDA_VISIBLE_DEVICES", "-1"},
                                {"nvidia.com/gpu", "NVIDIA_VISIBLE_DEVICES", "void"},
                                {"amd.com/gpu", "ROCR_VISIBLE_DEVICES", "-1"}};

// The variable that tells a program which of these devices it may use.
std::string variable_of(const std::string& resource) {
  std::string name = "MUSTER_RESOURCE_";
  for (char c : resource) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

std::string list_of(const std::vector<uint32_t>& numbers) {
  std::string out;
  for (uint32_t n : numbers) out += (out.empty() ? "" : ",") + std::to_string(n);
  return out;
}

// Absent: the job has no inputs.
Result<std::optional<Input>> input_of(const PodTemplate& job, PodId pod, const InputTable* file) {
  const InputTable* const all = job.inputs ? job.inputs.get() : file;
  if (all == nullptr && job.inputs_file.empty()) return std::optional<Input>();
  const std::string what = job.inputs ? std::string(kInputsKey) : "inputs " + job.inputs_file;
  if (all == nullptr)
    return Error{Errc::invalid,
                 what + ": this node runs pods as their owners and cannot read them; use " +
                     std::string(kInputsKey)};
  auto row = all->row(pod.index);
  if (!row)
    return Error{Errc::invalid, what + ": no line for index " + std::to_string(pod.index) +
                                    "; there are " + std::to_string(all->size())};
  return row;
}

// The variables by which a process knows its pod and job.
template <class Set>
void each_fact(const PodTemplate& job, const Names& names, const NodeFacts& node, Set set) {
  set("MUSTER_JOB_NAME", job.job_name);
  set("MUSTER_JOB_UID", job.job_uid);
  set("MUSTER_NAMESPACE", job.ns);
  set("MUSTER_POD_NAME", names.name);
  set("MUSTER_POD_UID", names.uid);
  set("MUSTER_NODE_NAME", node.node_name);
  set("MUSTER_ATTEMPT", names.attempt);
  set("MUSTER_COMPLETIONS", job.completions ? std::to_string(*job.completions) : "");
  set("MUSTER_PARALLELISM", std::to_string(job.parallelism));
}

// Builds the command of a container.
struct CommandBuilder {
  const PodTemplate& job;
  const Container& container;
  const Names& names;
  const NodeFacts& node;
  const MpiFacts* mpi;
  const std::optional<Input>& input;
  Environment all;
  bool has_index = false;  // the job sets JOB_COMPLETION_INDEX itself
  std::string part{};      // of the input; valid until the next call of find()

  std::string own{};  // variables that launchers must not pass to other pods

  void set(const std::string& name, const std::string& value) { all.set(name, value); }
  void set_own(const std::string& name, const std::string& value) {
    all.set(name, value);
    note_own(name);
  }
  void note_own(const std::string& name) {
    if (mpi != nullptr) own += (own.empty() ? "" : " ") + name;
  }

  // What $(NAME) stands for.
  std::optional<std::string_view> find(const std::string& name) {
    const auto known = all.find(name);
    if (known || !input) return known;
    auto value = input_value(*input, std::stoul(names.index), name);
    if (!value) return std::nullopt;
    part = std::move(*value);
    return part;
  }
  std::optional<std::string> expanded(const std::string& text, size_t most) {
    return expand(
        text, [this](const std::string& name) { return find(name); }, most);
  }

  void set_ours(const DeviceMap& devices, const std::string& scratch);
  Status set_config_map(const EnvSource& source);
  Status set_variable(const EnvVar& variable);
  // Sets `value`; a variable whose config map may be missing has none.
  Status value_of(const EnvVar& variable, const std::string& what, size_t most,
                  std::optional<std::string>& value, bool& there);
  Result<Command> words();
};

void CommandBuilder::set_ours(const DeviceMap& devices, const std::string& scratch) {
  for (const std::string& variable : node.inherited) {
    size_t equals = variable.find('=');
    all.set(variable.substr(0, equals), variable.substr(equals + 1), false);
  }
  all.set("HOSTNAME", names.hostname, false);
  note_own("HOSTNAME");
  note_own(kCpusVariable);  // which the keeper sets
  each_fact(job, names, node,
            [this](const char* name, const std::string& value) { set_own(name, value); });
  if (!scratch.empty()) set_own(std::string(kScratchVariable), scratch);
  // Open MPI allows only one of include and exclude.
  const auto sets_excludes = [this](const std::string& name) {
    constexpr std::string_view kInclude = "_if_include";
    if (!name.ends_with(kInclude)) return false;
    const std::string other = name.substr(0, name.size() - kInclude.size()) + "_if_exclude";
    return std::ranges::any_of(container.env,
                               [&other](const EnvVar& one) { return one.name == other; });
  };
  if (mpi != nullptr) {
    if (const auto path = all.inherited("PATH"); path)
      set("PATH", mpi->run_dir + "/bin:" + std::string(*path));
    set_mpi_variables(job, names.index, *mpi,
                      [this, &sets_excludes](const std::string& name, const std::string& value) {
                        if (!sets_excludes(name)) set_own(name, value);
                      });
  }
  for (const auto& [resource, numbers] : devices) {
    const std::string list = list_of(numbers);
    set_own(variable_of(resource), list);
    for (const Visible& one : kVisible)
      if (one.resource == resource)
        set_own(std::string(one.variable), list.empty() ? std::string(one.none) : list);
  }
  if (!input) return;
  set_own(std::string(kInputVariable), input_text(*input));
  for (size_t i = 0; input->size() > 1 && i < input->size(); ++i)
    set_own(std::string(kInputVariable) + "_" + std::to_string(i + 1), (*input)[i]);
}

Status CommandBuilder::set_config_map(const EnvSource& source) {
  const auto map = job.configs.find(source.config_map);
  if (map == job.configs.end() && source.optional) return Nothing{};
  if (map == job.configs.end())
    return Error{Errc::invalid, "configmap \"" + source.config_map + "\" not found"};
  for (const auto& [key, value] : map->second->text) {
    const std::string name = source.prefix + key;
    if (!env_name_errors(name).empty()) continue;
    has_index |= name == "JOB_COMPLETION_INDEX";
    if (name.size() + 2 + value.size() > kStringMax) return too_long("envFrom " + name);
    set(name, value);
    if (all.cost_of_all() > kStringsMax) return too_much("envFrom " + name);
  }
  return Nothing{};
}

Status CommandBuilder::value_of(const EnvVar& variable, const std::string& what, size_t most,
                                std::optional<std::string>& value, bool& there) {
  if (variable.config) {
    const auto map = job.configs.find(variable.config->name);
    there = map != job.configs.end() && map->second->text.contains(variable.config->key);
    if (!there && variable.config->optional) return Nothing{};
    if (!there)
      return Error{Errc::invalid, what + ": key " + variable.config->key +
                                      " not found in configmap \"" + variable.config->name + "\""};
    const std::string& text = map->second->text.at(variable.config->key);
    if (text.size() <= most) value = text;
  } else if (variable.field_path.empty()) {
    value = expanded(variable.value, most);
  } else {
    auto known = field(variable.field_path, job, names, node);
    if (!known) return Error{Errc::invalid, what + ": " + known.error().message};
    if (known->size() <= most) value = std::move(*known);
  }
  return Nothing{};
}

Status CommandBuilder::set_variable(const EnvVar& variable) {
  has_index |= variable.name == "JOB_COMPLETION_INDEX";
  const std::string what = "env " + variable.name;
  const size_t overhead = variable.name.size() + 2;  // "=" and the terminator
  if (overhead >= kStringMax) return too_long("env");
  if (variable.secret) {
    if (node.home.empty())
      return Error{Errc::invalid, what + ": the user that the pod runs as has no home directory"};
    all.set_secret(
        {variable.name, secret_path(node.home, *variable.secret), variable.secret->optional});
    note_own(variable.name);  // each pod reads it itself
    return Nothing{};
  }
  std::optional<std::string> value;
  bool there = true;
  if (Status ok = value_of(variable, what, kStringMax - overhead, value, there); !ok) return ok;
  if (!there) return Nothing{};
  if (!value) return too_long(what);
  set(variable.name, *value);
  if (!variable.field_path.empty() || variable.value.find("$(") != std::string::npos)
    note_own(variable.name);
  if (all.cost_of_all() > kStringsMax) return too_much(what);
  return Nothing{};
}

// The command and its working directory. Last, since words may name any variable.
Result<Command> CommandBuilder::words() {
  Command command;
  size_t used = all.cost_of_all();
  const bool is_main = job.init_containers < job.containers.size() &&
                       &job.containers[job.init_containers].what == &container;
  if (mpi != nullptr && is_main && is_direct(job)) {
    command.argv = {mpi->run_dir + "/" + kPmi, "--"};
    for (const std::string& word : command.argv) used += cost(word.size());
  }
  const size_t ours = command.argv.size();
  for (const auto* words : {&container.command, &container.args}) {
    for (const std::string& word : *words) {
      const std::string what =
          "word " + std::to_string(command.argv.size() - ours + 1) + " of the command";
      auto text = expanded(word, kStringMax - 1);
      if (!text) return too_long(what);
      used += cost(text->size());
      if (used > kStringsMax) return too_much(what);
      command.argv.push_back(std::move(*text));
    }
  }
  if (command.argv.size() == ours)
    return Error{Errc::invalid, "container " + container.name + " has no command"};
  std::move(all).take(command);
  command.cwd = container.working_dir;
  if (!command.cwd.starts_with('/'))
    command.cwd = node.start_dir + (command.cwd.empty() ? "" : "/" + command.cwd);
  return command;
}

Result<Command> command_with(const PodTemplate& job, const Container& container, const Names& names,
                             const NodeFacts& node, const DeviceMap& devices, const MpiFacts* mpi,
                             const std::optional<Input>& input = {},
                             const std::string& scratch = "") {
  if (!job.refusal.empty()) return Error{Errc::invalid, job.refusal};
  constexpr size_t kOurs = 40;  // at most, without devices and columns of inputs
  CommandBuilder builder{job,
                         container,
                         names,
                         node,
                         mpi,
                         input,
                         Environment(node.inherited.size() + container.env.size() + kOurs)};
  if (input && kInputVariable.size() + 2 + input_text(*input).size() > kStringMax)
    return too_long("the input of this index");
  builder.set_ours(devices, scratch);
  for (const EnvSource& source : container.env_from)
    if (Status ok = builder.set_config_map(source); !ok) return ok.error();
  for (const EnvVar& variable : container.env)
    if (Status ok = builder.set_variable(variable); !ok) return ok.error();
  if (job.indexed && !builder.has_index) builder.set("JOB_COMPLETION_INDEX", names.index);
  builder.note_own("JOB_COMPLETION_INDEX");
  if (mpi != nullptr) builder.set(kOwnVariables, builder.own);
  return builder.words();
}

}  // namespace

void hide_others(DeviceMap& devices, const std::vector<std::string>& declared) {
  for (const std::string& resource : declared)
    if (std::ranges::any_of(kVisible, [&](const Visible& one) { return one.resource == resource; }))
      devices.try_emplace(resource);
}

Result<Command> command_of(const PodTemplate& job, const Container& container, PodId pod,
                           const NodeFacts& node, const DeviceMap& devices, const MpiFacts* mpi,
                           const InputTable* inputs) {
  auto input = input_of(job, pod, inputs);
  if (!input) return input.error();
  const Names names = names_of(job, pod);
  auto command = command_with(job, container, names, node, devices, mpi, *input,
                              scratch_of(job, container, pod, node.scratch));
  if (command && job.process.files())
    command->process = for_pod(job.process, {job.job_name, names.name, node.node_name, pod.index,
                                             shown_attempt(job.indexed, pod.key()),
                                             *input ? input_text(**input) : std::string()});
  return command;
}

Result<Command> session_command(const PodTemplate& job, const Container& container, PodId pod,
                                const NodeFacts& node, const DeviceMap& devices,
                                const MpiFacts* mpi, std::vector<std::string> words,
                                const InputTable* inputs) {
  if (words.empty() || words[0].empty()) return Error{Errc::invalid, "there is no command"};
  auto command = command_of(job, container, pod, node, devices, mpi, inputs);
  if (!command) return invalid(command.error().message);
  size_t used = 0;
  for (const std::string& variable : command->env) used += cost(variable.size());
  for (const std::string& word : words) {
    if (word.size() >= kStringMax) return invalid(too_long("a word of the command").message);
    used += cost(word.size());
  }
  if (used > kStringsMax) return invalid(too_much("the command").message);
  command->argv = std::move(words);
  command->process = {};
  command->session = true;
  return command;
}

int32_t exit_code_of(const PodTemplate& job, const Error& refusal) {
  const bool too_large =
      !refusal.violations.empty() && refusal.violations.front().kind == Violation::Kind::too_long;
  const bool has_input = job.inputs || !job.inputs_file.empty();
  return too_large && has_input ? kExitOfIndex : kExitCannotStart;
}

ProcessSettings settings_of(const PodTemplate& job, const Command& command) {
  ProcessSettings out = job.process;
  out.joined = out.joined && !command.session;
  if (!job.process.files()) return out;
  out.out = command.process.out;
  out.err = command.process.err;
  out.append = command.process.append;
  return out;
}

// Values are not expanded again and are never used as names, so they may as well be put in after
// expansion.
std::optional<CommandPattern> CommandPattern::of(const PodTemplate& job, const Container& container,
                                                 const NodeFacts& node, const DeviceMap& devices) {
  if (job.inputs || !job.inputs_file.empty() || has_space(job) || job.process.files())
    return std::nullopt;
  Names holes;
  for (const auto& [letter, member] : kHoles) holes.*member = {kHole, letter};
  auto command = command_with(job, container, holes, node, devices, nullptr);
  if (!command) return std::nullopt;
  CommandPattern pattern;
  pattern.cwd_ = std::move(command->cwd);
  pattern.secrets_ = std::move(command->secrets);
  size_t most = 0;
  std::string same;  // bytes that all pods share, up to the next hole
  auto add = [&](const std::vector<std::string>& texts) {
    Writer out(same);
    out.num(static_cast<uint32_t>(texts.size()));
    for (const std::string& text : texts) {
      size_t count = 0;
      for (size_t at = text.find(kHole); at != std::string::npos; at = text.find(kHole, at + 2)) {
        if (at + 1 == text.size()) return false;
        ++count;
      }
      const size_t longest = text.size() + count * kHoleMax;
      most += cost(longest);
      if (longest >= kStringMax) return false;
      if (count == 0) {
        out.text(text);
        continue;
      }
      pattern.pieces_.push_back({std::exchange(same, {}), false});
      pattern.pieces_.push_back({text, true});
    }
    return true;
  };
  if (!add(command->argv) || !add(command->env) || most > kStringsMax) return std::nullopt;
  pattern.pieces_.push_back({std::move(same), false});
  // Check with a sample pod: what looks like a hole may come from the template itself.
  const PodId probe{job.job, 1, 2};
  const auto expected = command_of(job, container, probe, node, devices);
  if (!expected) return std::nullopt;
  std::string words;
  Writer out(words);
  write_words(out, expected->argv, expected->env);
  if (pattern.command(job, probe).words != words || expected->secrets != pattern.secrets_)
    return std::nullopt;
  return pattern;
}

Command CommandPattern::command(const PodTemplate& job, PodId pod) const {
  const Names names = names_of(job, pod);
  Command command{.argv = {}, .env = {}, .cwd = cwd_, .secrets = secrets_};
  Writer out(command.words);
  std::string filled;
  for (const auto& [bytes, holes] : pieces_) {
    if (!holes) {
      out.written(bytes);
      continue;
    }
    filled.clear();
    for (size_t at = 0; at < bytes.size(); ++at) {
      if (bytes[at] != kHole) {
        filled += bytes[at];
        continue;
      }
      ++at;
      for (const auto& [letter, member] : kHoles)
        if (letter == bytes[at]) filled += names.*member;
    }
    out.text(filled);
  }
  return command;
}

void write_words(Writer& out, const std::vector<std::string>& argv,
                 const std::vector<std::string>& env) {
  for (const auto* texts : {&argv, &env}) {
    out.num(static_cast<uint32_t>(texts->size()));
    for (const std::string& text : *texts) out.text(text);
  }
}

Command hook_command(const PodTemplate& job, PodId pod, const NodeFacts& node,
                     const std::string& program) {
  Command command{.argv = {program}, .env = node.inherited, .cwd = "/"};
  const auto set = [&command](const char* name, const std::string& value) {
    command.env.push_back(std::string(name) + "=" + value);
  };
  const Names names = names_of(job, pod);
  each_fact(job, names, node, set);
  if (job.indexed) set("JOB_COMPLETION_INDEX", names.index);
  uint64_t cpu = 0, memory = 0;
  for (size_t i = job.init_containers; i < job.containers.size(); ++i) {
    cpu += job.containers[i].cpu_limit_millis.value_or(0);
    memory += job.containers[i].memory_limit_bytes.value_or(0);
  }
  if (cpu != 0) set("MUSTER_CPU_LIMIT_MILLIS", std::to_string(cpu));
  if (memory != 0) set("MUSTER_MEMORY_LIMIT_BYTES", std::to_string(memory));
  return command;
}

}  // namespace muster::core::node
