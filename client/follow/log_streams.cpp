#include "client/follow/log_streams.hpp"

#include "client/connect/objects.hpp"
#include "client/terminal/text.hpp"

#include <set>

namespace muster::cli {

namespace {

bool go_together(const Printer::Stream& out, const Printer::Stream& err) {
  return out.offset == 0 && err.offset == 0 && out.file == err.file &&
         (out.file != nullptr || out.err == err.err);
}

// The containers whose two streams can be read as one.
std::set<std::string> joined_in(const LogStreams& streams) {
  std::set<std::string> joined;
  for (const auto& [key, out] : streams)
    if (const auto err = streams.find({key.first, true});
        !key.second && err != streams.end() && go_together(out, err->second))
      joined.insert(key.first);
  return joined;
}

}  // namespace

Status take_log(ApiClient& client, const std::string& path, LogStreams& streams, Printer& printer,
                std::optional<int64_t> tail, bool over) {
  Status done = Nothing{};
  const std::set<std::string> joined = over ? joined_in(streams) : std::set<std::string>();
  for (auto& [key, stream] : streams) {
    const auto& [container, err] = key;
    const bool both = joined.contains(container);
    if (both && err) continue;
    LastLines last(tail.value_or(0));
    int64_t size = 0;
    const auto answer =
        client.stream(path + "container=" + url_encoded(container) + "&stream=" +
                          (both  ? "All"
                           : err ? "Stderr"
                                 : "Stdout") +
                          (stream.offset > 0 ? "&offset=" + std::to_string(stream.offset) : ""),
                      "*/*", [&, &stream = stream](std::string_view part) {
                        size += static_cast<int64_t>(part.size());
                        if (tail)
                          last.take(part);
                        else
                          printer.take(stream, part);
                        return true;
                      });
    if (done && !answer) done = answer.error();
    if (done && answer && !answer->ok()) done = refusal(*answer);
    if (!tail) continue;
    const int64_t offset = stream.offset + size;
    printer.take(stream, last.text());
    stream.offset = offset;
  }
  return done;
}

}  // namespace muster::cli
