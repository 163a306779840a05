#include "agent/pod_dir.hpp"

#include "agent/environment.hpp"
#include "core/pod_name.hpp"

#include <cctype>
#include <cstdlib>
#include <map>
#include <unistd.h>
#include <utility>

namespace muster::agent {

namespace {

constexpr const char* kIndexKey = "batch.kubernetes.io/job-completion-index";

// What exec counts for a string of this length: also its terminator and the pointer to it.
constexpr size_t cost(size_t length) {
  return length + 1 + sizeof(char*);
}

// Variables in the order they were first set; setting one again replaces its value.
class Environment {
 public:
  void set(const std::string& name, std::string value) {
    auto [at, fresh] = where_.emplace(name, values_.size());
    cost_ += cost(name.size() + 1 + value.size());
    if (fresh) {
      values_.emplace_back(name, std::move(value));
    } else {
      std::string& old = values_[at->second].second;
      cost_ -= cost(name.size() + 1 + old.size());
      old = std::move(value);
    }
  }
  size_t cost_of_all() const { return cost_; }
  const std::string* find(const std::string& name) const {
    auto at = where_.find(name);
    return at == where_.end() ? nullptr : &values_[at->second].second;
  }
  std::vector<std::string> take() && {
    std::vector<std::string> out;
    out.reserve(values_.size());
    for (auto& [name, value] : values_) out.push_back(name + "=" + value);
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::string>> values_;
  std::map<std::string, size_t> where_;
  size_t cost_ = 0;
};

Error too_long(const std::string& what) {
  return {Errc::invalid, what + ": longer than " + std::to_string(kStringMax >> 10) +
                             " KiB, the longest that a program can be given"};
}

Error too_much(const std::string& what) {
  return {Errc::invalid, what + ": with it the environment and the command line are longer than " +
                             std::to_string(kStringsMax >> 20) +
                             " MiB, the most that a program can be given"};
}

struct Names {
  std::string name, uid, hostname, index;
};

// Sets `key` to that of metadata.labels['key'], if `path` has this form.
bool subscript(std::string_view path, std::string_view field, std::string& key) {
  if (!path.starts_with(field)) return false;
  path.remove_prefix(field.size());
  if (path.size() < 4 || !path.starts_with("['") || !path.ends_with("']")) return false;
  key = path.substr(2, path.size() - 4);
  return true;
}

std::string keyed(const core::StringMap& map, const std::string& key, const PodTemplate& job,
                  const Names& names) {
  if (auto found = map.find(key); found != map.end()) return found->second;
  return job.indexed && key == kIndexKey ? names.index : "";
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
  return Error{Errc::invalid,
               "fieldRef " + path +
                   " is not known here (metadata.name, .namespace, .uid, .labels['KEY'], "
                   ".annotations['KEY'], spec.nodeName)"};
}

// The variables that tell a program which devices it may use.
std::vector<std::string> variables_of(const std::string& resource) {
  std::string name = "MUSTER_RESOURCE_";
  for (char c : resource) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (resource == "nvidia.com/gpu") return {name, "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"};
  if (resource == "amd.com/gpu") return {name, "ROCR_VISIBLE_DEVICES"};
  return {name};
}

std::string list_of(const std::vector<uint32_t>& numbers) {
  std::string out;
  for (uint32_t n : numbers) out += (out.empty() ? "" : ",") + std::to_string(n);
  return out;
}

}  // namespace

NodeFacts NodeFacts::of_this_process(std::string node_name) {
  NodeFacts facts{.node_name = std::move(node_name)};
  char* dir = get_current_dir_name();
  facts.start_dir = dir != nullptr ? dir : "/";
  std::free(dir);
  facts.inherited = pod_environment();
  return facts;
}

std::optional<std::string> expand(
    std::string_view text, const std::function<const std::string*(const std::string& name)>& find,
    size_t max) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (out.size() > max) return std::nullopt;
    if (text[at] != '$' || at + 1 == text.size()) {
      out += text[at];
    } else if (text[at + 1] == '$') {
      out += '$';
      ++at;
    } else if (size_t close;
               text[at + 1] == '(' && (close = text.find(')', at)) != std::string_view::npos) {
      std::string name(text.substr(at + 2, close - at - 2));
      const std::string* value = find(name);
      if (value != nullptr && value->size() > max - out.size()) return std::nullopt;
      out += value != nullptr ? *value : "$(" + name + ")";
      at = close;
    } else {
      out += '$';
    }
  }
  if (out.size() > max) return std::nullopt;
  return out;
}

Result<Command> command_of(const PodTemplate& job, const core::Container& container, PodId pod,
                           const NodeFacts& node, const core::node::DeviceMap& devices) {
  Names names{core::pod_name(job.job_name, job.job_uid, job.indexed, pod.key()),
              core::pod_uid(job.job_uid, pod.key()),
              core::pod_hostname(job.job_name, job.job_uid, job.indexed, pod.key()),
              std::to_string(pod.index)};
  Environment all;   // what the process gets
  Environment seen;  // what $(VAR) sees
  for (const std::string& variable : node.inherited) {
    size_t equals = variable.find('=');
    all.set(variable.substr(0, equals), variable.substr(equals + 1));
  }
  all.set("HOSTNAME", names.hostname);
  auto set = [&](const std::string& name, const std::string& value) {
    all.set(name, value);
    seen.set(name, value);
  };
  set("MUSTER_JOB_NAME", job.job_name);
  set("MUSTER_JOB_UID", job.job_uid);
  set("MUSTER_NAMESPACE", job.ns);
  set("MUSTER_POD_NAME", names.name);
  set("MUSTER_POD_UID", names.uid);
  set("MUSTER_NODE_NAME", node.node_name);
  set("MUSTER_ATTEMPT", std::to_string(pod.attempt));
  set("MUSTER_COMPLETIONS", job.completions ? std::to_string(*job.completions) : "");
  set("MUSTER_PARALLELISM", std::to_string(job.parallelism));
  for (const auto& [resource, numbers] : devices) {
    std::string list = list_of(numbers);
    for (const std::string& name : variables_of(resource)) set(name, list);
  }
  auto find = [&seen](const std::string& name) { return seen.find(name); };
  bool has_index = false;
  for (const core::EnvVar& variable : container.env) {
    has_index |= variable.name == "JOB_COMPLETION_INDEX";
    const std::string what = "env " + variable.name;
    size_t overhead = variable.name.size() + 2;  // "=" and the terminator
    if (overhead >= kStringMax) return too_long("env");
    std::optional<std::string> value;
    if (variable.field_path.empty()) {
      value = expand(variable.value, find, kStringMax - overhead);
    } else {
      auto known = field(variable.field_path, job, names, node);
      if (!known) return Error{Errc::invalid, what + ": " + known.error().message};
      if (known->size() <= kStringMax - overhead) value = std::move(*known);
    }
    if (!value) return too_long(what);
    set(variable.name, *value);
    if (all.cost_of_all() > kStringsMax) return too_much(what);
  }
  if (job.indexed && !has_index) set("JOB_COMPLETION_INDEX", names.index);

  Command command;
  size_t used = all.cost_of_all();
  for (const auto* words : {&container.command, &container.args}) {
    for (const std::string& word : *words) {
      const std::string what =
          "word " + std::to_string(command.argv.size() + 1) + " of the command";
      auto expanded = expand(word, find, kStringMax - 1);
      if (!expanded) return too_long(what);
      used += cost(expanded->size());
      if (used > kStringsMax) return too_much(what);
      command.argv.push_back(std::move(*expanded));
    }
  }
  if (command.argv.empty()) {
    return Error{Errc::invalid, "container " + container.name + " has no command"};
  }
  command.env = std::move(all).take();
  command.cwd = container.working_dir;
  if (!command.cwd.starts_with('/')) {
    command.cwd = node.start_dir + (command.cwd.empty() ? "" : "/" + command.cwd);
  }
  return command;
}

}  // namespace muster::agent
