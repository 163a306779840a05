// The encoding of protobuf: fields of a message, each with its number, as varints or with a length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

inline void add_varint(std::string& out, uint64_t n) {
  for (; n >= 0x80; n >>= 7) out += static_cast<char>((n & 0x7f) | 0x80);
  out += static_cast<char>(n);
}

// Adds a number or a bool. A negative one is written as its two's complement.
inline void add_number(std::string& out, unsigned field, uint64_t n) {
  add_varint(out, uint64_t{field} << 3);
  add_varint(out, n);
}

// Adds a string or a message.
inline void add_bytes(std::string& out, unsigned field, std::string_view bytes) {
  constexpr unsigned kLengthDelimited = 2;
  add_varint(out, uint64_t{field} << 3 | kLengthDelimited);
  add_varint(out, bytes.size());
  out += bytes;
}

// One field of a message, as encoded.
struct WireField {
  unsigned number = 0;
  bool is_bytes = false;
  uint64_t value = 0;      // of a number
  std::string_view bytes;  // of a string or message
};

// Takes one field after the other off a message.
class WireReader {
 public:
  explicit WireReader(std::string_view left) : left_(left) {}
  bool done() const { return left_.empty(); }

  // Nothing if the message is malformed.
  std::optional<WireField> next() {
    const auto tag = varint();
    if (!tag || (*tag >> 3) == 0 || (*tag >> 3) > UINT32_MAX) return std::nullopt;
    WireField field{.number = static_cast<unsigned>(*tag >> 3)};
    switch (*tag & 7) {
      case 0: {
        const auto value = varint();
        if (!value) return std::nullopt;
        field.value = *value;
        return field;
      }
      case 1:
        return skip(8) ? std::optional(field) : std::nullopt;
      case 2: {
        const auto size = varint();
        if (!size || *size > left_.size()) return std::nullopt;
        field.is_bytes = true;
        field.bytes = left_.substr(0, *size);
        left_.remove_prefix(*size);
        return field;
      }
      case 5:
        return skip(4) ? std::optional(field) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

 private:
  bool skip(size_t size) {
    if (left_.size() < size) return false;
    left_.remove_prefix(size);
    return true;
  }
  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::string_view left_;
};

}  // namespace muster::api
