// What a coordinator that does not lead its cluster answers to a request: 503, a Status with this
// reason, and the leader's address in a header if it is known. Nothing has been done then, so a
// client may ask another coordinator.
#pragma once

namespace muster {

inline constexpr char kNotLeader[] = "NotLeader";
inline constexpr char kLeaderHeader[] = "Muster-Leader";  // https://HOST:PORT

}  // namespace muster
