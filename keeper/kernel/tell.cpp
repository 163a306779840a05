#include "keeper/kernel/tell.hpp"

#include "base/lines/stderr_lines.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

namespace muster::keeper {
namespace {

constexpr const char* kTeller = "muster-keeper: ";
constexpr int kToldMax = 16 << 10;  // a path and a few words

}  // namespace

void queue_told() {
  queue_stderr([](uint64_t dropped) { return kTeller + dropped_text(dropped) + "\n"; });
}

void tell(const char* format, ...) {
  std::string text(kToldMax, '\0');
  va_list values;
  va_start(values, format);
  const int size = std::vsnprintf(text.data(), text.size(), format, values);
  va_end(values);
  if (size < 0) return;
  text.resize(std::min(static_cast<size_t>(size), text.size() - 1));
  say(kTeller + text + "\n");
}

void tell_errno(const char* what) {
  tell("%s: %s", what, std::strerror(errno));
}

}  // namespace muster::keeper
