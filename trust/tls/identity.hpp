// Identity: what the common name of a certificate says about its holder. Pure.
//
//   node:NAME       the agent of that node
//   node:NAME:G     likewise, after a revocation: only the current generation G is accepted
//                   (core/trust.hpp)
//   join:ID:NAME    the holder of join token ID: may request that node's certificate once
//   pool:ID:POOL    the holder of a pool's join token, ID: may request certificates for nodes of
//                   that pool, as many as the token allows
//   coordinator:ID  the holder of a coordinator's token, ID: may copy the journal as a follower
//   coordinator:    a coordinator that has the authority's key, which is a row of the journal
//
// The name of a node or pool has no colon.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::tls {

// A name in the coordinator's certificate besides its host names. Agents and the command line
// expect it at whichever address they connect to.
inline constexpr char kServerName[] = "muster-coordinator";

struct Identity {
  enum class Kind : uint8_t { node, join, coordinator, pool };
  Kind kind = Kind::node;
  std::string node;         // name; pool: that of the pool
  std::string token;        // id; not of a node
  uint64_t generation = 0;  // node only

  static std::optional<Identity> parse(std::string_view common_name);
  std::string common_name() const;
  bool operator==(const Identity&) const = default;
};

// The nodes of a pool are called POOL-…
inline bool is_in_pool(std::string_view node, std::string_view pool) {
  return node.size() > pool.size() + 1 && node.starts_with(pool) && node[pool.size()] == '-';
}

inline std::optional<Identity> Identity::parse(std::string_view text) {
  constexpr std::string_view kNode = "node:", kJoin = "join:", kPool = "pool:",
                             kCoordinator = "coordinator:";
  if (text.starts_with(kCoordinator)) {
    text.remove_prefix(kCoordinator.size());
    if (text.find(':') != text.npos) return std::nullopt;
    return Identity{Kind::coordinator, "", std::string(text), 0};
  }
  const bool of_pool = text.starts_with(kPool), joins = of_pool || text.starts_with(kJoin);
  if (!joins && !text.starts_with(kNode)) return std::nullopt;
  text.remove_prefix(kNode.size());
  const size_t colon = text.find(':');
  const std::string_view first = text.substr(0, colon);
  const std::string_view second = colon == text.npos ? "" : text.substr(colon + 1);
  if (first.empty() || (second.empty() && (joins || colon != text.npos))) return std::nullopt;
  if (joins) {
    if (second.find(':') != second.npos) return std::nullopt;
    return Identity{of_pool ? Kind::pool : Kind::join, std::string(second), std::string(first), 0};
  }
  Identity who{Kind::node, std::string(first), "", 0};
  if (second.empty()) return who;
  const auto read = std::from_chars(second.data(), second.data() + second.size(), who.generation);
  if (read.ec != std::errc{} || read.ptr != second.data() + second.size() || who.generation == 0)
    return std::nullopt;
  return who;
}

inline std::string Identity::common_name() const {
  if (kind == Kind::coordinator) return "coordinator:" + token;
  if (kind == Kind::join) return "join:" + token + ":" + node;
  if (kind == Kind::pool) return "pool:" + token + ":" + node;
  return "node:" + node + (generation == 0 ? "" : ":" + std::to_string(generation));
}

}  // namespace muster::tls
