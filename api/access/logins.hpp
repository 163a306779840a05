// Logins: the codes by which the web page logs in (api/routes/access/login_routes.hpp). Pure.
#pragma once

#include "base/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace muster::api {

// The codes that have not been used.
class Logins {
 public:
  static constexpr Millis kLifeMs = 300'000;
  static constexpr size_t kMax = 1'000, kMaxOfOne = 10;

  struct Login {
    uint32_t uid = 0;
    std::string name;
    Millis expires_ms = 0;
    Millis token_until_ms = 0;  // when the token that it is exchanged for expires
    std::string parent{};       // the id of the token that asked for it; empty: none did
  };
  // False: there are too many.
  bool add(std::string code, Login login, Millis now_ms);
  // Uses the code up. Nothing: it is unknown, used or expired.
  std::optional<Login> take(const std::string& code, Millis now_ms);

 private:
  std::map<std::string, Login> open_;
};

}  // namespace muster::api
