#include "cli/discovery.hpp"

#include "api/yaml.hpp"
#include "cli/files.hpp"
#include "cli/json.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace muster::cli {
namespace {

Error invalid(std::string message) {
  return Error{Errc::invalid, std::move(message), {}};
}

Result<std::string> api_of_config(const std::string& path) {
  auto text = read_file(path);
  if (!text) return text.error();
  auto documents = api::yaml_to_json(*text);
  if (!documents) return invalid(path + ": " + documents.error().message);
  if (documents->empty()) return std::string();
  const Json config = parse_json(documents->front());
  if (!config.is_object()) return invalid(path + ": must be a map such as `api: 127.0.0.1:7117`");
  return text_at(config, {"api"});
}

}  // namespace

Result<std::string> normal_address(const std::string& text) {
  std::string address = text;
  if (address.rfind("https://", 0) == 0)
    return invalid("`" + text + "`: only http is spoken here, write HOST:PORT");
  if (address.rfind("http://", 0) == 0) address.erase(0, 7);
  while (!address.empty() && address.back() == '/') address.pop_back();
  const auto is_number = [](const std::string& s) {
    return !s.empty() && s.size() <= 5 &&
           std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
           std::stoi(s) > 0 && std::stoi(s) <= 65535;
  };
  if (is_number(address)) return "127.0.0.1:" + address;
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || address.find('/') != std::string::npos ||
      !is_number(address.substr(colon + 1))) {
    return invalid("`" + text + "` is no address: write HOST:PORT, such as " + kDefaultApi);
  }
  return address;
}

Result<Endpoint> discover(const std::string& flag,
                          const std::function<const char*(const char*)>& env) {
  std::string address, origin;
  if (!flag.empty()) {
    address = flag, origin = "--api";
  } else if (const char* api = env("MUSTER_API"); api != nullptr && *api != '\0') {
    address = api, origin = "MUSTER_API";
  } else {
    const char* base = env("XDG_CONFIG_HOME");
    const char* home = env("HOME");
    std::string dir = base != nullptr && *base != '\0' ? base
                      : home != nullptr                ? std::string(home) + "/.config"
                                                       : "";
    const std::string path = dir + "/muster/config.yaml";
    std::error_code ignored;
    if (!dir.empty() && std::filesystem::exists(path, ignored)) {
      auto api = api_of_config(path);
      if (!api) return api.error();
      if (!api->empty()) address = *api, origin = path;
    }
  }
  if (address.empty())
    return Endpoint{kDefaultApi, "the default; --api or MUSTER_API name another"};
  auto normal = normal_address(address);
  if (!normal) return invalid(origin + ": " + normal.error().message);
  return Endpoint{*normal, "from " + origin};
}

Result<std::unique_ptr<ApiClient>> connect(const std::string& flag) {
  auto endpoint = discover(flag, [](const char* name) -> const char* { return std::getenv(name); });
  if (!endpoint) return endpoint.error();
  return std::make_unique<ApiClient>(endpoint->address, endpoint->origin);
}

}  // namespace muster::cli
