#include "api/kube/patch/managed_fields.hpp"

#include "base/text/json.hpp"
#include "base/text/json_text.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr size_t kFieldTextMax = 1024;  // bytes of a name, version or time

const json* managed_list(const json& object) {
  auto meta = object.find("metadata");
  if (meta == object.end() || !meta->is_object()) return nullptr;
  auto list = meta->find("managedFields");
  return list == meta->end() || !list->is_array() ? nullptr : &*list;
}

void forget_managers(json& object) {
  auto meta = object.find("metadata");
  if (meta != object.end() && meta->is_object()) meta->erase("managedFields");
}

bool resets(const json& object) {
  const json* list = managed_list(object);
  return list && list->size() == 1 && list->front() == json::object();
}

bool read_text(const json& from, const char* name, std::string& to) {
  auto it = from.find(name);
  if (it == from.end()) return true;
  if (!it->is_string() || it->get_ref<const std::string&>().size() > kFieldTextMax) return false;
  to = it->get<std::string>();
  return true;
}

bool read_manager(const json& from, Manager& to) {
  std::string operation, kind = "FieldsV1";
  if (!from.is_object() || !read_text(from, "manager", to.name) ||
      !read_text(from, "apiVersion", to.api_version) || !read_text(from, "time", to.time) ||
      !read_text(from, "subresource", to.subresource) || !read_text(from, "operation", operation) ||
      !read_text(from, "fieldsType", kind))
    return false;
  if ((operation != "Apply" && operation != "Update") || kind != "FieldsV1") return false;
  to.applies = operation == "Apply";
  auto fields = from.find("fieldsV1");
  if (fields == from.end()) return true;
  auto set = from_fields_v1(*fields);
  if (set) to.fields = std::move(*set);
  return set.has_value();
}

bool same_manager(const Manager& a, const Manager& b) {
  return std::tie(a.name, a.applies, a.subresource) == std::tie(b.name, b.applies, b.subresource);
}

// The fields without a manager: those that identify the object, and those that the server sets.
FieldSet make_nobodys() {
  FieldSet set;
  for (const char* name : {"apiVersion", "kind", "status"})
    set.children["f:" + std::string(name)].member = true;
  FieldSet& meta = set.children["f:metadata"];
  meta.member = true;
  for (const char* name :
       {"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
        "managedFields", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"})
    meta.children["f:" + std::string(name)].member = true;
  return set;
}

const FieldSet& nobodys() {
  static const FieldSet set = make_nobodys();
  return set;
}

// A copy without the fields that have no manager.
json stripped(json object) {
  if (!object.is_object()) return json::object();
  const FieldSet& out = nobodys();
  for (const auto& [element, child] : out.children)
    if (child.children.empty()) object.erase(element.substr(2));
  if (auto meta = object.find("metadata"); meta != object.end() && meta->is_object())
    for (const auto& [element, child] : out.below("f:metadata").children)
      meta->erase(element.substr(2));
  return object;
}

FieldSet owned_fields(const FieldType& type, const json& object) {
  return without(fields_of(type, object), nobodys());
}

Manager& manager_of(std::vector<Manager>& managers, const Writer& writer, bool applies) {
  Manager wanted{writer.name, writer.api_version, writer.now, writer.subresource, applies, {}};
  for (Manager& one : managers)
    if (same_manager(one, wanted)) return one;
  return managers.emplace_back(std::move(wanted));
}

void drop_idle(std::vector<Manager>& managers) {
  std::erase_if(managers, [](const Manager& one) { return one.fields.empty(); });
}

// Takes the changed and removed fields from all managers except `writer`.
void take_from_others(std::vector<Manager>& managers, const Manager& writer,
                      const Comparison& change) {
  if (managers.size() == 1) return;
  const FieldSet taken = united(united(change.added, change.modified), change.removed);
  for (Manager& one : managers)
    if (!same_manager(one, writer)) one.fields = without(std::move(one.fields), taken);
}

void cap_updates(std::vector<Manager>& managers) {
  auto updates = std::count_if(managers.begin(), managers.end(),
                               [](const Manager& one) { return !one.applies; });
  if (updates <= static_cast<ptrdiff_t>(kUpdateManagersMax)) return;
  std::stable_sort(managers.begin(), managers.end(), [](const Manager& a, const Manager& b) {
    return std::tie(a.applies, a.time) < std::tie(b.applies, b.time);
  });
  // The oldest are in front. Merge those beyond the bound, and one more to make room for the
  // result.
  const auto many = updates - static_cast<ptrdiff_t>(kUpdateManagersMax) + 1;
  Manager ancient{.name = "ancient-changes", .api_version = managers[0].api_version};
  for (auto it = managers.begin(); it != managers.begin() + many; ++it) {
    ancient.fields = united(std::move(ancient.fields), it->fields);
    ancient.time = std::max(ancient.time, it->time);
  }
  managers.erase(managers.begin(), managers.begin() + many);
  managers.push_back(std::move(ancient));
}

std::string manager_text(const Manager& manager) {
  std::string text = json(manager.name).dump(-1, ' ', false, json::error_handler_t::replace);
  if (!manager.subresource.empty()) text += " with subresource \"" + manager.subresource + "\"";
  if (!manager.applies) text += " using " + manager.api_version;
  return text;
}

struct Conflict {
  std::string manager, path;
};

Error conflict_error(const std::vector<Conflict>& conflicts) {
  Error error{Errc::conflict, "Apply failed with ", {}};
  if (conflicts.size() == 1) {
    error.message += "1 conflict: conflict with " + conflicts[0].manager + ": " + conflicts[0].path;
  } else {
    error.message += std::to_string(conflicts.size()) + " conflicts: ";
    std::string last;
    for (const Conflict& one : conflicts) {
      const bool first = last.empty();
      if (one.manager != last)
        error.message += (first ? "" : "\n") + ("conflicts with " + one.manager + ":");
      last = one.manager;
      error.message += "\n- " + one.path;
    }
  }
  for (const Conflict& one : conflicts)
    error.violations.push_back(
        {one.path, Violation::Kind::forbidden, "", "conflict with " + one.manager});
  return error;
}

// Fields of other managers that this change would set to a different value, except those in `but`.
std::vector<Conflict> conflicts_of(const std::vector<Manager>& managers, const Manager& writer,
                                   const Comparison& change, const FieldSet& but) {
  std::vector<Conflict> found;
  constexpr size_t kConflictsMax = 1000;  // listed in the error
  const FieldSet set = united(change.added, change.modified);
  for (const Manager& one : managers) {
    if (same_manager(one, writer)) continue;
    if (found.size() >= kConflictsMax) break;
    for (std::string& path :
         paths(without(common(one.fields, set), but), kConflictsMax - found.size()))
      found.push_back({manager_text(one), std::move(path)});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Conflict& a, const Conflict& b) { return a.manager < b.manager; });
  return found;
}

const json* last_applied(const json& object) {
  const json* annotations = find_path(object, {"metadata", "annotations"});
  if (!annotations || !annotations->is_object()) return nullptr;
  auto it = annotations->find(core::kLastAppliedKey);
  return it == annotations->end() || !it->is_string() ? nullptr : &*it;
}

// The fields that a client-side apply set and that have not changed since.
FieldSet still_applied(const FieldType& type, const json& live) {
  const json* text = last_applied(live);
  if (!text) return {};
  auto parsed = parse_json(text->get_ref<const std::string&>());
  if (!parsed.ok()) return {};
  const json last = stripped(std::move(parsed->value));
  const Comparison since = compared(type, last, live);
  return without(without(fields_of(type, last), since.modified), since.removed);
}

}  // namespace

std::optional<std::vector<Manager>> read_managers(const json& object) {
  const json* list = managed_list(object);
  if (!list || list->empty()) return std::nullopt;
  std::vector<Manager> managers;
  std::set<std::tuple<std::string, bool, std::string>> seen;
  for (const json& one : *list) {
    Manager manager;
    if (!read_manager(one, manager)) return std::nullopt;
    if (!seen.emplace(manager.name, manager.applies, manager.subresource).second)
      return std::nullopt;
    managers.push_back(std::move(manager));
  }
  return managers;
}

void write_managers(json& object, std::vector<Manager> managers) {
  drop_idle(managers);
  std::stable_sort(managers.begin(), managers.end(), [](const Manager& a, const Manager& b) {
    return std::tuple(!a.applies, a.time, a.name, a.subresource) <
           std::tuple(!b.applies, b.time, b.name, b.subresource);
  });
  json list = json::array();
  for (const Manager& one : managers) {
    json entry = {{"manager", one.name},
                  {"operation", one.applies ? "Apply" : "Update"},
                  {"fieldsType", "FieldsV1"},
                  {"fieldsV1", to_fields_v1(one.fields)}};
    if (!one.api_version.empty()) entry["apiVersion"] = one.api_version;
    if (!one.time.empty()) entry["time"] = one.time;
    if (!one.subresource.empty()) entry["subresource"] = one.subresource;
    list.push_back(std::move(entry));
  }
  if (list.empty())
    forget_managers(object);
  else
    object["metadata"]["managedFields"] = std::move(list);
}

void track_update(std::string_view type_name, const json& before, json& after,
                  const Writer& writer) {
  const FieldType type{type_name};
  std::vector<Manager> managers;
  if (auto said = resets(after) ? std::vector<Manager>() : read_managers(after))
    managers = std::move(*said);
  else
    managers = read_managers(before).value_or(std::vector<Manager>());
  // More appliers than the server would admit: the client wrote the list by hand, so ignore it.
  if (std::count_if(managers.begin(), managers.end(), [](const Manager& one) {
        return one.applies;
      }) > static_cast<ptrdiff_t>(kApplyManagersMax))
    managers = read_managers(before).value_or(std::vector<Manager>());
  Comparison change = compared(type, stripped(before), stripped(after));
  Manager& mine = manager_of(managers, writer, false);
  take_from_others(managers, mine, change);
  FieldSet changed = united(std::move(change.added), std::move(change.modified));
  FieldSet fields =
      without(united(without(mine.fields, change.removed), std::move(changed)), nobodys());
  if (fields != mine.fields) mine.time = writer.now;
  mine.fields = std::move(fields);
  drop_idle(managers);
  cap_updates(managers);
  write_managers(after, std::move(managers));
}

Result<json> applied(std::string_view type_name, const json& live, const json& wanted,
                     const Writer& writer, bool force) {
  const FieldType type{type_name};
  const json config = stripped(wanted), old = stripped(live);
  if (const std::string repeated = repeated_element(type, config); !repeated.empty())
    return invalid("failed to create typed patch object: " + repeated);
  std::vector<Manager> managers = read_managers(live).value_or(std::vector<Manager>());
  drop_idle(managers);
  if (managers.empty() && !old.empty())
    managers.push_back(
        {"before-first-apply", writer.api_version, writer.now, "", false, owned_fields(type, old)});
  Manager& mine = manager_of(managers, writer, true);
  if (std::count_if(managers.begin(), managers.end(), [](const Manager& one) {
        return one.applies;
      }) > static_cast<ptrdiff_t>(kApplyManagersMax))
    return Error{Errc::invalid,
                 "fieldManager: " + std::to_string(kApplyManagersMax) +
                     " managers already apply this object; reuse one of their names",
                 {}};
  const FieldSet last = std::exchange(mine.fields, owned_fields(type, config));
  FieldSet owned;
  for (const Manager& one : managers) owned = united(std::move(owned), one.fields);
  json result = merged(type, old, config);
  for (auto& [name, part] : result.items())
    part = disowned(type.member(name), std::move(part), last.below("f:" + name),
                    owned.below("f:" + name));

  const Comparison change = compared(type, old, result);
  if (!force) {
    // kubectl takes over from its own client-side apply; see the header.
    const FieldSet but = writer.name == "kubectl" ? still_applied(type, old) : FieldSet();
    if (const auto found = conflicts_of(managers, mine, change, but); !found.empty())
      return conflict_error(found);
  }
  take_from_others(managers, mine, change);
  if (old != result || last != mine.fields) mine.time = writer.now;
  if (writer.name == "kubectl" && last_applied(result)) {
    json said = wanted;
    forget_managers(said);
    result["metadata"]["annotations"][core::kLastAppliedKey] =
        said.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  }
  // Restore what was stripped: from the live object or, for a new one, as written.
  const json& rest = old.empty() ? wanted : live;
  for (const char* name : {"apiVersion", "kind"})
    if (rest.contains(name)) result[name] = rest[name];
  if (auto meta = rest.find("metadata"); meta != rest.end() && meta->is_object())
    for (const auto& [name, value] : meta->items())
      if (!result["metadata"].contains(name) &&
          nobodys().below("f:metadata").children.contains("f:" + name))
        result["metadata"][name] = value;
  cap_updates(managers);
  write_managers(result, std::move(managers));
  return result;
}

}  // namespace muster::api
