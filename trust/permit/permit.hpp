// Permit: the coordinator's signed permission for a node to run a job's pods as the job's owner.
//
// A keeper that starts processes of several users runs as root and takes orders from an agent that
// does not. So it starts nothing on the agent's word: the coordinator signs (Ed25519) what runs, as
// whom, on which node and until when. The agent passes that on, and the keeper builds the command
// line, environment and file names from it. The agent adds only numbers: index, attempt, container,
// devices.
//
// The signed bytes are the bytes that are read: there is no other encoding, and nothing is parsed
// before the signature is verified.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "core/node/pod_template.hpp"
#include "core/spec/fields/owner.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// A command that joins a container of one pod while that runs (`muster exec`, muster-rsh).
struct PermitSession {
  uint32_t index = 0, attempt = 0;
  uint16_t container = 0;
  std::string id;  // unguessable; each is started once
  std::vector<std::string> command;
  bool input = false, terminal = false;  // what it reads; a terminal only with input
};

// With `session`, it covers only that session, not the job's pods.
struct Permit {
  std::string cluster;  // id
  std::string node;     // name
  Millis until_ms = 0;  // wall clock; nothing starts at or after it
  core::Owner owner;
  core::node::PodTemplate job;  // without `plan` and `wire`
  std::optional<PermitSession> session{};
};
using PermitPtr = std::shared_ptr<const Permit>;

// Without `job`, the template is part of the bytes, in a form that earlier keepers read. With it,
// these are the template's bytes (core/node/template_codec.hpp), which are not; the signature is
// that of both, one after the other.
std::string permit_bytes(const Permit& permit, std::string_view job = {});
// `invalid`: not a permit. Call it with verified bytes only.
Result<Permit> read_permit(std::string_view bytes, std::string_view job = {});

// A key pair for signatures; the private half never leaves the coordinator.
class PermitKey {
 public:
  // From 64 hexadecimal digits; `invalid` if they are not a key.
  static Result<PermitKey> of_private(const std::string& hex);
  std::string public_hex() const;
  std::string sign(std::string_view bytes) const;  // 64 bytes

 private:
  explicit PermitKey(std::string seed) : seed_(std::move(seed)) {}
  std::string seed_;
};

// Whether the holder of the private key signed these bytes.
bool verify_permit(const std::string& public_hex, std::string_view bytes,
                   std::string_view signature);

}  // namespace muster
