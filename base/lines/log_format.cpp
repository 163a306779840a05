#include "base/lines/log_format.hpp"

#include "base/printable.hpp"

#include <spdlog/pattern_formatter.h>

#include <chrono>
#include <cstdio>
#include <ctime>

namespace muster::log {
namespace {

// Prints a record's text on one line, with control characters escaped, so callers may log untrusted
// text as it is.
class OneLine final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& record, const std::tm&,
              spdlog::memory_buf_t& out) override {
    std::string text = on_one_line({record.payload.data(), record.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<OneLine>();
  }
};

std::string_view text_of(const spdlog::string_view_t& text) {
  return {text.data(), text.size()};
}

// "2026-12-01T17:00:00.000Z"
std::string instant(spdlog::log_clock::time_point at) {
  using namespace std::chrono;
  const time_t seconds = spdlog::log_clock::to_time_t(floor<std::chrono::seconds>(at));
  const auto ms = duration_cast<milliseconds>(at - floor<std::chrono::seconds>(at)).count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + size, sizeof text - size, ".%03dZ", static_cast<int>(ms));
  return text;
}

class JsonLines final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& record, spdlog::memory_buf_t& out) override {
    const std::string line = "{\"time\":\"" + instant(record.time) + "\",\"level\":" +
                             json_string(text_of(spdlog::level::to_string_view(record.level))) +
                             ",\"component\":" + json_string(text_of(record.logger_name)) +
                             ",\"message\":" + json_string(text_of(record.payload)) + "}\n";
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonLines>();
  }
};

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : utf8_prefix(text, text.size() * 3)) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += c;
    }
  }
  return visible(out + '"');
}

std::unique_ptr<spdlog::formatter> make_formatter(Format format) {
  if (format == Format::json) return std::make_unique<JsonLines>();
  auto lines = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  lines->add_flag<OneLine>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %n: %*");
  return lines;
}

}  // namespace muster::log
