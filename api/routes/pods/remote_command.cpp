#include "api/routes/pods/remote_command.hpp"

#include "base/text/json.hpp"

#include <algorithm>

namespace muster::api {
namespace {

constexpr RemoteProtocol kProtocols[] = {{"v5.channel.k8s.io", true}, {"v4.channel.k8s.io", false}};

bool offers(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), one.size() + 1));
    const size_t begin = std::min(one.find_first_not_of(" \t"), one.size());
    one = one.substr(begin, one.find_last_not_of(" \t") + 1 - begin);
    if (one == name) return true;
  }
  return false;
}

}  // namespace

std::optional<RemoteProtocol> chosen_protocol(std::string_view offered) {
  for (const RemoteProtocol& one : kProtocols)
    if (offers(offered, one.name)) return one;
  return std::nullopt;
}

std::string remote_message(Channel channel, std::string_view bytes) {
  std::string message(1, static_cast<char>(channel));
  return message.append(bytes);
}

std::string exit_status(int code) {
  OrderedJson status = {{"metadata", OrderedJson::object()}, {"status", "Success"}};
  if (code != 0) {
    const std::string number = std::to_string(code);
    status["status"] = "Failure";
    status["message"] = "command terminated with non-zero exit code: exit code " + number;
    status["reason"] = "NonZeroExitCode";
    status["details"]["causes"] =
        OrderedJson::array({{{"reason", "ExitCode"}, {"message", number}}});
  }
  return dumped(status);
}

std::string lost_status(const std::string& why) {
  return dumped(OrderedJson{{"metadata", OrderedJson::object()},
                            {"status", "Failure"},
                            {"message", "Internal error occurred: " + why},
                            {"reason", "InternalError"},
                            {"details", {{"causes", OrderedJson::array({{{"message", why}}})}}},
                            {"code", 500}});
}

std::optional<TerminalInput> read_window(std::string_view json) {
  const Json size = Json::parse(json, nullptr, false);
  if (!size.is_object()) return std::nullopt;
  TerminalInput window{.type = TerminalInput::Type::size};
  for (const auto& [name, field] :
       {std::pair{"Width", &window.columns}, std::pair{"Height", &window.rows}}) {
    const auto found = size.find(name);
    if (found == size.end() || !found->is_number_unsigned()) return std::nullopt;
    if (*found > 0xffff) return std::nullopt;
    *field = found->get<uint16_t>();
  }
  return window;
}

}  // namespace muster::api
