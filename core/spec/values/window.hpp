// Window: a time in which a node is reserved, as an annotation of the Node says.
//
// What it means for pods is in core/cluster/nodes/windows.hpp.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::core {

// "reservation.muster.dev/NAME". Its value is "from=TIME until=TIME", then if there are any
// "users=A,B", "groups=NAME:GID,…", "by=USER" and "reason=TEXT", which goes to the end.
inline constexpr std::string_view kWindowKeys = "reservation.muster.dev/";

struct Window {
  std::string name;
  Millis from_ms = 0, until_ms = 0;  // wall clock
  std::vector<std::string> users{};
  std::vector<std::pair<std::string, uint32_t>> groups{};  // name and gid
  std::string by{};                                        // who made it
  std::string reason{};                                    // may be empty
  bool maintenance() const { return users.empty() && groups.empty(); }
  bool operator==(const Window&) const = default;
};

std::string window_text(const Window& window);
// nullopt: it is malformed; then `wrong` says why.
std::optional<Window> read_window(std::string_view name, std::string_view text, std::string& wrong);
// Of a node's annotations. Malformed ones, which no client can write, are left out.
std::vector<Window> windows_of(const std::map<std::string, std::string>& annotations);
// Notes who made the windows of `now` that `before` does not have. Call it with valid ones.
void sign_windows(const std::map<std::string, std::string>& before,
                  std::map<std::string, std::string>& now, const std::string& by);

}  // namespace muster::core
