// Inputs: the inputs of a typed command (`--each`), read from files or stdin, added to the
// manifest, and referenced in the command.
//
// A placeholder in the command becomes $(MUSTER_INPUT...) (core/spec/values/inputs.hpp), which the
// node expands within one argument. No shell parses it, so an input is never more than an argument.
#pragma once

#include "base/result.hpp"
#include "client/inputs/wishes.hpp"
#include "client/terminal/json.hpp"
#include "core/spec/values/inputs.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

struct Inputs {
  std::vector<core::Input> rows;    // one for each index
  std::vector<std::string> names;   // of the columns of a CSV file; else empty
  std::string ranges{};             // the same as ranges (core::ranges_of()), if it is an array
  std::vector<uint32_t> numbers{};  // likewise, ascending
  size_t blank = 0;                 // rows of blank lines only
  bool returns = false;             // the CR of Windows was dropped from the lines of a file
};

// The lines of the files (of several files, every combination, the last file varying fastest) or
// the records of a CSV file, without its blank lines. "-" is stdin. invalid: unreadable, empty, too
// many, one longer than a variable can be (128 KiB), or two columns of the same name.
Result<Inputs> read_inputs(const EachWishes& each);

// The lines of a file of commands, without blank lines, comments and the CR of Windows. "-" is
// stdin. invalid: unreadable, no command, too many, or one longer than 128 KiB.
Result<Inputs> read_commands(const std::string& file);

// "1-100", "0-15:4", "1,5,9-12", as a set of numbers; "%10" (at most 10 at once) sets `at_once`.
Result<Inputs> array_inputs(const std::string& text, int32_t& at_once);

// Parses CSV records (RFC 4180); a line may end with CR LF. `lines`: gets the line on which each
// record begins. invalid: a quote is not closed.
Result<std::vector<core::Input>> parse_csv(const std::string& text,
                                           std::vector<size_t>* lines = nullptr);

// Whether one of these words contains a placeholder for an input, or, if `or_column`, for one of
// its columns.
bool has_placeholder(const std::vector<std::string>& command, bool or_column = false);

// The command for inputs from this many lists of typed values. If it has no placeholder, the values
// become its last arguments, as in GNU parallel.
std::vector<std::string> with_values(std::vector<std::string> command, size_t lists);

// The command for a manifest, with a reference for each placeholder and everything else as typed.
// invalid: there is no such column, or a shell would read the input as code.
Result<std::vector<std::string>> with_references(const std::vector<std::string>& command,
                                                 const Inputs& inputs);

// The file for inputs that the manifest does not carry.
struct InputsFile {
  std::string name;   // derived from the bytes
  std::string bytes;  // empty: the manifest carries them
};
// Adds inputs to a manifest. Any bytes returned must be written to a file (name_file()).
InputsFile add_inputs(Json& manifest, const Inputs& inputs);
void name_file(Json& manifest, const std::string& path);

constexpr size_t kInputShown = 40;  // bytes of an input in a table or message

// The inputs of a job, to show with its indexes. None if their file is on another machine, we may
// not read it, or we are another user and it does not belong to the job's owner (owner_file.hpp).
class JobInputs {
 public:
  explicit JobInputs(const Json& job);
  bool any() const { return table_.has_value(); }
  std::optional<std::string> of(int64_t index) const;  // on one line
  // The value of a reference, given without "$(" and ")"; absent: it names no input.
  std::optional<std::string> value(int64_t index, std::string_view reference) const;

 private:
  std::optional<core::InputTable> table_;
};

// The path of the file that stdin is, if it has one and nothing of it has been read.
std::string path_of_stdin();
// Everything up to the end of stdin, for a file named after its bytes; without a name if there is
// nothing. Says on stderr what it waits for if nothing comes for two seconds. invalid: more than
// core::kInputFileMax.
Result<InputsFile> rest_of_stdin();

// Whether stdin is piped and has data waiting.
bool stdin_waits();
// Whether stdin is a pipe or a file, perhaps without data yet. One shared with a parent shell does
// not count: it holds the shell's script (`ssh host bash -s`) or the list of a loop.
bool stdin_is_piped();

}  // namespace muster::cli
