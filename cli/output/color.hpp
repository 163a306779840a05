// Color: words that stand out on a terminal. NO_COLOR and --color decide, in this order: always and
// never are what they say; automatic is a terminal that is not dumb, without NO_COLOR.
#pragma once

#include <string>
#include <string_view>

namespace muster::cli {

enum class When { automatic, always, never };

// "auto", "always", "never"; another word is automatic.
When parse_when(std::string_view word);

// A terminal that can rewrite a line: not TERM=dumb.
bool is_terminal(int fd);

class Paint {
 public:
  Paint() = default;  // none
  Paint(When when, int fd);
  bool on() const { return on_; }
  std::string red(std::string_view text) const { return in("31", text); }
  std::string green(std::string_view text) const { return in("32", text); }
  std::string bold(std::string_view text) const { return in("1", text); }

 private:
  std::string in(const char* code, std::string_view text) const;
  bool on_ = false;
};

}  // namespace muster::cli
