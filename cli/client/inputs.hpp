// Inputs of a typed command (`--each`): read from files or stdin, put into the manifest, and their
// references in the command.
//
// A placeholder in the command becomes $(MUSTER_INPUT...) (core/spec/inputs.hpp), which the node
// expands within one argument. No shell reads it, so no input can be more than an argument.
#pragma once

#include "base/result.hpp"
#include "cli/output/json.hpp"
#include "cli/settings/options.hpp"
#include "core/spec/inputs.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

struct Inputs {
  std::vector<core::Input> rows;   // one for each index
  std::vector<std::string> names;  // of the columns of a CSV file; else empty
};

// The lines of the files, of several each combination, the last one varying fastest; or the records
// of a CSV file. "-" is stdin. invalid: unreadable, empty, too many.
Result<Inputs> read_inputs(const EachWishes& each);

// "1-100", "0-15:4", "1,5,9-12"; "%10", at most so many at once, goes to `at_once`.
Result<Inputs> array_inputs(const std::string& text, int32_t& at_once);

// The records of RFC 4180; a line may end with CR LF. invalid: a quote is not closed.
Result<std::vector<core::Input>> parse_csv(const std::string& text);

// Whether one of these words contains a placeholder for an input.
bool has_placeholder(const std::vector<std::string>& command);

// The command as a manifest has it, with a reference for each placeholder and everything else as it
// was typed. invalid: there is no such column, or a shell would read the input as code.
Result<std::vector<std::string>> with_references(const std::vector<std::string>& command,
                                                 const Inputs& inputs);

// Where inputs are that a manifest does not carry.
struct InputsFile {
  std::string name;   // made from the bytes
  std::string bytes;  // empty: the manifest carries them
};
// Adds inputs to a manifest; what is too much for it must be written to a file (name_file()).
InputsFile add_inputs(Json& manifest, const Inputs& inputs);
void name_file(Json& manifest, const std::string& path);

constexpr size_t kInputShown = 40;  // bytes of an input, where others stand beside it

// Inputs of a job, for those who are shown its indexes. A file may be on another machine, or not be
// ours to read: then there are none.
class JobInputs {
 public:
  explicit JobInputs(const Json& job);
  bool any() const { return table_.has_value(); }
  std::optional<std::string> of(int64_t index) const;  // on one line
  // Of a reference without its "$(" and ")"; nothing: it names no input.
  std::optional<std::string> value(int64_t index, std::string_view reference) const;

 private:
  std::optional<core::InputTable> table_;
};

// Whether something is piped to stdin and waits to be read.
bool stdin_waits();
// Whether stdin is a pipe or a file, which may have nothing yet. One that a shell, our parent, has
// as well is its own: it reads its script there (`ssh host bash -s`), or a loop's list.
bool stdin_is_piped();

}  // namespace muster::cli
