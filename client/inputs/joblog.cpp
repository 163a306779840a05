#include "client/inputs/joblog.hpp"

#include "base/process/shell_words.hpp"
#include "base/text/time_text.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

namespace muster::cli {
namespace {

std::string in_seconds(Millis ms) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%lld.%03lld", static_cast<long long>(ms / 1000),
                static_cast<long long>(ms % 1000));
  return text.data();
}

std::string cpu_seconds(const Json& attempt, const char* mode) {
  const Json& seconds = at(attempt, {"usage", mode});
  return in_seconds(seconds.is_number() ? std::llround(seconds.get<double>() * 1000) : 0);
}

const char* counted_as(const std::string& counted) {
  if (counted == "succeeded") return "success";
  if (counted == "cancelled") return "cancelled";
  return counted == "failed" ? "failure" : "none";
}

}  // namespace

std::string joblog_header() {
  return "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\tIndex\tAttempt"
         "\tCounted\tPod\tUsertime\tSystemtime\tPeakmemory\tWaittime\tEndtime\n";
}

Joblog::Joblog(const Json& job) : inputs_(job) {
  const Json& containers = at(job, {"spec", "template", "spec", "containers"});
  if (!containers.is_array() || containers.empty()) return;
  for (const char* part : {"command", "args"}) {
    for (const Json& word : at(containers.front(), {part}))
      if (word.is_string()) words_.push_back(word.get<std::string>());
  }
}

std::string Joblog::line(const Json& attempt) {
  ++lines_;
  const int64_t index = number_at(attempt, {"index"}, -1);
  const auto from = parse_time(text_at(attempt, {"started"}));
  const auto to = parse_time(text_at(attempt, {"ended"}));
  const auto created = parse_time(text_at(attempt, {"created"}));
  const std::string fields[] = {
      std::to_string(index < 0 ? lines_ : index + 1),
      text_at(attempt, {"node"}),
      in_seconds(from.value_or(0)),
      in_seconds(from && to && *to > *from ? *to - *from : 0),
      "0",
      "0",
      std::to_string(number_at(attempt, {"exitCode"})),
      std::to_string(number_at(attempt, {"signal"})),
      command_of(index),
      index < 0 ? "-" : std::to_string(index),
      std::to_string(number_at(attempt, {"attempt"})),
      counted_as(text_at(attempt, {"counted"})),
      text_at(attempt, {"pod"}),
      cpu_seconds(attempt, "userSeconds"),
      cpu_seconds(attempt, "systemSeconds"),
      std::to_string(number_at(attempt, {"usage", "peakMemoryBytes"})),
      in_seconds(created && from && *from > *created ? *from - *created : 0),
      in_seconds(to.value_or(0)),
  };
  std::string out;
  for (const std::string& field : fields) out += (out.empty() ? "" : "\t") + tsv_cell(field);
  return out + "\n";
}

// The command as typed, with the index and its input in place of references.
std::string Joblog::command_of(int64_t index) const {
  std::string out;
  for (const std::string& word : words_) {
    std::string text;
    for (size_t i = 0; i < word.size(); ++i) {
      const size_t end = word.compare(i, 2, "$(") == 0 ? word.find(')', i) : std::string::npos;
      if (word.compare(i, 2, "$$") == 0) {
        text += '$';
        ++i;
      } else if (end != std::string::npos) {
        const std::string name = word.substr(i + 2, end - i - 2);
        const auto value = name == "JOB_COMPLETION_INDEX" && index >= 0
                               ? std::optional(std::to_string(index))
                               : inputs_.value(index, name);
        text += value.value_or(word.substr(i, end + 1 - i));
        i = end;
      } else {
        text += word[i];
      }
    }
    out += (out.empty() ? "" : " ") + shell_quoted(text);
  }
  return out;
}

}  // namespace muster::cli
