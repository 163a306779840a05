#include "client/follow/printer.hpp"

#include "client/terminal/safe_output.hpp"

#include <cstddef>

namespace muster::cli {
namespace {

constexpr size_t kPartBytes = 256 << 20;  // a longer line is split
constexpr size_t kWriteAt = 1 << 20;      // bytes buffered before they are written

}  // namespace

void Printer::take(Stream& stream, std::string_view data) {
  std::string& to = stream.err ? err_ : out_;
  stream.offset += static_cast<int64_t>(data.size());
  if (unread(stream)) return;
  if (stream.file != nullptr) {
    // Whole lines only, so that stdout and stderr do not mix within a line.
    const size_t end = data.rfind('\n') + 1, before = stream.partial.size();
    stream.partial += data;
    size_t whole = end > 0 ? before + end : 0;
    if (whole == 0 && stream.partial.size() >= kPartBytes) whole = stream.partial.size();
    if (whole > 0) files_->write(*stream.file, std::string_view(stream.partial).substr(0, whole));
    stream.partial.erase(0, whole);
    return;
  }
  if (stream.lead.empty()) {
    to += data;
  } else {
    for (size_t from = 0; from < data.size();) {
      const size_t end = data.find('\n', from);
      stream.partial += data.substr(from, end == std::string_view::npos ? end : end - from);
      if (end == std::string_view::npos && stream.partial.size() < kPartBytes) break;
      to += stream.lead + stream.partial + "\n";
      stream.partial.clear();
      if (end == std::string_view::npos) break;
      from = end + 1;
    }
  }
  if (out_.size() + err_.size() > kWriteAt) flush({});
}

bool Printer::unread(const Stream& stream) {
  return stream.file == nullptr && !stream.err && reader_left();
}

void Printer::finish(Stream& stream) {
  if (stream.partial.empty()) return;
  if (stream.file != nullptr) {
    files_->write(*stream.file, stream.partial);
    stream.partial.clear();
    return;
  }
  (stream.err ? err_ : out_) += stream.lead + stream.partial + "\n";
  stream.partial.clear();
}

void Printer::flush(const std::function<void()>& first) {
  if (out_.empty() && err_.empty()) return;
  if (first) first();
  relay_out(out_);
  relay_err(err_);
  out_.clear();
  err_.clear();
}

}  // namespace muster::cli
