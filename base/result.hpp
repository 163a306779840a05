// Result: a value, or an error that the caller can act on.
//
// A function that can fail in a way its caller can handle returns Result<T>: the value, or an Error
// that says what the caller may do about it (Errc) and why. Outcomes of jobs and pods are data,
// never errors; bugs end the process (check.hpp).
#pragma once

#include "base/check.hpp"

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muster {

enum class Errc {
  invalid,      // the request breaks rules; `violations` lists all of them, or `message` says which
  not_found,    // no such object
  exists,       // an object of that name already exists
  conflict,     // the object changed since it was read
  unavailable,  // not possible now: not serving yet, not connected, the disk is full
  overloaded,   // a limit is exceeded; try again later
  foreign,      // for clients: what answered is not a coordinator, so asking again is no use
};

// One broken rule of a manifest. Kinds are those of job-semantics 1.6.
struct Violation {
  enum class Kind {
    required,
    invalid,
    not_supported,
    duplicate,
    not_found,
    too_many,
    too_long,
    forbidden
  };
  std::string path;  // "spec.template.spec.containers[0].name"
  Kind kind;
  std::string value;  // as JSON would print it; empty for required, too_long and forbidden
  std::string detail;

  bool operator==(const Violation&) const = default;
};

struct Error {
  Errc code;
  std::string message;
  std::vector<Violation> violations;
};

// An `invalid` error described by one message.
inline Error invalid(std::string message) {
  return {Errc::invalid, std::move(message), {}};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::move(error)) {}  // NOLINT
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() {
    MUSTER_CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const {
    MUSTER_CHECK(ok());
    return std::get<0>(state_);
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    MUSTER_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

struct Nothing {};
using Status = Result<Nothing>;

}  // namespace muster
