// What clients of kubectl's exec say and hear on a WebSocket. Pure.
//
//   message  := channel:u8 bytes            binary, or text with the same bytes
//   channel  := 0 stdin | 1 stdout | 2 stderr
//             | 3 the result: a Status, as the last message
//             | 4 the size of the client's window: {"Width": W, "Height": H}
//             | 255 since v5: the channel that follows has ended, such as 0 at the end of stdin
//
// The server begins with an empty message, and ends with the result and a Close.
#pragma once

#include "base/terminal_input.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

enum class Channel : uint8_t { in = 0, out = 1, err = 2, result = 3, size = 4, end = 255 };

struct RemoteProtocol {
  std::string_view name;
  bool ends = false;  // it has Channel::end
};
// The best of those that a client offers in Sec-WebSocket-Protocol; nullopt: none is known.
std::optional<RemoteProtocol> chosen_protocol(std::string_view offered);

// A message to a client.
std::string remote_message(Channel channel, std::string_view bytes);

// The result of a command that ended with this code, or could not run (`lost`) for this reason.
std::string exit_status(int code);
std::string lost_status(const std::string& why);

// A new size of the window; nullopt: it is malformed.
std::optional<TerminalInput> read_window(std::string_view json);

}  // namespace muster::api
