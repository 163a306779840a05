#include "api/routes/pods/exec_stream.hpp"

#include "api/request/call.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"

#include <kj/debug.h>

#include <algorithm>
#include <utility>

namespace muster::api {
namespace {

constexpr size_t kInputMax = 256 << 10;  // beyond that, nothing is read from the client
constexpr size_t kLooseMax = 4 * Pace::kReadMax;
constexpr size_t kLoosePerLook = 1 << 10;
constexpr uint32_t kReadMax = 64 << 10;  // bytes of each stream read at a time
constexpr Millis kTryAgainMs = 200;      // while an agent restarts
constexpr Millis kAbsenceMax = 60'000;   // of a node, before the command is given up
constexpr Millis kLookMs = 1'000;        // between checks that the client is still there
constexpr Millis kKeepAliveMs = 10'000;  // a session that is not read for a minute is ended
constexpr Millis kCloseMs = 10'000;      // for the client to close after the result
constexpr Millis kWindowMs = 1'000;      // for the client to say how large its window is
constexpr uint16_t kNormalClosure = 1000;
constexpr int kNotStarted = 255;
constexpr const char* kTerm = "xterm";  // as in Kubernetes

bool may_come_back(Errc code) {
  return code == Errc::unavailable || code == Errc::overloaded || code == Errc::not_found;
}

kj::Duration lasting(Millis time) {
  return time * kj::MILLISECONDS;
}

// Whether it did not start, or nobody knows how it ended.
bool was_lost(const ExecOutput& output) {
  return output.exit_code == kNotStarted && !output.message.empty();
}

}  // namespace

ExecStream::~ExecStream() {
  exchange_.peer.pace->took = nullptr;
  *gone_ = true;
  if (asked_) backend_.end_exec(request_.session, [](const Status&) {});
}

kj::Promise<void> ExecStream::run() {
  socket_ = exchange_.accept_websocket(wishes_.protocol.name);
  read_at_ = boot_now();
  exchange_.peer.pace->took = [this](size_t bytes) { return took(bytes); };
  // As in Kubernetes, tells the client that it is connected.
  auto talking = send_nothing().then([this] { return start(); }).then([this] {
    return context_.timer.afterDelay(lasting(kCloseMs));
  });
  return talking.exclusiveJoin(kj::evalNow([this] { return receive(); }))
      .exclusiveJoin(watch_over())
      .then([this] { socket_ = nullptr; },
            [this](kj::Exception&& failure) {
              // KJ would answer with HTTP on the WebSocket.
              log::debug("a WebSocket ended: {}", failure.getDescription().cStr());
              socket_ = nullptr;
            });
}

kj::Promise<void> ExecStream::start() {
  auto call = new_call<Result<ExecStarted>>();
  asked_ = true;
  // If the client leaves meanwhile, the session is ended once it exists.
  backend_.exec(request_, [&backend = backend_, session = request_.session, gone = gone_,
                           done = std::move(call.done)](Result<ExecStarted> started) {
    if (*gone) backend.end_exec(session, [](Status) {});
    done(std::move(started));
  });
  return call.promise.then([this](Result<ExecStarted> started) -> kj::Promise<void> {
    if (!started.ok()) return finish(lost_status(started.error().message));
    request_.command.clear();  // from now on it is only looked up
    auto opening =
        context_.timer.afterDelay(lasting(request_.terminal ? kWindowMs : 0)).then([this] {
          if (request_.terminal) open_terminal({});
          return kj::Promise<void>(kj::NEVER_DONE);
        });
    return pass_output().exclusiveJoin(pass_input()).exclusiveJoin(kj::mv(opening));
  });
}

// ---- from the client

kj::Promise<void> ExecStream::receive() {
  return socket_->receive(kMessageMax)
      .then([this](kj::WebSocket::Message&& message) -> kj::Promise<void> {
        KJ_SWITCH_ONEOF(message) {
          KJ_CASE_ONEOF(text, kj::String) {
            take({text.begin(), text.size()});
          }
          KJ_CASE_ONEOF(bytes, kj::Array<kj::byte>) {
            take({reinterpret_cast<const char*>(bytes.begin()), bytes.size()});
          }
          KJ_CASE_ONEOF(close, kj::WebSocket::Close) {
            return kj::READY_NOW;
          }
        }
        loose_ = 0;
        return room().then([this] { return receive(); });
      });
}

// A client that sends without a pause must not keep others waiting. KJ links the answers to pings
// into a chain until something is sent, and keeps fragments, so neither may be without end.
kj::Promise<void> ExecStream::took(size_t bytes) {
  loose_ += bytes;
  if (loose_ > kLooseMax) return KJ_EXCEPTION(DISCONNECTED, "frames without a message");
  return context_.turn(who_);
}

// Messages on other channels are ignored, as Kubernetes does.
void ExecStream::take(std::string_view message) {
  if (message.empty() || input_over_) return;
  const auto channel = static_cast<Channel>(message[0]);
  message.remove_prefix(1);
  if (channel == Channel::in && wishes_.in && !input_ends_) {
    if (request_.terminal) {
      open_terminal({});
      if (!message.empty()) TerminalInput{.bytes = std::string(message)}.write(input_);
    } else {
      input_ += message;
    }
  } else if (channel == Channel::size && request_.terminal) {
    auto window = read_window(message);
    if (!window) return;
    const bool first = !terminal_open_;
    open_terminal(*window);
    if (!first) window->write(input_);
  } else if (channel == Channel::end && wishes_.protocol.ends && !request_.terminal) {
    // The end of a terminal's input would hang it up.
    input_ends_ = input_ends_ || message == std::string_view("\0", 1);
  } else {
    return;
  }
  input_changed();
}

void ExecStream::open_terminal(TerminalInput window) {
  if (std::exchange(terminal_open_, true)) return;
  window.type = TerminalInput::Type::open;
  window.bytes = kTerm;
  window.write(input_);
  input_changed();
}

void ExecStream::input_changed() {
  KJ_IF_MAYBE (waiting, waiting_) (*waiting)->fulfill();
  waiting_ = nullptr;
}

kj::Promise<void> ExecStream::room() {
  if (input_.size() < kInputMax || input_over_) return kj::READY_NOW;
  auto paf = kj::newPromiseAndFulfiller<void>();
  full_ = kj::mv(paf.fulfiller);
  return kj::mv(paf.promise);
}

// ---- to the command

// Never resolves: the output says when the command is over.
kj::Promise<void> ExecStream::pass_input() {
  if (input_over_) return kj::NEVER_DONE;
  if (input_.empty() && !input_ends_) {
    auto paf = kj::newPromiseAndFulfiller<void>();
    waiting_ = kj::mv(paf.fulfiller);
    return paf.promise.then([this] { return pass_input(); });
  }
  std::string part = input_.substr(0, kExecWriteMax);
  const size_t size = part.size();
  auto call = new_call<Result<ExecTaken>>();
  backend_.write_exec(
      {request_.session, taken_, std::move(part), input_ends_ && size == input_.size()},
      std::move(call.done));
  return call.promise.then(
      [this, size](const Result<ExecTaken>& taken) { return input_taken(taken, size); });
}

kj::Promise<void> ExecStream::input_taken(const Result<ExecTaken>& taken, size_t sent) {
  if (!taken.ok() && may_come_back(taken.error().code))
    return context_.timer.afterDelay(lasting(kTryAgainMs)).then([this] { return pass_input(); });
  input_over_ = !taken.ok() || taken->closed;
  if (input_over_) {
    input_.clear();
  } else {
    const uint64_t now = std::clamp(taken->bytes, taken_, taken_ + sent);
    input_.erase(0, now - taken_);
    taken_ = now;
  }
  if (input_over_ || input_.size() < kInputMax) {
    KJ_IF_MAYBE (full, full_) (*full)->fulfill();
    full_ = nullptr;
  }
  return pass_input();
}

// ---- to the client

kj::Promise<void> ExecStream::pass_output() {
  auto call = new_call<Result<ExecOutput>>();
  backend_.read_exec({.session = request_.session, .out = out_, .err = err_, .limit = kReadMax},
                     std::move(call.done));
  return call.promise.then([this](Result<ExecOutput> output) -> kj::Promise<void> {
    if (!output.ok()) return find_again(output.error());
    failing_since_.reset();
    read_at_ = boot_now();
    auto kept = kj::heap<ExecOutput>(std::move(*output));
    std::optional<std::string> result;
    if (kept->ended)
      result = was_lost(*kept) ? lost_status(kept->message) : exit_status(kept->exit_code);
    // What was read is kept only until it has been sent.
    return show(*kept)
        .attach(kj::mv(kept))
        .then([this, result = std::move(result)]() mutable -> kj::Promise<void> {
          return result ? finish(std::move(*result)) : pass_output();
        });
  });
}

kj::Promise<void> ExecStream::show(const ExecOutput& output) {
  out_ += output.out.size();
  err_ += output.err.size();
  const bool out = wishes_.out && !output.out.empty(), err = wishes_.err && !output.err.empty();
  kj::Promise<void> sent = kj::READY_NOW;
  // KJ sends the answers to pings with the next message.
  if (!out && !err && !output.ended) sent = send_nothing();
  if (out) sent = send(Channel::out, output.out);
  if (err) sent = sent.then([this, &output] { return send(Channel::err, output.err); });
  // Why it could not be started.
  if (output.ended && !was_lost(output) && wishes_.err && !output.message.empty())
    sent = sent.then([this, &output] { return send(Channel::err, output.message + "\n"); });
  return sent;
}

// After a failed read: its node may come back, with the command.
kj::Promise<void> ExecStream::find_again(const Error& failure) {
  if (!failing_since_) failing_since_ = boot_now();
  const std::string unknown = "the exit code of the command is not known: ";
  if (!may_come_back(failure.code) || boot_now() - *failing_since_ > kAbsenceMax)
    return finish(lost_status(unknown + failure.message));
  auto call = new_call<Result<ExecStarted>>();
  backend_.exec(request_, std::move(call.done));
  return call.promise.then([this, unknown](Result<ExecStarted> found) -> kj::Promise<void> {
    if (!found.ok() && found.error().code != Errc::unavailable &&
        found.error().code != Errc::overloaded)
      return finish(lost_status(unknown + found.error().message));
    return context_.timer.afterDelay(lasting(kTryAgainMs)).then([this] { return pass_output(); });
  });
}

kj::Promise<void> ExecStream::finish(std::string status) {
  input_over_ = true;  // what the client still sends is dropped
  KJ_IF_MAYBE (full, full_) (*full)->fulfill();
  full_ = nullptr;
  auto kept = kj::heap<std::string>(std::move(status));
  auto sent = send(Channel::result, *kept).then([this] {
    exchange_.finished();
    return socket_->close(kNormalClosure, "");
  });
  return sent.attach(kj::mv(kept));
}

kj::Promise<void> ExecStream::send(Channel channel, std::string_view bytes) {
  auto message = kj::heap<std::string>(remote_message(channel, bytes));
  auto sent = socket_->send(
      kj::arrayPtr(reinterpret_cast<const kj::byte*>(message->data()), message->size()));
  return sent.attach(kj::mv(message));
}

kj::Promise<void> ExecStream::send_nothing() {
  return send(wishes_.out ? Channel::out : wishes_.err ? Channel::err : Channel::result, {});
}

kj::Promise<void> ExecStream::watch_over() {
  return context_.timer.afterDelay(lasting(kLookMs)).then([this]() -> kj::Promise<void> {
    if (context_.draining || exchange_.expired || exchange_.client_gone()) return kj::READY_NOW;
    loose_ -= std::min(loose_, kLoosePerLook);
    if (asked_ && boot_now() - read_at_ >= kKeepAliveMs) {
      read_at_ = boot_now();
      backend_.read_exec({.session = request_.session, .out = out_, .err = err_, .limit = 1},
                         [](const Result<ExecOutput>&) {});
    }
    return watch_over();
  });
}

}  // namespace muster::api
