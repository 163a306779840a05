#include "base/log.hpp"

#include "base/printable.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

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

}  // namespace

void setup(const std::string& program, const std::string& level) {
  auto logger =
      std::make_shared<spdlog::logger>(program, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto lines = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  lines->add_flag<OneLine>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %n: %*");
  logger->set_formatter(std::move(lines));
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace muster::log
