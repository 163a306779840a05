// Tables: columns as wide as their widest cell, like kubectl.
#pragma once

#include "client/terminal/json.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::cli {

class TablePrinter {
 public:
  TablePrinter(bool wide, bool headers, bool namespaces)
      : wide_(wide), headers_(headers), namespaces_(namespaces) {}

  // Precedes the names of objects: "pod/".
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  // Formats a `kind: Table` response; the header precedes the first rows. Widths only grow, so that
  // the rows of a watch line up with those above.
  std::string lines(const Json& table);

 private:
  const bool wide_, headers_, namespaces_;
  bool header_done_ = false;
  std::string prefix_;
  size_t name_column_ = SIZE_MAX;
  std::vector<std::string> names_;
  std::vector<bool> shown_;
  std::vector<size_t> widths_;
};

// Formats rows of cells, each on one line: three spaces between columns, no trailing spaces; each
// line starts with `indent`.
std::string aligned(const std::vector<std::vector<std::string>>& rows, const std::string& indent);

// In a line of tab-separated values: tabs and line breaks are \t and \n.
std::string tsv_cell(std::string_view text);

}  // namespace muster::cli
