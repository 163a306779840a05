#include "base/log.hpp"

#include "base/lines/stderr_lines.hpp"

#include <spdlog/sinks/base_sink.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace muster::log {

namespace {

// The mutex is held while a record is formatted, not while it is written.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& record) override {
    spdlog::memory_buf_t line;
    formatter_->format(record, line);
    say({line.data(), line.size()});
  }
  void flush_() override {}
};

// Whose log it is and how its lines look; set before there are several threads.
std::string component;
Format chosen = Format::text;

void set_up(const std::string& program, const std::string& level, Format format) {
  component = program;
  chosen = format;
  auto logger = std::make_shared<spdlog::logger>(program, std::make_shared<StderrSink>());
  logger->set_formatter(make_formatter(format));
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

std::string formatted(spdlog::formatter& formatter, spdlog::level::level_enum level,
                      const std::string& text) {
  spdlog::memory_buf_t line;
  formatter.format({component, level, text}, line);
  return {line.data(), line.size()};
}

}  // namespace

void setup(const std::string& program, const std::string& level) {
  set_up(program, level, Format::text);
}

void setup_queued(const std::string& program, const std::string& level, Format format) {
  set_up(program, level, format);
  std::shared_ptr<spdlog::formatter> formatter = make_formatter(format);
  queue_stderr([formatter = std::move(formatter)](uint64_t dropped) {
    return formatted(*formatter, spdlog::level::warn, dropped_text(dropped));
  });
}

void say_error(std::string text) {
  if (chosen == Format::text) return say(std::move(text));
  constexpr std::string_view kProgram = "muster: ";
  if (text.starts_with(kProgram)) text.erase(0, kProgram.size());
  while (text.ends_with('\n')) text.pop_back();
  say(formatted(*make_formatter(chosen), spdlog::level::err, text));
}

}  // namespace muster::log
