// Words: what stands on a command line, read and judged without the parser.
#pragma once

#include "base/clock.hpp"
#include "cli/settings/options.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::cli {

// What is wrong with words that parse; becomes one line and exit code 2.
struct Usage {
  std::string message;
};
using Judged = std::variant<Options, Usage>;

// "job/J" or "J" -> "J"; another kind before the slash is refused.
std::variant<std::string, Usage> job_name(const std::string& word);

// "job/J...", "job J..." or "J...": one at least.
std::variant<std::vector<std::string>, Usage> job_names(std::vector<std::string> words);

// "node/N" or "N".
std::string node_name(const std::string& word);

// Into `target`; an empty text leaves it as it is.
std::optional<Usage> read_span(const std::string& flag, const std::string& text, Millis& target);

// "wide", "name", "json", "yaml"; else the table.
Output read_output(const std::string& text);

// What `get` and `describe` say about a word that is no kind.
Usage unknown_kind(const std::string& word);

}  // namespace muster::cli
