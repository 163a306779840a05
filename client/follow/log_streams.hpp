// Log streams: the output of a pod, read from a coordinator piece by piece.
#pragma once

#include "base/result.hpp"
#include "client/connect/http.hpp"
#include "client/follow/printer.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace muster::cli {

// By container, and whether it is stderr.
using LogStreams = std::map<std::pair<std::string, bool>, Printer::Stream>;

// Keeps the last lines of the text it takes.
class LastLines {
 public:
  explicit LastLines(int64_t count) : count_(count) {}
  void take(std::string_view part) {
    text_ += part;
    constexpr size_t kSpare = 256 << 10;
    if (text_.size() < 2 * kept_ + kSpare) return;
    text_ = text();
    kept_ = text_.size();
  }
  std::string text() const {
    size_t from = text_.size();
    if (from > 0 && text_[from - 1] == '\n') --from;
    int64_t lines = count_;
    for (; lines > 0 && from != std::string::npos && from > 0; --lines)
      from = text_.rfind('\n', from - 1);
    if (count_ == 0) return "";
    return from == std::string::npos || (from == 0 && lines > 0) ? text_ : text_.substr(from + 1);
  }

 private:
  const int64_t count_;
  std::string text_;
  size_t kept_ = 0;
};

// Prints each stream from its offset on. `path`: of the log, ending in "?" or "&". `tail`: print
// only this many last lines. `over`: the pod has ended; if nothing of it has been printed, stdout
// and stderr that go to one place come in the order of writing. Output that cannot be read now
// because its node is unreachable is left for the next call, and the first such error returned.
Status take_log(ApiClient& client, const std::string& path, LogStreams& streams, Printer& printer,
                std::optional<int64_t> tail, bool over);

}  // namespace muster::cli
