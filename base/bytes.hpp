// Bytes: how numbers and texts are encoded on the keeper's socket and in its spool.
//
// Numbers are in the machine's own byte order: neither socket nor spool ever leaves its machine. A
// text is its length (32 bits), its bytes, and a zero, so that a received text can be passed to
// execve in place. Also the checksums of the files on disk.
//
// Invariants: a Reader never reads outside its bytes; after the first value that does not fit, ok()
// is false and every value read is zero or empty.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace muster {

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  template <std::integral T>
  Writer& num(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Writer& text(std::string_view value) {
    num(static_cast<uint32_t>(value.size()));
    out_.append(value);
    out_.push_back('\0');
    return *this;
  }
  // Appends what another Writer wrote.
  Writer& written(std::string_view bytes) {
    out_.append(bytes);
    return *this;
  }

 private:
  std::string& out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <std::integral T>
  T num() {
    T value{};
    if (!has(sizeof value)) return value;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  // Its data() is NUL-terminated.
  std::string_view text() {
    size_t size = num<uint32_t>();
    if (!has(size + 1) || rest_[size] != '\0') {
      ok_ = false;
      return std::string_view("");
    }
    std::string_view value = rest_.substr(0, size);
    rest_.remove_prefix(size + 1);
    return value;
  }
  std::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }

 private:
  bool has(size_t size) {
    if (rest_.size() < size) ok_ = false;
    return ok_;
  }
  std::string_view rest_;
  bool ok_ = true;
};

// CRC-32 as in zip and Ethernet (polynomial 0xedb88320).
inline uint32_t crc32(std::string_view bytes) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
      table[i] = value;
    }
    return table;
  }();
  uint32_t crc = ~0u;
  for (unsigned char byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ byte) & 0xff];
  return ~crc;
}

// FNV-1a, 64 bits. `hash`: of what comes before `bytes`.
inline constexpr uint64_t kFnvBasis = 0xcbf29ce484222325;
constexpr uint64_t fnv1a(std::string_view bytes, uint64_t hash = kFnvBasis) {
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace muster
