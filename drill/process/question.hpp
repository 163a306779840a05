// Question: one GET over a connection of its own, whose answer may be read much later. Shows what a
// process that was stopped answers when it goes on.
#pragma once

#include "base/clock.hpp"
#include "base/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace muster::cli::drill {

class Question {
 public:
  // To `address`, HOST:PORT of this machine, without TLS. Nothing: it cannot be sent, so it gets no
  // answer. A stopped process takes it: the kernel accepts the connection.
  static std::optional<Question> ask(const std::string& address, const std::string& path);

  Millis asked_ms() const { return asked_ms_; }  // boot clock
  // The first line of the answer; empty: the connection was closed or the time has passed without
  // one. Call it once.
  std::string answer(Millis patience_ms) const;

 private:
  Question(Fd socket, Millis asked_ms) : socket_(std::move(socket)), asked_ms_(asked_ms) {}
  Fd socket_;
  Millis asked_ms_;
};

}  // namespace muster::cli::drill
