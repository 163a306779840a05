// Violations: the rules that a manifest violates, in the order of the reference. Only the first 100
// are kept.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::core {

// A JSON string: quoted and escaped.
std::string json_quoted(std::string_view text);

// "path[i]"
std::string item(const std::string& path, size_t i);

class Violations {
 public:
  void required(std::string path, std::string detail = "");
  void invalid(std::string path, int64_t value, std::string detail);
  void invalid(std::string path, std::string_view value, std::string detail);
  // For an object that is invalid as a whole. Its text is omitted: it would only obscure the error.
  void invalid_object(std::string path, std::string detail);
  void not_supported(std::string path, std::string_view value,
                     std::initializer_list<std::string_view> supported);
  void duplicate(std::string path, int64_t value);
  void duplicate(std::string path, std::string_view value);
  void not_found(std::string path, std::string_view value);
  void too_many(std::string path, size_t found, size_t most);
  void too_long(std::string path, size_t most_bytes);
  void forbidden(std::string path, std::string detail);

  // "must be greater than or equal to 0"
  void nonnegative(std::string path, int64_t value);

  bool empty() const { return list_.empty(); }
  const std::vector<Violation>& list() const { return list_; }
  std::vector<Violation> take() { return std::move(list_); }
  void append(Violations other);
  void append(std::vector<Violation> others);

 private:
  void add(std::string path, Violation::Kind kind, std::string value, std::string detail);

  std::vector<Violation> list_;
};

}  // namespace muster::core
