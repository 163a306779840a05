#include "api/routes/pods/exec_routes.hpp"

#include "api/request/call.hpp"
#include "api/request/writes.hpp"
#include "api/routes/pods/exec_stream.hpp"
#include "api/routes/pods/pod_container.hpp"
#include "base/hex.hpp"

#include <kj/encoding.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace muster::api {
namespace {

constexpr size_t kSessionIdSize = 32;
constexpr size_t kWordsMax = 4'096;     // of a command
constexpr size_t kWordMax = 128 << 10;  // bytes with the terminator, as Linux limits them

constexpr const char* kSessionRule = "session: must be 32 hexadecimal digits, in lower case";

Status check_words(const std::vector<std::string>& words) {
  if (words.size() > kWordsMax)
    return invalid("command: must have at most " + std::to_string(kWordsMax) + " words");
  for (const std::string& word : words) {
    if (word.size() >= kWordMax) return invalid("command: a word must be shorter than 128 KiB");
    if (word.find('\0') != std::string::npos)
      return invalid("command: a word must not contain a NUL byte");
  }
  if (words.front().empty()) return invalid("command: the program must have a name");
  return Nothing{};
}

struct ExecBody {
  std::string session;
  std::vector<std::string> command;  // empty: `resume`
  bool input = false, terminal = false;
  std::string container{};  // empty: the first
};

Result<ExecBody> read_exec_body(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return invalid("the body must be a JSON object");
  for (const auto& [key, value] : json.items())
    if (key != "session" && key != "command" && key != "resume" && key != "stdin" && key != "tty" &&
        key != "container")
      return invalid("unknown field \"" + key + "\"");
  ExecBody exec{member_text(json, "session"), {}};
  for (const auto& [name, flag] : {std::pair{"stdin", &exec.input}, {"tty", &exec.terminal}}) {
    const Json value = json.value(name, Json(false));
    if (!value.is_boolean()) return invalid(std::string(name) + ": must be true or false");
    *flag = value.get<bool>();
  }
  if (exec.terminal && !exec.input) return invalid("tty: needs stdin");
  if (!is_hex(exec.session, kSessionIdSize)) return invalid(kSessionRule);
  if (const Json name = json.value("container", Json("")); name.is_string())
    exec.container = name.get<std::string>();
  else
    return invalid("container: must be a string");
  const auto words = json.find("command");
  if (json.value("resume", Json(false)) == Json(true)) {
    if (words != json.end()) return invalid("command: must not be given with resume");
    return exec;
  }
  if (words == json.end() || !words->is_array() || words->empty())
    return invalid("command: Required value: a list of the program and its arguments");
  for (const Json& word : *words) {
    if (!word.is_string()) return invalid("command: must be a list of strings");
    exec.command.push_back(word.get<std::string>());
  }
  if (Status sound = check_words(exec.command); !sound) return sound.error();
  return exec;
}

ExecSession session_of(const Exchange& exchange, const Target& pod, std::string id) {
  return {std::move(id), pod.ns, pod.name, exchange.caller.who.uid};
}

kj::Promise<void> send_failure(Exchange& exchange, const Target& pod, const Error& error) {
  // These messages are complete; others are worded as for any object.
  if (error.code == Errc::not_found) return exchange.send_status(404, "NotFound", error.message);
  if (error.code == Errc::conflict) return exchange.send_status(409, "Conflict", error.message);
  return exchange.send_error(error, "pods", pod.name);
}

std::string base64(const std::string& bytes) {
  return kj::encodeBase64({reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()}).cStr();
}

// Names the chosen container, as kubectl does.
std::string containers_text(const std::vector<core::Container>& containers) {
  std::string names;
  for (const core::Container& one : containers) names += (names.empty() ? "" : ", ") + one.name;
  return "the command runs in container " + containers.front().name + ", the first of " + names;
}

// Why the request is not upgraded to a WebSocket; empty: it can be.
std::string refused_upgrade(const Exchange& exchange) {
  if (exchange.upgrade.empty()) return "Upgrade request required";
  if (exchange.upgrade.find("SPDY") != std::string::npos)
    return "unable to upgrade: commands in pods need WebSockets, not SPDY: use kubectl 1.31 or "
           "later (1.29 and 1.30 with KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true), or muster exec";
  if (!exchange.websocket)
    return "unable to upgrade: must be a WebSocket (GET, Upgrade: websocket, "
           "Sec-WebSocket-Version: 13, Sec-WebSocket-Key)";
  if (!chosen_protocol(exchange.protocols))
    return "unable to upgrade: Sec-WebSocket-Protocol must offer v5.channel.k8s.io or "
           "v4.channel.k8s.io";
  return "";
}

OrderedJson exec_json(const char* kind) {
  return {{"kind", kind}, {"apiVersion", "muster.dev/v1"}};
}

}  // namespace

kj::Promise<void> ExecRoutes::start(Exchange& exchange, const Target& pod,
                                    const std::string& body) {
  auto exec = read_exec_body(body);
  if (!exec.ok()) return exchange.bad(exec.error().message);
  const auto shown = view_.pod(pod.ns, pod.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "pods", pod.name);
  if (!shown->pod->started_at && !shown->pod->ended)
    return exchange.send_status(409, "Conflict", "pod " + pod.name + " has not started yet");
  const core::PodTemplate& spec = shown->job->spec().pod;
  if (exec->container.empty() && !spec.containers.empty()) {
    if (spec.containers.size() > 1) exchange.warnings.push_back(containers_text(spec.containers));
    exec->container = spec.containers.front().name;
  }
  const auto container = chosen_container(spec, exec->container, pod.name);
  if (!container) return exchange.bad(container.error().message);
  ExecRequest request{session_of(exchange, pod, exec->session),
                      shown->pod->node,
                      PodId{shown->job->id(), shown->pod->key.index, shown->pod->key.attempt},
                      shown->job->object_ptr(),
                      std::move(exec->command),
                      exec->input,
                      exec->terminal,
                      static_cast<uint16_t>(container->position)};
  // Even a pod that has ended may still have a session that the client asks for again.
  const bool ended = shown->pod->ended;
  auto call = new_call<Result<ExecStarted>>();
  backend_.exec(std::move(request), std::move(call.done));
  return call.promise.then([&exchange, pod, ended, name = container->name,
                            session = exec->session](Result<ExecStarted> started) {
    if (!started.ok() && ended)
      return exchange.send_status(409, "Conflict", "pod " + pod.name + " has ended");
    if (!started.ok()) return send_failure(exchange, pod, started.error());
    OrderedJson json = exec_json("Exec");
    json["session"] = session;
    json["container"] = name;
    return exchange.send(201, dumped(json) + "\n");
  });
}

kj::Promise<void> ExecRoutes::read(Exchange& exchange, const Target& pod) {
  const std::string id = exchange.url.get("session");
  if (!is_hex(id, kSessionIdSize)) return exchange.bad(kSessionRule);
  ExecRead request{.session = session_of(exchange, pod, id)};
  for (auto [name, field] : {std::pair{"stdout", &request.out}, {"stderr", &request.err}}) {
    const std::string text = exchange.url.get(name);
    if (text.empty()) continue;
    const auto n = whole_number<uint64_t>(text);
    if (!n)
      return exchange.bad(std::string(name) + ": must be a number of bytes: \"" + text + "\"");
    *field = *n;
  }
  auto call = new_call<Result<ExecOutput>>();
  backend_.read_exec(std::move(request), std::move(call.done));
  return call.promise.then([&exchange, pod](Result<ExecOutput> output) {
    if (!output.ok()) return send_failure(exchange, pod, output.error());
    OrderedJson json = exec_json("ExecOutput");
    json["stdout"] = base64(output->out);
    json["stderr"] = base64(output->err);
    json["ended"] = output->ended;
    if (output->ended) json["exitCode"] = output->exit_code;
    if (!output->message.empty()) json["message"] = output->message;
    return exchange.send(200, dumped(json) + "\n");
  });
}

kj::Promise<void> ExecRoutes::write(Exchange& exchange, const Target& pod,
                                    const std::string& body) {
  const std::string id = exchange.url.get("session"), offset = exchange.url.get("offset"),
                    eof = exchange.url.get("eof");
  if (!is_hex(id, kSessionIdSize)) return exchange.bad(kSessionRule);
  const auto n = whole_number<uint64_t>(offset);
  if (!n) return exchange.bad("offset: must be a number of bytes: \"" + offset + "\"");
  if (!eof.empty() && eof != "0" && eof != "1") return exchange.bad("eof: must be 0 or 1");
  auto call = new_call<Result<ExecTaken>>();
  backend_.write_exec({session_of(exchange, pod, id), *n, body, eof == "1"}, std::move(call.done));
  return call.promise.then([&exchange, pod](Result<ExecTaken> taken) {
    if (!taken.ok()) return send_failure(exchange, pod, taken.error());
    OrderedJson json = exec_json("ExecInput");
    json["taken"] = taken->bytes;
    json["closed"] = taken->closed;
    return exchange.send(200, dumped(json) + "\n");
  });
}

kj::Promise<void> ExecRoutes::end(Exchange& exchange, const Target& pod) {
  const std::string id = exchange.url.get("session");
  if (!is_hex(id, kSessionIdSize)) return exchange.bad(kSessionRule);
  Call call = new_call();
  backend_.end_exec(session_of(exchange, pod, id), std::move(call.done));
  return call.promise.then([&exchange, pod](const Status& ended) {
    if (!ended.ok()) return send_failure(exchange, pod, ended.error());
    return exchange.send(200, dumped(success_json()) + "\n");
  });
}

// What is wrong with the command is reported before a refused upgrade: kubectl shows the answer to
// its last attempt, which is SPDY.
kj::Promise<void> ExecRoutes::stream(Exchange& exchange, const Target& pod) {
  const auto shown = view_.pod(pod.ns, pod.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "pods", pod.name);
  const Url& url = exchange.url;
  const core::PodTemplate& spec = shown->job->spec().pod;
  const auto container = chosen_container(spec, url.get("container"), pod.name);
  if (!container) return exchange.bad(container.error().message);
  std::vector<std::string> command = url.all("command");
  if (command.empty())
    return exchange.bad("you must specify at least one command for the container");
  if (Status sound = check_words(command); !sound) return exchange.bad(sound.error().message);
  const bool terminal = url.flag("tty");
  RemoteWishes wishes{chosen_protocol(exchange.protocols).value_or(RemoteProtocol{}),
                      url.flag("stdin"), url.flag("stdout"), url.flag("stderr") && !terminal};
  if (!wishes.in && !wishes.out && !wishes.err)
    return exchange.bad("you must specify at least 1 of stdin, stdout, stderr");
  if (!shown->pod->bound())
    return exchange.bad("pod " + pod.name + " does not have a host assigned");
  if (shown->pod->ended || !shown->pod->started_at)
    return exchange.send_status(
        409, "Conflict",
        "pod " + pod.name + (shown->pod->ended ? " has ended" : " has not started yet"));
  if (const std::string why = refused_upgrade(exchange); !why.empty()) return exchange.bad(why);
  std::string id = random_uid();
  std::erase(id, '-');
  ExecRequest request{session_of(exchange, pod, std::move(id)),
                      shown->pod->node,
                      PodId{shown->job->id(), shown->pod->key.index, shown->pod->key.attempt},
                      shown->job->object_ptr(),
                      std::move(command),
                      wishes.in || terminal,
                      terminal,
                      static_cast<uint16_t>(container->position)};
  auto stream = kj::heap<ExecStream>(streams_, exchange, backend_, std::move(request), wishes);
  auto running = stream->run();
  return running.attach(kj::mv(stream));
}

}  // namespace muster::api
