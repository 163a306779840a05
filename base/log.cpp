#include "base/log.hpp"

#include "base/lines/stderr_lines.hpp"
#include "base/printable.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <memory>
#include <mutex>
#include <string>

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

std::unique_ptr<spdlog::formatter> make_formatter() {
  auto lines = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  lines->add_flag<OneLine>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %n: %*");
  return lines;
}

}  // namespace

void setup(const std::string& program, const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>(program, std::make_shared<StderrSink>());
  logger->set_formatter(make_formatter());
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

void setup_queued(const std::string& program, const std::string& level) {
  setup(program, level);
  std::shared_ptr<spdlog::formatter> formatter = make_formatter();
  queue_stderr([program, formatter = std::move(formatter)](uint64_t dropped) {
    const std::string text = dropped_text(dropped);
    spdlog::memory_buf_t line;
    formatter->format({program, spdlog::level::warn, text}, line);
    return std::string(line.data(), line.size());
  });
}

}  // namespace muster::log
