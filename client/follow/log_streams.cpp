#include "client/follow/log_streams.hpp"

#include "client/terminal/text.hpp"

namespace muster::cli {

void take_log(ApiClient& client, const std::string& path, LogStreams& streams, Printer& printer,
              std::optional<int64_t> tail) {
  for (auto& [key, stream] : streams) {
    const auto& [container, err] = key;
    LastLines last(tail.value_or(0));
    int64_t size = 0;
    (void)client.stream(path + "container=" + url_encoded(container) +
                            "&stream=" + (err ? "Stderr" : "Stdout") +
                            (stream.offset > 0 ? "&offset=" + std::to_string(stream.offset) : ""),
                        "*/*", [&, &stream = stream](std::string_view part) {
                          size += static_cast<int64_t>(part.size());
                          if (tail)
                            last.take(part);
                          else
                            printer.take(stream, part);
                          return true;
                        });
    if (!tail) continue;
    const int64_t offset = stream.offset + size;
    printer.take(stream, last.text());
    stream.offset = offset;
  }
}

}  // namespace muster::cli
