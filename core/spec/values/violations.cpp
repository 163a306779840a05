#include "core/spec/values/violations.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace muster::core {
namespace {

// More errors than this help no one, and the response would grow with the manifest.
constexpr size_t kReportedMax = 100;

}  // namespace

std::string item(const std::string& path, size_t i) {
  return path + "[" + std::to_string(i) + "]";
}

std::string json_quoted(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 0xf];
    } else {
      out += c;
    }
  }
  return out + '"';
}

void Violations::add(std::string path, Violation::Kind kind, std::string value,
                     std::string detail) {
  if (list_.size() >= kReportedMax) return;
  list_.push_back({std::move(path), kind, std::move(value), std::move(detail)});
}

void Violations::required(std::string path, std::string detail) {
  add(std::move(path), Violation::Kind::required, "", std::move(detail));
}

void Violations::invalid(std::string path, int64_t value, std::string detail) {
  add(std::move(path), Violation::Kind::invalid, std::to_string(value), std::move(detail));
}

void Violations::invalid(std::string path, std::string_view value, std::string detail) {
  add(std::move(path), Violation::Kind::invalid, json_quoted(value), std::move(detail));
}

void Violations::invalid_object(std::string path, std::string detail) {
  add(std::move(path), Violation::Kind::invalid, "", std::move(detail));
}

void Violations::not_supported(std::string path, std::string_view value,
                               std::initializer_list<std::string_view> supported) {
  std::string detail = "supported values: ";
  for (bool first = true; std::string_view name : supported) {
    if (!std::exchange(first, false)) detail += ", ";
    detail += json_quoted(name);
  }
  add(std::move(path), Violation::Kind::not_supported, json_quoted(value), std::move(detail));
}

void Violations::duplicate(std::string path, int64_t value) {
  add(std::move(path), Violation::Kind::duplicate, std::to_string(value), "");
}

void Violations::duplicate(std::string path, std::string_view value) {
  add(std::move(path), Violation::Kind::duplicate, json_quoted(value), "");
}

void Violations::not_found(std::string path, std::string_view value) {
  add(std::move(path), Violation::Kind::not_found, json_quoted(value), "");
}

void Violations::too_many(std::string path, size_t found, size_t most) {
  add(std::move(path), Violation::Kind::too_many, std::to_string(found),
      "must have at most " + std::to_string(most) + " items");
}

void Violations::too_long(std::string path, size_t most_bytes) {
  add(std::move(path), Violation::Kind::too_long, "",
      "may not be more than " + std::to_string(most_bytes) + " bytes");
}

void Violations::forbidden(std::string path, std::string detail) {
  add(std::move(path), Violation::Kind::forbidden, "", std::move(detail));
}

void Violations::nonnegative(std::string path, int64_t value) {
  if (value < 0) invalid(std::move(path), value, "must be greater than or equal to 0");
}

void Violations::append(Violations other) {
  append(std::move(other.list_));
}

void Violations::append(std::vector<Violation> others) {
  const size_t more = std::min(others.size(), kReportedMax - list_.size());
  list_.insert(list_.end(), std::make_move_iterator(others.begin()),
               std::make_move_iterator(others.begin() + static_cast<ptrdiff_t>(more)));
}

}  // namespace muster::core
