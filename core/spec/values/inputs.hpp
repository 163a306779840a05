// Inputs: what each index of a job works on (`muster run --each`).
//
// A job has them in the annotation muster.dev/inputs, or names a file on its nodes in
// muster.dev/inputs-file. Index I gets line I as $MUSTER_INPUT. Tabs separate columns, which are
// $MUSTER_INPUT_1 and so on. Values that contain tabs or line breaks need the packed form:
//
//   packed  = "muster inputs 1\n" columns "\n" *value     columns: decimal, of each row
//   value   = *byte NUL
//   text    = *(line "\n")                                the last "\n" may be missing
//   ranges  = "muster inputs 1\n" "0 " range *("," range) "\n"
//   range   = first ["-" last [":" step]]                 decimal: numbers that ascend
//
// Ranges are the numbers of `--array`, one for each index, of any length in a few bytes. Versions
// that do not know them take them for damaged.
//
// References in the command line name a variable and a part of its value, as in GNU parallel:
// $(MUSTER_INPUT), $(MUSTER_INPUT_2), each also with "." (without extension), "/" (basename), "//"
// (directory) or "/." (basename without extension), and $(MUSTER_INPUT#), the index plus 1.
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

constexpr std::string_view kInputsKey = "muster.dev/inputs";
constexpr std::string_view kInputsFileKey = "muster.dev/inputs-file";
constexpr std::string_view kInputVariable = "MUSTER_INPUT";
constexpr size_t kInputFileMax = 256 << 20;  // bytes

// A row of at least one column.
using Input = std::vector<std::string>;

class InputTable {
 public:
  // `invalid`: it is in the packed form but damaged.
  static Result<InputTable> of(std::string bytes);

  size_t size() const { return runs_.empty() ? ends_.size() : runs_.back().end; }
  // nullopt: there is no such row.
  std::optional<Input> row(size_t index) const;
  const std::string& bytes() const { return bytes_; }

 private:
  struct Run {  // of numbers
    uint32_t first = 0, last = 0, step = 1;
    size_t end = 0;  // rows up to its last
  };
  Status read_ranges(std::string_view text);

  std::string bytes_;
  std::vector<Run> runs_;     // empty: not ranges
  size_t begin_ = 0;          // of the first row
  std::vector<size_t> ends_;  // of each row, after its terminator
  size_t columns_ = 0;        // 0: text
};
using InputTablePtr = std::shared_ptr<const InputTable>;

// All columns, separated by tabs.
std::string input_text(const Input& row);
// The value of a reference, given without "$(" and ")"; nullopt: it names no input, or a column
// that does not exist.
std::optional<std::string> input_value(const Input& row, size_t index, std::string_view reference);

// As lines of text; nullopt if a value contains a tab, a line break or a null byte, or if the text
// would be read as the packed form.
std::optional<std::string> text_of(const std::vector<Input>& rows);
// As ranges. `numbers` must ascend, and not be empty.
std::string ranges_of(const std::vector<uint32_t>& numbers);
// The ranges alone, such as "1-10,20-30:2", of the whole; nullopt: it has none.
std::optional<std::string_view> ranges_in(std::string_view bytes);
std::string with_ranges(std::string_view ranges);
// In the packed form. All rows must have the same number of columns, and no value may contain a
// null byte.
std::string packed(const std::vector<Input>& rows);

}  // namespace muster::core
