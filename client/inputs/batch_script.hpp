// BatchScript: a script with options for the job that runs it, as sbatch takes them.
//
//   script  = "#!" interpreter [" " argument] "\n" *line
//   options = ("#SBATCH" / "#MUSTER") *word "\n"          at the start of a line
//
// Options are read up to the first line that is neither blank nor a comment. Their words may be
// quoted as in a shell, and a word that starts with # starts a comment. What #SBATCH options mean
// is in sbatch_options.hpp; #MUSTER options are flags of muster.
//
// A job carries the text of its script, so the file is not needed on the nodes, and changing it
// later changes nothing.
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

struct OptionLine {
  size_t number = 0;
  std::vector<std::string> words;
};

struct BatchScript {
  std::string name;  // of the file, without its directory
  std::string text;
  std::vector<std::string> interpreter;  // its program and, if there is one, its argument
  std::vector<OptionLine> sbatch, muster;
  std::vector<size_t> late;  // lines of options after the first command, which are ignored
};

// Whether one of its lines has options.
bool has_options(std::string_view text);

// Whether this is meant to be a script, even if it is not a valid one: it starts with #!, or it has
// options and is no manifest.
bool is_batch_script(std::string_view text);

// `file`: as shown in messages. invalid: says what is wrong, with its place.
Result<BatchScript> parse_batch_script(const std::string& file, const std::string& text);

// The command that runs the script with arguments to follow. Shells get its text as an argument.
// For other interpreters, a shell first writes it to a file without a name.
std::vector<std::string> command_of(const BatchScript& script);

}  // namespace muster::cli
