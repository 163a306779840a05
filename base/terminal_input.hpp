// TerminalInput: the input of a command with a terminal. Keystrokes and window sizes share one
// stream, so they arrive in order and relays need not know about windows. The client writes it
// (client/inputs/user_terminal.hpp), and the process that holds the terminal reads it
// (keeper/start/terminal.hpp).
//
//   stream := open (data | size)*                its end: the user's terminal is gone
//   frame  := type:u8 length:u16 payload         length: of the payload; numbers are big-endian
//   open   := rows:u16 columns:u16 TERM          TERM: the variable's value; empty: left as it is
//   data   := bytes
//   size   := rows:u16 columns:u16
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

struct TerminalInput {
  enum class Type : uint8_t { open = 1, data = 2, size = 3 };
  static constexpr size_t kHead = 3, kPayloadMax = 0xffff, kTermMax = 256;

  Type type = Type::data;
  uint16_t rows = 0, columns = 0;  // of open and size
  std::string bytes{};             // of open: TERM; of data: the bytes

  // Whether `text` is acceptable as TERM: short, printable ASCII, no spaces.
  static bool is_term(std::string_view text) {
    return text.size() <= kTermMax &&
           std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
  }

  // `bytes` of more than kPayloadMax become several frames.
  void write(std::string& out) const {
    std::string_view rest = bytes;
    do {
      std::string payload;
      if (type != Type::data) {
        put(payload, rows);
        put(payload, columns);
      }
      const std::string_view part = rest.substr(0, kPayloadMax - payload.size());
      payload += part;
      rest.remove_prefix(part.size());
      out += static_cast<char>(type);
      put(out, static_cast<uint16_t>(payload.size()));
      out += payload;
    } while (!rest.empty());
  }

  enum class Found { frame, more, broken };
  // Takes the first frame from `in`. `more`: the frame is incomplete.
  static Found read(std::string& in, TerminalInput& frame) {
    if (in.size() < kHead) return Found::more;
    const size_t length = get(in, 1);
    const auto type = static_cast<Type>(in[0]);
    const size_t numbers = type == Type::data ? 0 : 4;
    if (type < Type::open || type > Type::size || length < numbers ||
        (type == Type::size && length != numbers))
      return Found::broken;
    if (in.size() < kHead + length) return Found::more;
    frame = {type, 0, 0, in.substr(kHead + numbers, length - numbers)};
    if (numbers > 0) {
      frame.rows = get(in, kHead);
      frame.columns = get(in, kHead + 2);
    }
    in.erase(0, kHead + length);
    return type == Type::open && !is_term(frame.bytes) ? Found::broken : Found::frame;
  }

 private:
  static void put(std::string& out, uint16_t value) {
    out += static_cast<char>(value >> 8);
    out += static_cast<char>(value & 0xff);
  }
  static uint16_t get(std::string_view in, size_t at) {
    return static_cast<uint16_t>(static_cast<unsigned char>(in[at]) << 8 |
                                 static_cast<unsigned char>(in[at + 1]));
  }
};

}  // namespace muster
