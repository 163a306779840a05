#include "api/patch.hpp"

#include <algorithm>
#include <string>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr std::string_view kDeleteFrom = "$deleteFromPrimitiveList/";
constexpr std::string_view kOrder = "$setElementOrder/";

struct ListRow {
  std::string_view field;
  std::string_view key;  // empty: a set of plain values
};
// Kubernetes' patchStrategy "merge" of what a Job, a Pod and a Node hold; other lists are replaced.
constexpr ListRow kLists[] = {
    {"containers", "name"},
    {"initContainers", "name"},
    {"ephemeralContainers", "name"},
    {"env", "name"},
    {"volumes", "name"},
    {"volumeMounts", "mountPath"},
    {"volumeDevices", "devicePath"},
    {"ports", "containerPort"},
    {"imagePullSecrets", "name"},
    {"hostAliases", "ip"},
    {"topologySpreadConstraints", "topologyKey"},
    {"conditions", "type"},
    {"ownerReferences", "uid"},
    {"addresses", "type"},
    {"finalizers", ""},
    {"podIPs", "ip"},
};

const ListRow* list_row(std::string_view field) {
  for (const ListRow& row : kLists)
    if (row.field == field) return &row;
  return nullptr;
}

Error wrong(std::string message) {
  return {Errc::invalid, std::move(message), {}};
}

struct Strategic {
  std::string problem{};

  static std::string directive(const json& value) {
    if (!value.is_object()) return "";
    auto it = value.find("$patch");
    return it == value.end() || !it->is_string() ? "" : it->get<std::string>();
  }

  json merge(json base, json patch) {
    if (!patch.is_object()) return patch;
    std::string how = directive(patch);
    patch.erase("$patch");
    if (how == "replace") return patch;
    if (how == "delete") return json::object();
    if (!how.empty() && how != "merge") problem = "$patch: \"" + how + "\" is no directive";
    if (!base.is_object()) base = json::object();
    if (auto keep = patch.find("$retainKeys"); keep != patch.end()) {
      for (auto it = base.begin(); it != base.end();)
        it = std::find(keep->begin(), keep->end(), it.key()) == keep->end() ? base.erase(it)
                                                                            : std::next(it);
      patch.erase(keep);
    }
    for (auto& [name, value] : patch.items()) {
      if (name.starts_with(kOrder)) continue;
      if (name.starts_with(kDeleteFrom)) {
        take_out(base, name.substr(kDeleteFrom.size()), value);
      } else if (value.is_null()) {
        base.erase(name);
      } else if (directive(value) == "delete") {
        base.erase(name);
      } else if (value.is_object()) {
        json old = base.contains(name) ? base[name] : json();
        base[name] = merge(std::move(old), value);
      } else if (value.is_array() && list_row(name)) {
        json old = base.contains(name) ? base[name] : json::array();
        base[name] = merge_list(std::move(old), value, *list_row(name));
      } else {
        base[name] = value;
      }
    }
    return base;
  }

  static void take_out(json& base, const std::string& field, const json& values) {
    auto list = base.find(field);
    if (list == base.end() || !list->is_array() || !values.is_array()) return;
    json kept = json::array();
    for (const json& one : *list)
      if (std::find(values.begin(), values.end(), one) == values.end()) kept.push_back(one);
    *list = std::move(kept);
  }

  json merge_list(json base, const json& patch, const ListRow& row) {
    if (!base.is_array()) base = json::array();
    bool replace = std::any_of(patch.begin(), patch.end(),
                               [](const json& one) { return directive(one) == "replace"; });
    if (replace) {
      json list = json::array();
      for (const json& one : patch)
        if (directive(one) != "replace") list.push_back(one);
      return list;
    }
    for (const json& one : patch) {
      if (row.key.empty()) {
        if (std::find(base.begin(), base.end(), one) == base.end()) base.push_back(one);
        continue;
      }
      const std::string key(row.key);
      if (!one.is_object() || !one.contains(key)) {
        problem = "map: " + one.dump(-1, ' ', false, json::error_handler_t::replace) +
                  " does not contain declared merge key: " + key;
        continue;
      }
      auto same = std::find_if(base.begin(), base.end(), [&one, &key](const json& old) {
        return old.is_object() && old.contains(key) && old[key] == one[key];
      });
      if (directive(one) == "delete") {
        if (same != base.end()) base.erase(same);
      } else if (same != base.end()) {
        *same = merge(*same, one);
      } else {
        base.push_back(merge(json::object(), one));
      }
    }
    return base;
  }
};

Result<json> apply_operations(const json& base, const json& patch) {
  if (!patch.is_array()) return wrong("a JSON patch has to be a list of operations (RFC 6902)");
  // The library tells what is wrong by throwing; this is where that ends.
  try {
    return base.patch(patch);
  } catch (const json::exception& e) {
    std::string text = e.what();
    size_t end = text.find("] ");
    return wrong("the JSON patch can't be applied: " +
                 (end == std::string::npos ? text : text.substr(end + 2)));
  }
}

}  // namespace

Result<json> apply_patch(PatchType type, json base, const json& patch) {
  MUSTER_CHECK(type != PatchType::apply);
  if (type == PatchType::json) return apply_operations(base, patch);
  if (!patch.is_object()) return wrong("a patch has to be an object");
  if (type == PatchType::merge) {
    base.merge_patch(patch);
    return base;
  }
  Strategic strategic;
  json merged = strategic.merge(std::move(base), patch);
  if (!strategic.problem.empty()) return wrong(strategic.problem);
  return merged;
}

}  // namespace muster::api
