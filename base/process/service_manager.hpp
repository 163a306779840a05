// ServiceManager: tells systemd how this daemon is, by the protocol of sd_notify(3): datagrams of
// NAME=VALUE lines to the Unix socket that $NOTIFY_SOCKET names.
//
// Without that variable there is no service manager, and all calls do nothing. A manager that does
// not read delays its daemon by at most a second.
#pragma once

#include "base/clock.hpp"

#include <string>

namespace muster {

class ServiceManager {
 public:
  ServiceManager() = default;  // none
  // The one in the environment. Removes its variables, so that no program that we start speaks for
  // us. Call before the first thread.
  static ServiceManager take();

  void ready() const;  // serving; clients may connect
  void alive() const;  // must be repeated; a daemon from which it is missing is killed
  void stopping() const;
  // Time between two calls of alive(), half of what the watchdog allows; 0: it need not be called.
  Millis alive_each_ms() const { return watchdog_ms_ / 2; }

 private:
  void send(const char* text) const;

  std::string socket_{};  // path, or '@' and the name of an abstract socket; empty: none
  Millis watchdog_ms_ = 0;
};

}  // namespace muster
