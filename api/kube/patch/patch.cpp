#include "api/kube/patch/patch.hpp"

#include "api/kube/patch/json_patch.hpp"
#include "api/kube/schema/api_types.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr std::string_view kDeleteFrom = "$deleteFromPrimitiveList/";
constexpr std::string_view kOrder = "$setElementOrder/";

const MergedList* merged_list(std::string_view field) {
  for (const MergedList& list : merged_lists())
    if (list.field == field) return &list;
  return nullptr;
}

struct Strategic {
  std::string problem{};

  static std::string_view directive(const json& value) {
    if (!value.is_object()) return "";
    auto it = value.find("$patch");
    if (it == value.end() || !it->is_string()) return "";
    return it->get_ref<const std::string&>();
  }

  json merge(json base, const json& patch) {
    if (!patch.is_object()) return patch;
    const std::string_view how = directive(patch);
    if (how == "replace") {
      json whole = patch;
      whole.erase("$patch");
      return whole;
    }
    if (how == "delete") return json::object();
    if (!how.empty() && how != "merge")
      problem = "$patch: \"" + std::string(how) + "\" is not a directive";
    if (!base.is_object()) base = json::object();
    if (auto keep = patch.find("$retainKeys"); keep != patch.end()) {
      const std::set<json> kept(keep->begin(), keep->end());
      for (auto it = base.begin(); it != base.end();)
        it = kept.contains(it.key()) ? std::next(it) : base.erase(it);
    }
    for (const auto& [name, value] : patch.items()) {
      if (name == "$patch" || name == "$retainKeys" || name.starts_with(kOrder)) continue;
      if (name.starts_with(kDeleteFrom)) {
        take_out(base, name.substr(kDeleteFrom.size()), value);
      } else if (value.is_null() || directive(value) == "delete") {
        base.erase(name);
      } else if (value.is_object()) {
        json& member = base[name];
        member = merge(std::move(member), value);
      } else if (const MergedList* list = value.is_array() ? merged_list(name) : nullptr) {
        json& member = base[name];
        member = merge_list(std::move(member), value, *list);
      } else {
        base[name] = value;
      }
    }
    return base;
  }

  static void take_out(json& base, const std::string& field, const json& values) {
    auto list = base.find(field);
    if (list == base.end() || !list->is_array() || !values.is_array()) return;
    const std::set<json> out(values.begin(), values.end());
    json kept = json::array();
    for (json& one : *list)
      if (!out.contains(one)) kept.push_back(std::move(one));
    *list = std::move(kept);
  }

  json merge_list(json base, const json& patch, const MergedList& how) {
    if (!base.is_array()) base = json::array();
    bool replace = std::any_of(patch.begin(), patch.end(),
                               [](const json& one) { return directive(one) == "replace"; });
    if (replace) {
      json list = json::array();
      for (const json& one : patch)
        if (directive(one) != "replace") list.push_back(one);
      return list;
    }
    return how.key.empty() ? merge_set(std::move(base), patch)
                           : merge_keyed(std::move(base), patch, std::string(how.key));
  }

  static json merge_set(json base, const json& patch) {
    std::set<json> there(base.begin(), base.end());
    for (const json& one : patch)
      if (there.insert(one).second) base.push_back(one);
    return base;
  }

  json merge_keyed(json base, const json& patch, const std::string& key) {
    std::map<json, size_t> places;  // of each key's first element
    for (size_t i = 0; i < base.size(); ++i)
      if (base[i].is_object() && base[i].contains(key)) places.emplace(base[i][key], i);
    std::vector<bool> gone(base.size());
    for (const json& one : patch) {
      if (!one.is_object() || !one.contains(key)) {
        if (problem.empty()) problem = "map: " + short_text(one) + kNoKey + key;
        continue;
      }
      auto same = places.find(one[key]);
      if (directive(one) == "delete") {
        if (same == places.end()) continue;
        gone[same->second] = true;
        places.erase(same);
      } else if (same != places.end()) {
        json& old = base[same->second];
        old = merge(std::move(old), one);
      } else {
        places.emplace(one[key], base.size());
        base.push_back(merge(json::object(), one));
        gone.push_back(false);
      }
    }
    json kept = json::array();
    for (size_t i = 0; i < base.size(); ++i)
      if (!gone[i]) kept.push_back(std::move(base[i]));
    return kept;
  }

  static constexpr const char* kNoKey = " does not contain declared merge key: ";

  static std::string short_text(const json& value) {
    constexpr size_t kShown = 1024;  // bytes
    std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() > kShown) text = text.substr(0, kShown) + "…";
    return text;
  }
};

}  // namespace

Result<json> apply_patch(PatchType type, json base, const json& patch) {
  MUSTER_CHECK(type != PatchType::apply);
  if (type == PatchType::json) return apply_operations(std::move(base), patch);
  if (!patch.is_object()) return invalid("a patch must be an object");
  if (type == PatchType::merge) {
    base.merge_patch(patch);
    return base;
  }
  Strategic strategic;
  json merged = strategic.merge(std::move(base), patch);
  if (!strategic.problem.empty()) return invalid(strategic.problem);
  return merged;
}

}  // namespace muster::api
