// MailDesk: gives mail to the site's sendmail, which the coordinator runs as its own user.
//
// One message at a time, on a thread of its own, since a mail system may take its time. The program
// gets the addresses as arguments and the message on standard input, as sendmail(8) and its
// replacements (Postfix, Exim, msmtp) take them. What it prints is reported if it fails.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "coordinator/threads/workshop.hpp"

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace muster::coordinator {

class MailDesk {
 public:
  // `program`: its path; empty: there is no mail. `patience_ms`: for one message; then the program
  // is killed.
  explicit MailDesk(std::string program, Millis patience_ms = 60'000)
      : program_(std::move(program)), patience_ms_(patience_ms) {}

  bool open() const { return !program_.empty(); }
  // `done` is called on the desk's thread. unavailable: the program could not be run or has failed.
  void send(std::vector<std::string> to, std::string message, std::function<void(Status)> done);
  // Kills the program if it is running.
  void stop();

 private:
  Status deliver(const std::vector<std::string>& to, const std::string& message) const;

  const std::string program_;
  const Millis patience_ms_;
  std::atomic<bool> stopped_{false};
  Workshop work_;
};

}  // namespace muster::coordinator
