// ExecStream: a command in a pod for a client on a WebSocket, such as kubectl's exec and cp.
//
// The command is a session like that of `muster exec` (ADR 33), with the same limits; the server
// reads and writes it in place of the client. Its output is on its node, so a client that reads
// slowly holds up only itself, and an agent that restarts is waited for. Input is read from the
// client only while little of it waits for the command.
//
// The session ends with this object, whatever the reason.
#pragma once

#include "api/request/backend.hpp"
#include "api/request/exchange.hpp"
#include "api/request/streams.hpp"
#include "api/routes/pods/remote_command.hpp"

#include <kj/async.h>
#include <kj/compat/http.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::api {

struct RemoteWishes {
  RemoteProtocol protocol;
  bool in = false, out = false, err = false;  // the streams that the client wants
};

class ExecStream {
 public:
  static constexpr size_t kMessageMax = 256 << 10;  // bytes of a message from the client

  // The command starts with run(). The request's `session` must be new.
  ExecStream(StreamContext& context, Exchange& exchange, Backend& backend, ExecRequest request,
             RemoteWishes wishes)
      : context_(context),
        exchange_(exchange),
        backend_(backend),
        request_(std::move(request)),
        wishes_(wishes),
        who_(exchange.who()) {}
  ~ExecStream();
  ExecStream(const ExecStream&) = delete;
  ExecStream& operator=(const ExecStream&) = delete;

  // Until the result is sent or the client is gone. The WebSocket is gone then.
  kj::Promise<void> run();

 private:
  kj::Promise<void> start();
  // From the client.
  kj::Promise<void> receive();
  void take(std::string_view message);
  kj::Promise<void> took(size_t bytes);
  void open_terminal(TerminalInput window);
  kj::Promise<void> room();
  void input_changed();
  // To the command.
  kj::Promise<void> pass_input();
  kj::Promise<void> input_taken(const Result<ExecTaken>& taken, size_t sent);
  // To the client.
  kj::Promise<void> pass_output();
  kj::Promise<void> show(const ExecOutput& output);
  kj::Promise<void> find_again(const Error& failure);
  kj::Promise<void> finish(std::string status);
  kj::Promise<void> send(Channel channel, std::string_view bytes);
  kj::Promise<void> send_nothing();  // an empty message
  // Resolves when the client is gone or must go; meanwhile keeps the session of a slow one in use.
  kj::Promise<void> watch_over();

  StreamContext& context_;
  Exchange& exchange_;
  Backend& backend_;
  ExecRequest request_;
  const RemoteWishes wishes_;
  const std::string who_;
  kj::Own<kj::WebSocket> socket_;
  bool asked_ = false;                                                // the session may exist
  const std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);  // this object is
  size_t loose_ = 0;  // bytes received lately that belong to no message

  std::string input_;                                       // from `taken_` on
  uint64_t taken_ = 0;                                      // bytes of input
  bool input_ends_ = false;                                 // after `input_`
  bool input_over_ = false;                                 // the command takes no more
  bool terminal_open_ = false;                              // its first frame is in the input
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> waiting_;  // for changes of the input
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> full_;     // waits for room in `input_`

  uint64_t out_ = 0, err_ = 0;  // bytes sent
  std::optional<Millis> failing_since_;
  Millis read_at_ = 0;
};

}  // namespace muster::api
