#include "api/routes/pods/log_lines.hpp"

#include "base/text/time_text.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace muster::api {

std::string log_time_text(Millis at) {
  std::string text = time_text(at);
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, ".%03d000000Z", static_cast<int>(at % 1000));
  text.pop_back();
  return text + fraction;
}

void LogLines::add(size_t output, int64_t offset, std::string data,
                   const std::vector<LogMark>& marks, Millis otherwise) {
  Output& to = outputs_[output];
  to.state = State::reading;
  to.otherwise = otherwise;
  to.data.erase(0, to.at);
  to.searched = to.searched > to.at ? to.searched - to.at : 0;
  to.at = 0;
  // What is left ends where this begins, unless something was removed in between.
  to.offset = offset - static_cast<int64_t>(to.data.size());
  to.data += data;
  for (const LogMark& mark : marks)
    if (to.marks.empty() || mark.offset > to.marks.back().offset) to.marks.push_back(mark);
}

size_t LogLines::piece(Output& output) const {
  const size_t left = output.data.size() - output.at;
  if (raw_ || left == 0) return left;
  const size_t from = std::max(output.at, output.searched);
  const size_t end = output.data.find('\n', from);
  if (end != std::string::npos) {
    output.searched = end;
    return std::min(end + 1 - output.at, kPiece);
  }
  output.searched = output.data.size();
  if (left >= kPiece) return kPiece;
  return output.state == State::ended ? left : 0;
}

bool LogLines::wants(size_t output) const {
  const Output& one = outputs_[output];
  if (one.state == State::ended) return false;
  const std::string_view left = std::string_view(one.data).substr(one.at);
  if (raw_) return left.empty();
  return left.size() < kPiece && left.find('\n') == std::string_view::npos;
}

bool LogLines::paused() const {
  return std::none_of(outputs_.begin(), outputs_.end(),
                      [](const Output& one) { return one.state == State::reading; });
}

Millis LogLines::time_of(Output& output, size_t size) {
  const int64_t end = output.offset + static_cast<int64_t>(output.at + size);
  while (!output.marks.empty() && output.marks.front().offset < end) output.marks.pop_front();
  return output.marks.empty() ? output.otherwise : output.marks.front().at;
}

std::string LogLines::take() {
  std::string text;
  for (;;) {
    Output* first = nullptr;
    size_t first_size = 0;
    Millis first_at = 0;
    for (Output& output : outputs_) {
      const size_t size = piece(output);
      if (size == 0) {
        if (output.state == State::reading) return text;
        continue;
      }
      const Millis at = raw_ ? 0 : time_of(output, size);
      // A line that has been begun is ended before another one begins.
      if (first == nullptr || output.within_line || (!first->within_line && at < first_at)) {
        first = &output;
        first_size = size;
        first_at = at;
      }
    }
    if (first == nullptr) return text;
    if (timestamps_ && !first->within_line) text += log_time_text(first_at) + " ";
    text.append(first->data, first->at, first_size);
    first->at += first_size;
    first->within_line = text.back() != '\n';
  }
}

}  // namespace muster::api
