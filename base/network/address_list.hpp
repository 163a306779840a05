// AddressList: where a service can be reached, and which of its addresses is in use.
//
// A round begins at the address in use and tries each of them once. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Splits a list of addresses at its commas, except those in the path of a Unix socket, where a
// `/` follows: "unix:/tmp/a,b/s". An empty entry is kept.
std::vector<std::string> split_addresses(std::string_view text);

// Whether this is HOST:PORT, with a port from 1 to 65535.
bool is_host_port(std::string_view address);

// The host of HOST:PORT or [V6]:PORT.
std::string address_host(const std::string& address);

class AddressList {
 public:
  // Requires at least one address.
  explicit AddressList(std::vector<std::string> all);

  const std::string& now() const { return all_[at_]; }  // the one in use
  bool several() const { return all_.size() > 1; }
  const std::vector<std::string>& all() const { return all_; }
  std::string text() const;  // "a, b or c"

  void begin_round() { tried_ = 0; }
  // The one in use does not serve; `why` replaces what was known of it. Turns to the one after it.
  // False: all of this round have been tried, and the next round begins.
  bool next(std::string why);
  // What became of each address: "a: connection refused; b: no route to host".
  std::string failures() const;

 private:
  std::vector<std::string> all_, why_;
  size_t at_ = 0, tried_ = 0;
};

}  // namespace muster
