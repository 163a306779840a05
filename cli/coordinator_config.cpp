#include "cli/coordinator_config.hpp"

#include "api/yaml.hpp"
#include "cli/files.hpp"
#include "cli/json.hpp"
#include "cli/text.hpp"
#include "core/spec/duration.hpp"

#include <algorithm>

namespace muster::cli {
namespace {

Error invalid(std::string message) {
  return Error{Errc::invalid, std::move(message), {}};
}

Status apply(CoordinatorOptions& all, const std::string& key, const std::string& value) {
  coordinator::Options& o = all.options;
  const auto span = [&](Millis& target) -> Status {
    auto parsed = core::parse_duration(value);
    if (!parsed) return invalid(parsed.error().message);
    target = *parsed;
    return Nothing{};
  };
  if (key == "data-dir") o.data_dir = value;
  if (key == "api") o.api = value;
  if (key == "listen") o.listen = value;
  if (key == "log-level") all.log_level = value;
  if (key == "pod-failure-backoff-base") return span(o.backoff_base_ms);
  if (key == "pod-failure-backoff-max") return span(o.backoff_max_ms);
  if (key == "node-grace") return span(o.node_grace_ms);
  if (key == "feature-gates") {
    auto gates = core::parse_gates(value, o.gates);
    if (!gates) return invalid(gates.error().message);
    o.gates = *gates;
  }
  if (key == "insecure") {
    if (value != "true" && value != "false") return invalid("must be true or false, is " + value);
    o.insecure = value == "true";
  }
  return Nothing{};
}

}  // namespace

const std::vector<std::string>& coordinator_words() {
  static const std::vector<std::string> words = {"data-dir",
                                                 "api",
                                                 "listen",
                                                 "pod-failure-backoff-base",
                                                 "pod-failure-backoff-max",
                                                 "node-grace",
                                                 "insecure",
                                                 "log-level",
                                                 "feature-gates"};
  return words;
}

Result<Words> parse_config(const std::string& yaml, const std::string& path) {
  auto documents = api::yaml_to_json(yaml);
  if (!documents) return invalid(path + ": " + documents.error().message);
  Words words;
  for (const std::string& document : *documents) {
    const Json config = parse_json(document);
    if (!config.is_object())
      return invalid(path + ": must be a map such as `data-dir: /var/lib/muster`");
    for (const auto& [key, value] : config.items()) {
      const auto& known = coordinator_words();
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        return invalid(path + ": unknown key " + key + did_you_mean(key, known));
      }
      if (value.is_structured() || value.is_null())
        return invalid(path + ": " + key + ": must be a single value");
      words[key] = value.is_string() ? value.get<std::string>() : dumped(value);
    }
  }
  return words;
}

Result<Words> read_config(const std::string& path) {
  auto text = read_file(path);
  if (!text) return text.error();
  return parse_config(*text, path);
}

Result<CoordinatorOptions> coordinator_options(const Words& flags, const Words& file) {
  CoordinatorOptions all;
  for (const auto& [key, value] : file) {
    if (flags.contains(key)) continue;
    if (Status s = apply(all, key, value); !s)
      return invalid("--config: " + key + ": " + s.error().message);
  }
  for (const auto& [key, value] : flags) {
    if (Status s = apply(all, key, value); !s)
      return invalid("--" + key + ": " + s.error().message);
  }
  if (all.options.data_dir.empty())
    return invalid("--data-dir D is needed: where the coordinator keeps its state");
  if (all.options.backoff_max_ms < all.options.backoff_base_ms) {
    return invalid("--pod-failure-backoff-max must not be below --pod-failure-backoff-base");
  }
  if (all.options.node_grace_ms < 1'000) return invalid("--node-grace must be at least 1s");
  return all;
}

}  // namespace muster::cli
