#include "core/job/facts/overrides.hpp"

#include "core/spec/values/duration.hpp"

namespace muster::core {

std::string overrides_words(const Overrides& overrides) {
  std::string words;
  const auto add = [&words](const std::string& one) { words += (words.empty() ? "" : ", ") + one; };
  if (overrides.priority) add("priority " + std::to_string(*overrides.priority));
  if (overrides.queue) add("queue " + *overrides.queue);
  if (const auto& limit_s = overrides.time_limit_s)
    add(*limit_s == 0 ? "no time limit" : "time limit " + duration_text(*limit_s * 1000));
  return words.empty() ? "nothing" : words;
}

}  // namespace muster::core
