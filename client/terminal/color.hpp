// Color: highlights words on a terminal. --color always and never take precedence; auto means a
// terminal that is not dumb, unless NO_COLOR is set.
#pragma once

#include <string>
#include <string_view>

namespace muster::cli {

enum class When { automatic, always, never };

// "always", "never"; anything else is automatic.
When parse_when(std::string_view word);

// Whether `fd` is a terminal that can rewrite a line: not TERM=dumb.
bool is_terminal(int fd);

class Paint {
 public:
  Paint() = default;  // no color
  Paint(When when, int fd);
  bool on() const { return on_; }
  std::string red(std::string_view text) const { return in("31", text); }
  std::string green(std::string_view text) const { return in("32", text); }

 private:
  std::string in(const char* code, std::string_view text) const;
  bool on_ = false;
};

}  // namespace muster::cli
