// Words: parses and checks command-line words without CLI11.
#pragma once

#include "base/clock.hpp"
#include "cli/verbs/options.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::cli {

// A usage error that the grammar cannot express; printed as one line, exit code 2.
struct Usage {
  std::string message;
};
using Judged = std::variant<Options, Usage>;

// "job/J" or "J" -> "J"; any other kind before the slash is an error.
std::variant<std::string, Usage> job_name(const std::string& word);

// "job/J...", "job J..." or "J..."; at least one.
std::variant<std::vector<std::string>, Usage> job_names(std::vector<std::string> words);

// "node/N" or "N".
std::string node_name(const std::string& word);

// Parses a duration into `target`; empty text leaves it unchanged.
std::optional<Usage> read_span(const std::string& flag, const std::string& text, Millis& target);
// The same for a limit; "0" is none.
std::optional<Usage> read_limit(const std::string& flag, const std::string& text,
                                std::optional<Millis>& target);

// "wide", "name", "json", "yaml"; anything else is the table.
Output read_output(const std::string& text);

// The error that `get` and `describe` print for an unknown kind.
Usage unknown_kind(const std::string& word);

}  // namespace muster::cli
