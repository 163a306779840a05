#include "api/request/body.hpp"

#include "api/kube/schema/protobuf.hpp"
#include "base/printable.hpp"
#include "base/text/json_text.hpp"
#include "base/text/yaml.hpp"

#include <algorithm>

namespace muster::api {

Result<std::string> body_json(const std::string& body, const std::string& content_type) {
  if (content_type.starts_with(kProtobufType)) return protobuf_to_json(body);
  if (content_type.find("yaml") == std::string::npos) return body;
  if (is_json_object(body)) return body;  // its reader reports what is wrong with it
  if (auto fits = check_yaml_body(body); !fits.ok()) return fits.error();
  auto documents = yaml_to_json(body, {.json_bytes = 1u << 20, .visits = 4 * kYamlTokensMax});
  if (!documents.ok()) return documents.error();
  if (documents->size() != 1)
    return invalid("the body must be one object, not " + std::to_string(documents->size()) +
                   " documents");
  return documents->front();
}

Result<nlohmann::json> own_fields(const std::string& body,
                                  const std::vector<std::string_view>& known) {
  auto json = body.empty() ? nlohmann::json::object() : nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) return invalid("the body must be a JSON object");
  for (const auto& [key, value] : json.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      return invalid("unknown field \"" + key + "\"");
  return json;
}

std::string reason_line(const std::string& text) {
  std::string line;
  for (const char c : text)
    if (c != '\n' && c != '\r' && c != '\t')
      line += c;
    else if (!line.ends_with(' '))
      line += ' ';
  if (line.ends_with(' ')) line.pop_back();
  return visible(line);
}

std::optional<PatchType> patch_type(const std::string& content_type) {
  const std::string type = content_type.substr(0, content_type.find(';'));
  if (type == "application/merge-patch+json") return PatchType::merge;
  if (type == "application/json-patch+json") return PatchType::json;
  if (type == "application/strategic-merge-patch+json") return PatchType::strategic;
  if (type == "application/apply-patch+yaml") return PatchType::apply;
  return std::nullopt;
}

}  // namespace muster::api
