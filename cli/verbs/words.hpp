// Words: reads, checks and lists words that several verbs take.
#pragma once

#include "base/clock.hpp"
#include "cli/verbs/verb.hpp"
#include "client/terminal/json.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

inline constexpr int64_t kNumberMax = std::numeric_limits<int32_t>::max();
inline constexpr int64_t kIndexMax = 4294967294;

inline constexpr char kDefaultQueue[] = "default";  // exists even if nobody has stored it

// Sentences of flags that several verbs have.
inline constexpr char kFilesHelp[] =
    "File or directory of manifests, or - for stdin; may hold several documents; repeatable";
inline constexpr char kDryRunHelp[] = "Validate on the coordinator without storing anything";
inline constexpr char kTaskHelp[] = "Tasks, such as 1,5-9, of a job submitted with --array";

// "a, b, c"; with " or " as `last`, "a, b or c".
std::string listed(const std::vector<std::string>& words, const std::string& last = ", ");

// JSON, indented, or YAML.
inline bool is_structured(Output output) {
  return output == Output::json || output == Output::yaml;
}
std::string structured_text(const Json& json, Output output);

// Reads "job/J" or "J"; any other kind before the slash is an error.
std::optional<Usage> read_job_name(const std::string& word, std::string& name);

// Cuts the index off "job/J/INDEX" or "J/INDEX"; leaves other words as they are. `flag`: that names
// an index, too; empty: none was given.
std::optional<Usage> cut_index(std::string& word, const std::string& flag,
                               std::optional<int64_t>& index);

// Reads "job/J...", "job J..." or "J..."; at least one.
std::optional<Usage> read_job_names(std::vector<std::string> words,
                                    std::vector<std::string>& names);

// Reads "POD" or "pod/POD" into `pod`, "job/J" into `job`.
std::optional<Usage> read_pod_or_job(const std::string& word, std::string& pod, std::string& job);

// Checks that a --reason is not too long to be stored.
std::optional<Usage> check_reason(const std::string& reason);
// `what`, and the flags of a verb that shows one index of a job: --index, --task and --output.
FlagRows rows_of_index(FlagRow what, std::optional<int64_t>& index, std::optional<int64_t>& task);
// --reason of a change of nodes, and the patch that cordons one.
FlagRow reason_row(std::string& reason);
Json cordon_patch(const std::string& reason);

// Makes a set of numbers as people type it, such as "5,3,1-3", one as the API takes it: "1-3,5".
// Empty: the flag was not given.
std::optional<Usage> read_set(const std::string& flag, std::string& text);

// "node/N" or "N".
std::string node_name(const std::string& word);

// The path of a directory, absolute, without dots and a slash at the end.
std::string absolute_dir(const std::string& path);

// A flag whose value may not be empty, as it is where a script's variable is not set: it would do
// what no flag does. Of a list, no word may be empty.
struct Filled {
  const char* flag;
  std::vector<std::string> words;
};
std::optional<Usage> check_filled(const Given& given, const std::vector<Filled>& flags);

// Parses a duration into `target`; empty text leaves it unchanged.
std::optional<Usage> read_span(const std::string& flag, const std::string& text, Millis& target);
// The same for a limit; "0" is none.
std::optional<Usage> read_limit(const std::string& flag, const std::string& text,
                                std::optional<Millis>& target);

// "wide", "name", "json", "yaml" or "tsv"; anything else is the table.
Output read_output(const std::string& text);

// The error that `get` and `describe` print for an unknown kind.
Usage unknown_kind(const std::string& word);

}  // namespace muster::cli
