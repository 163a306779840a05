#include "base/lines/line_log.hpp"

#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/rotating_file_sink.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace muster {

constexpr size_t kWaitingMax = 8'192;

struct LineLog::Files {
  std::shared_ptr<spdlog::details::thread_pool> thread;
  std::shared_ptr<spdlog::async_logger> logger;
  size_t dropped = 0;  // as of the last line written
};

LineLog::LineLog(std::unique_ptr<Files> files) : files_(std::move(files)) {}
LineLog::~LineLog() = default;

Result<std::unique_ptr<LineLog>> LineLog::open(const std::string& path, size_t bytes_max,
                                               size_t files_max) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return Error{Errc::unavailable, path + ": " + strerror(errno), {}};
  close(fd);
  try {
    auto files = std::make_unique<Files>();
    auto sink = std::make_shared<spdlog::sinks::rotating_file_sink_st>(path, bytes_max, files_max);
    files->thread = std::make_shared<spdlog::details::thread_pool>(kWaitingMax, 1);
    files->logger = std::make_shared<spdlog::async_logger>(
        path, std::move(sink), files->thread, spdlog::async_overflow_policy::overrun_oldest);
    files->logger->set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
    files->logger->flush_on(spdlog::level::info);
    return std::unique_ptr<LineLog>(new LineLog(std::move(files)));
  } catch (const spdlog::spdlog_ex& e) {
    return Error{Errc::unavailable, path + ": " + e.what(), {}};
  }
}

void LineLog::write(std::string line) {
  const size_t dropped = files_->thread->overrun_counter();
  if (dropped != files_->dropped)
    files_->logger->info("{{\"dropped\":{}}}", dropped - std::exchange(files_->dropped, dropped));
  files_->logger->info(spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace muster
