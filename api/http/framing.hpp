// Framing: where a request ends, and whether its connection does (RFC 9112, sections 6.3 and 9.6).
//
// KJ accepts a length with a sign, prefers Transfer-Encoding when there is a length too, and keeps
// a connection whose client asks it to be closed. Something in front of us may see such requests
// differently, and so other requests than we do.
#pragma once

#include <kj/compat/http.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace muster::api {

// Why the request is refused; nullopt: its end is unambiguous.
std::optional<std::string> refused_framing(std::optional<std::string_view> length,
                                           std::optional<std::string_view> encoding);

// Whether the value of a Connection header has the option "close".
bool asks_to_close(std::string_view connection);

// Has KJ announce, in the response that begins next, whether its connection closes.
class Closing final : public kj::HttpServerCallbacks {
 public:
  void next(bool closes) { closes_ = closes; }
  bool shouldClose() override { return std::exchange(closes_, false); }

 private:
  bool closes_ = false;
};

}  // namespace muster::api
