#include "client/terminal/exit_codes.hpp"

#include "base/log.hpp"

#include <iostream>

namespace muster::cli {

int fail(int code, const std::string& message) {
  std::cout.flush();
  std::cerr << "muster: " << message << "\n";
  return code;
}

std::string error_text(const Error& error, const std::string& what) {
  std::string text;
  const bool lines = error.message.empty() && !error.violations.empty();
  if (!lines) text = "muster: " + (what.empty() ? "" : what + ": ") + error.message + "\n";
  for (const Violation& v : error.violations)
    text += (lines ? "muster: " : "  ") + v.path + (v.path.empty() ? "" : ": ") + v.detail + "\n";
  return text;
}

int fail(const Error& error, const std::string& what) {
  std::cout.flush();
  std::cerr << error_text(error, what);
  return exit_code(error.code);
}

int fail_daemon(const Error& error, const std::string& what) {
  std::cout.flush();
  log::say_error(error_text(error, what));
  return exit_code(error.code);
}

Exit exit_code(Errc code) {
  switch (code) {
    case Errc::not_found:
      return kNotFound;
    case Errc::unavailable:
    case Errc::foreign:
      return kUnreachable;
    case Errc::invalid:
    case Errc::exists:
    case Errc::conflict:
    case Errc::overloaded:
      return kRejected;
  }
  return kRejected;
}

}  // namespace muster::cli
