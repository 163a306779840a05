#include "client/terminal/safe_output.hpp"

#include "base/printable.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <utility>

namespace muster::cli {
namespace {

std::ostream* g_raw_out = &std::cout;
std::ostream* g_raw_err = &std::cerr;

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
      : stream_(stream), shared_(raw), to_(stream.rdbuf(this)), raw_(to_) {
    raw_.flags(stream.flags());
    raw_.tie(stream.tie());
    shared_ = &raw_;
  }
  ~Filter() override {
    stream_.flush();
    stream_.rdbuf(to_);
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

  bool write(std::string_view data) {
    std::string joined;
    if (!held_.empty()) data = joined = std::exchange(held_, {}).append(data);
    held_ = data.substr(data.size() - unfinished(data));
    data.remove_suffix(held_.size());
    return put(visible(data));
  }
  bool put(const std::string& text) {
    const auto size = static_cast<std::streamsize>(text.size());
    return to_->sputn(text.data(), size) == size;
  }

  std::ostream& stream_;
  std::ostream*& shared_;
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

std::ostream& raw_out() {
  return *g_raw_out;
}

std::ostream& raw_err() {
  return *g_raw_err;
}

}  // namespace muster::cli
