#include "api/api_types.hpp"

#include "api/json.hpp"
#include "api/resources.hpp"
#include "api/yaml.hpp"
#include "base/check.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace muster::api {
namespace {

constexpr std::array<std::string_view, 8> kPlain = {"string", "bool",      "int32",    "int64",
                                                    "time",   "microtime", "quantity", "any"};

// The package of each file, as Kubernetes names its schemas.
std::string package_of(std::string_view file) {
  if (file == "meta") return "io.k8s.apimachinery.pkg.apis.meta.v1";
  if (file == "pod") return "io.k8s.api.core.v1";
  return "io.k8s.api." + std::string(file) + ".v1";
}

// NAME[!] TYPE [NUMBER] [by KEY[,KEY] | set | merged]
ApiField field_of(const std::string& line, std::string about) {
  auto parts = words(line);
  MUSTER_CHECK(parts.size() >= 2, line);
  ApiField field{.name = parts[0], .type = parts[1], .about = std::move(about)};
  if (field.name.ends_with('!')) {
    field.required = true;
    field.name.pop_back();
  }
  field.list = field.type.starts_with("[]");
  field.map = field.type.starts_with("{}");
  if (field.list || field.map) field.type.erase(0, 2);
  parts.erase(parts.begin(), parts.begin() + 2);
  if (!parts.empty() && std::isdigit(static_cast<unsigned char>(parts[0][0]))) {
    std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), field.number);
    parts.erase(parts.begin());
  }
  if (parts.empty()) return field;
  MUSTER_CHECK(field.list, line);
  if (parts[0] == "by") {
    MUSTER_CHECK(parts.size() == 2, line);
    std::replace(parts[1].begin(), parts[1].end(), ',', ' ');
    field.keys = words(parts[1]);
    field.merged = true;
  } else {
    field.set = true;
    field.merged = parts[0] == "merged";
    MUSTER_CHECK(parts.size() == 1 && (field.merged || parts[0] == "set"), line);
  }
  return field;
}

}  // namespace

bool is_api_type(std::string_view type) {
  return std::find(kPlain.begin(), kPlain.end(), type) == kPlain.end();
}

const std::map<std::string, ApiType, std::less<>>& api_types() {
  static const auto kTypes = [] {
    std::map<std::string, ApiType, std::less<>> types;
    for (const OpenApiFile& file : openapi_files()) {
      const auto texts = yaml_to_json(std::string(file.text));
      MUSTER_CHECK(texts.ok() && texts->size() == 1, file.name);
      const OrderedJson json = OrderedJson::parse(texts->front(), nullptr, false);
      MUSTER_CHECK(json.is_object(), file.name);
      for (const auto& [name, lines] : json.items()) {
        const std::string kind = name.substr(0, name.find('.'));
        ApiType type{.name = name, .kind = kind, .schema = package_of(file.name) + "." + kind};
        for (const auto& [line, text] : lines.items()) {
          MUSTER_CHECK(text.is_string(), name, line);
          if (line == "about")
            type.about = text.get<std::string>();
          else if (line == "kind")
            type.group_version = text.get<std::string>();
          else
            type.fields.push_back(field_of(line, text.get<std::string>()));
        }
        MUSTER_CHECK(types.emplace(name, std::move(type)).second, name);
      }
    }
    for (const auto& [name, type] : types)
      for (const ApiField& field : type.fields)
        MUSTER_CHECK(!is_api_type(field.type) || types.contains(field.type), name, field.name);
    return types;
  }();
  return kTypes;
}

const ApiType* api_kind(std::string_view group_version, std::string_view kind) {
  for (const auto& [name, type] : api_types())
    if (type.kind == kind && type.group_version == group_version) return &type;
  return nullptr;
}

}  // namespace muster::api
