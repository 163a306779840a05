#include "client/terminal/table.hpp"

#include "base/printable.hpp"
#include "client/terminal/local_time.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace muster::cli {
namespace {

constexpr size_t kGap = 3;  // spaces between columns

// A cell that cannot look like two rows or columns, or act on the terminal. Escaped here already,
// since columns are as wide as what is shown.
std::string one_cell(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return visible(text);
}

std::string cell_text(const Json& cell) {
  if (cell.is_null()) return "<none>";
  if (!cell.is_string()) return dumped(cell);
  const std::string text = one_cell(localized(cell.get_ref<const std::string&>()));
  return text.empty() ? "<none>" : text;
}

void grow(std::vector<size_t>& widths, const std::vector<std::string>& row) {
  if (widths.size() < row.size()) widths.resize(row.size());
  for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
}

std::string line(const std::vector<std::string>& row, const std::vector<size_t>& widths) {
  std::string out;
  for (size_t i = 0; i < row.size(); ++i) {
    out += row[i];
    if (i + 1 < row.size()) out.append(widths[i] - row[i].size() + kGap, ' ');
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out + "\n";
}

}  // namespace

std::string TablePrinter::lines(const Json& table) {
  if (const Json& columns = at(table, {"columnDefinitions"});
      names_.empty() && columns.is_array()) {
    if (namespaces_) names_.emplace_back("NAMESPACE");
    for (const Json& column : columns) {
      if (text_at(column, {"format"}) == "name") name_column_ = shown_.size();
      shown_.push_back(wide_ || number_at(column, {"priority"}) == 0);
      if (shown_.back()) names_.push_back(upper(text_at(column, {"name"})));
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const Json& entry : at(table, {"rows"})) {
    std::vector<std::string>& row = rows.emplace_back();
    if (namespaces_) row.push_back(one_cell(text_at(entry, {"object", "metadata", "namespace"})));
    const Json& cells = at(entry, {"cells"});
    for (size_t i = 0; i < cells.size() && i < shown_.size(); ++i) {
      if (shown_[i])
        row.push_back((i == name_column_ ? prefix_ : std::string()) + cell_text(cells[i]));
    }
    grow(widths_, row);
  }
  if (rows.empty()) return "";
  std::string out;
  if (headers_ && !header_done_) {
    grow(widths_, names_);
    out += line(names_, widths_);
  }
  header_done_ = true;
  for (const auto& row : rows) out += line(row, widths_);
  return out;
}

std::string aligned(const std::vector<std::vector<std::string>>& rows, const std::string& indent) {
  std::vector<std::vector<std::string>> cells;
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    std::transform(row.begin(), row.end(), std::back_inserter(cells.emplace_back()), one_cell);
    grow(widths, cells.back());
  }
  std::string out;
  for (const auto& row : cells) out += indent + line(row, widths);
  return out;
}

std::string tsv_cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\t')
      out += "\\t";
    else if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

}  // namespace muster::cli
