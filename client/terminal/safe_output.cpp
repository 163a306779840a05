#include "client/terminal/safe_output.hpp"

#include "base/printable.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster::cli {
namespace {

std::ostream* g_raw_out = &std::cout;
std::ostream* g_raw_err = &std::cerr;
std::atomic<bool> g_outlive_reader = false, g_reader_left = false;
std::atomic<bool> g_within_out = false, g_within_err = false;

// As with `2>&1`, or on a terminal.
bool one_file() {
  static const bool same = [] {
    struct stat out, err;
    return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
           out.st_dev == err.st_dev && out.st_ino == err.st_ino;
  }();
  return same;
}

void relay(std::ostream& stream, std::string_view bytes, std::atomic<bool>& within) {
  if (bytes.empty()) return;
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
  if (one_file()) g_within_out = g_within_err = false;
  within = bytes.back() != '\n';
}

// Before something of our own on standard error.
void end_line(std::streambuf& err) {
  if (!within_line()) return;
  err.sputc('\n');
  g_within_err = false;
  if (one_file()) g_within_out = false;
}

// The length of an unfinished UTF-8 character at the end, at most 3.
size_t unfinished(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4u : byte >= 0xe0 ? 3u : 2u) ? back : 0;
  }
  return 0;
}

}  // namespace

// Holds nothing back but an unfinished character.
class SafeOutput::Filter final : public std::streambuf {
 public:
  Filter(std::ostream& stream, std::ostream*& raw)
      : stream_(stream),
        shared_(raw),
        before_(stream.rdbuf(this)),
        read_(before_),
        to_(&stream == &std::cout ? &read_ : before_),
        raw_(to_) {
    raw_.flags(stream.flags());
    raw_.tie(stream.tie());
    shared_ = &raw_;
  }
  ~Filter() override {
    stream_.flush();
    stream_.rdbuf(before_);
    shared_ = &stream_;
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

 private:
  std::streamsize xsputn(const char* data, std::streamsize size) override {
    return write({data, static_cast<size_t>(size)}) ? size : 0;
  }
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char byte = traits_type::to_char_type(c);
    return write({&byte, 1}) ? c : traits_type::eof();
  }
  int sync() override {
    const bool written = put(visible(std::exchange(held_, {})));
    return to_->pubsync() == 0 && written ? 0 : -1;
  }

  // Standard output below the filter: notices that its reader has left.
  class ReadBuffer final : public std::streambuf {
   public:
    explicit ReadBuffer(std::streambuf* to) : to_(to) {}

   private:
    std::streamsize xsputn(const char* data, std::streamsize size) override {
      errno = 0;
      const std::streamsize written = to_->sputn(data, size);
      if (written != size) failed();
      return written;
    }
    int_type overflow(int_type c) override {
      if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
      const char byte = traits_type::to_char_type(c);
      return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
    }
    int sync() override {
      errno = 0;
      const int done = to_->pubsync();
      if (done != 0) failed();
      return done;
    }
    static void failed() {
      if (errno != EPIPE) return;
      g_reader_left = true;
      if (!g_outlive_reader) end_by_sigpipe();
    }

    std::streambuf* const to_;
  };

  bool write(std::string_view data) {
    std::string joined;
    if (!held_.empty()) data = joined = std::exchange(held_, {}).append(data);
    held_ = data.substr(data.size() - unfinished(data));
    data.remove_suffix(held_.size());
    return put(visible(data));
  }
  bool put(const std::string& text) {
    if (&stream_ == &std::cerr && !text.empty()) end_line(*to_);
    const auto size = static_cast<std::streamsize>(text.size());
    return to_->sputn(text.data(), size) == size;
  }

  std::ostream& stream_;
  std::ostream*& shared_;
  std::streambuf* const before_;
  ReadBuffer read_;
  std::streambuf* const to_;
  std::ostream raw_;
  std::string held_;
};

SafeOutput::SafeOutput()
    : out_(std::make_unique<Filter>(std::cout, g_raw_out)),
      err_(std::make_unique<Filter>(std::cerr, g_raw_err)) {}

SafeOutput::~SafeOutput() = default;

std::optional<std::string> lost_output() {
  errno = 0;
  std::cout.flush();
  raw_out().flush();
  std::fflush(stdout);
  const int error = errno;
  if (std::cout.good() && raw_out().good() && std::ferror(stdout) == 0) return std::nullopt;
  return "cannot write to standard output" +
         (error != 0 ? std::string(": ") + std::strerror(error) : "");
}

void outlive_reader() {
  g_outlive_reader = true;
}

bool reader_left() {
  return g_reader_left;
}

void end_by_sigpipe() {
  std::signal(SIGPIPE, SIG_DFL);
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
  raise(SIGPIPE);
  _exit(128 + SIGPIPE);  // the first process of a container gets no such signal
}

std::ostream& raw_out() {
  return *g_raw_out;
}

std::ostream& raw_err() {
  end_line(*g_raw_err->rdbuf());
  return *g_raw_err;
}

void relay_out(std::string_view bytes) {
  relay(*g_raw_out, bytes, g_within_out);
}

void relay_err(std::string_view bytes) {
  relay(*g_raw_err, bytes, g_within_err);
}

bool within_line() {
  return g_within_err || (one_file() && g_within_out);
}

}  // namespace muster::cli
