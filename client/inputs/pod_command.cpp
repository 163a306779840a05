#include "client/inputs/pod_command.hpp"

#include "base/secret.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/text.hpp"

#include <kj/encoding.h>

#include <algorithm>

namespace muster::cli {
namespace {

constexpr size_t kSessionBytes = 16;

Result<std::string> decoded(const std::string& base64) {
  auto bytes = kj::decodeBase64(kj::ArrayPtr<const char>(base64.data(), base64.size()));
  if (bytes.hadErrors)
    return Error{Errc::unavailable, "the coordinator sent output that is not base64", {}};
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

Status must_be_ok(const Result<Response>& answer) {
  if (!answer) return answer.error();
  if (!answer->ok()) return refusal(*answer);
  return Nothing{};
}

}  // namespace

PodCommand::PodCommand(const std::string& ns, const std::string& pod)
    : session_(random_hex(kSessionBytes)),
      path_("/apis/muster.dev/v1/namespaces/" + url_encoded(ns) + "/pods/" + url_encoded(pod) +
            "/exec") {}

Result<Response> PodCommand::start(ApiClient& client, const std::vector<std::string>& words,
                                   Reads reads, const std::string& container) const {
  Json body{{"session", session_}, {"command", words}};
  if (reads != Reads::nothing) body["stdin"] = true;  // earlier coordinators do not know it
  if (reads == Reads::terminal) body["tty"] = true;
  if (!container.empty()) body["container"] = container;
  auto answer = client.post(path_, dumped(body));
  if (Status may = must_be_ok(answer); !may) return may.error();
  return answer;
}

Status PodCommand::resume(ApiClient& client) const {
  return must_be_ok(client.post(path_, dumped(Json{{"session", session_}, {"resume", true}})));
}

Result<CommandOutput> PodCommand::read(ApiClient& client, uint64_t out, uint64_t err) const {
  auto answer = client.get(path_ + "?session=" + session_ + "&stdout=" + std::to_string(out) +
                           "&stderr=" + std::to_string(err));
  if (Status may = must_be_ok(answer); !may) return may.error();
  const Json& json = answer->json;
  auto one = decoded(text_at(json, {"stdout"})), other = decoded(text_at(json, {"stderr"}));
  if (!one) return one.error();
  if (!other) return other.error();
  return CommandOutput{std::move(*one), std::move(*other), at(json, {"ended"}) == Json(true),
                       static_cast<int>(number_at(json, {"exitCode"})), text_at(json, {"message"})};
}

Result<CommandTaken> PodCommand::write(ApiClient& client, uint64_t offset, const std::string& data,
                                       bool eof) const {
  auto answer = client.put(
      path_ + "?session=" + session_ + "&offset=" + std::to_string(offset) + (eof ? "&eof=1" : ""),
      data);
  if (Status may = must_be_ok(answer); !may) return may.error();
  const Json& json = answer->json;
  return CommandTaken{static_cast<uint64_t>(std::max<int64_t>(0, number_at(json, {"taken"}))),
                      at(json, {"closed"}) == Json(true)};
}

Status PodCommand::end(ApiClient& client) const {
  return must_be_ok(client.remove(path_ + "?session=" + session_, ""));
}

}  // namespace muster::cli
