#include "api/kube/schema/field_schema.hpp"

#include "base/text/json.hpp"

#include <map>
#include <set>
#include <vector>

namespace muster::api {
namespace {

using nlohmann::json;

// The key members of an element; null if one is missing.
json keys_of(std::span<const std::string_view> keys, const json& element) {
  if (!element.is_object()) return nullptr;
  json found = json::object();
  for (const std::string_view key : keys) {
    if (auto it = element.find(key); it != element.end() && it->is_primitive())
      found[key] = *it;
    else if (key == "protocol")
      found[key] = "TCP";  // the default of a port
    else
      return nullptr;
  }
  return found;
}

// "[name=\"a\"]" for an element of a list with keys, "[=\"a\"]" for one of a set.
std::string place_of_element(const FieldType& list, const json& element) {
  const json keys = list.is_set() ? json() : keys_of(list.keys(), element);
  std::string text;
  if (list.is_set()) text = "=" + element.dump();
  for (const auto& [key, value] : keys.items())
    text += (text.empty() ? "" : ",") + key + "=" + value.dump();
  return "[" + text + "]";
}

std::string find_repeated(const FieldType& type, const json& value, const std::string& path) {
  if (type.atomic()) return "";
  if (value.is_object()) {
    for (const auto& [name, member] : value.items())
      if (auto found = find_repeated(type.member(name), member, path + "." + name); !found.empty())
        return found;
    return "";
  }
  if (!value.is_array() || (type.keys().empty() && !type.is_set())) return "";
  std::set<std::string> seen;
  for (const json& element : value) {
    if (!type.is_set() && keys_of(type.keys(), element).is_null()) continue;
    const std::string place = place_of_element(type, element);
    if (!seen.insert(place).second) return path + ": duplicate entries for key " + place;
    if (auto found = find_repeated(type.element(), element, path + place); !found.empty())
      return found;
  }
  return "";
}

// Calls f(path element, type, a, b) for each member of two values of the same shape; a or b is null
// if that value lacks the member.
template <class F>
void each_pair(const FieldType& type, Shape shape, const json& a, const json& b, F f) {
  if (shape == Shape::map) {
    for (const auto& [name, value] : a.items()) {
      auto other = b.find(name);
      f("f:" + name, type.member(name), &value, other == b.end() ? nullptr : &*other);
    }
    for (const auto& [name, value] : b.items())
      if (!a.contains(name)) f("f:" + name, type.member(name), nullptr, &value);
    return;
  }
  std::map<std::string, const json*> in_b;
  for (const json& one : b) in_b[element_of(type, one)] = &one;
  for (const json& one : a) {
    const std::string element = element_of(type, one);
    auto other = in_b.find(element);
    f(element, type.element(), &one, other == in_b.end() ? nullptr : other->second);
    if (other != in_b.end()) in_b.erase(other);
  }
  for (const auto& [element, one] : in_b) f(element, type.element(), nullptr, one);
}

void collect(const FieldType& type, const json& value, FieldSet& at) {
  const Shape shape = shape_of(type, value);
  if (shape == Shape::leaf || value.empty()) {
    at.member = true;
    return;
  }
  static const json kNothing = json::object(), kNone = json::array();
  each_pair(type, shape, value, shape == Shape::map ? kNothing : kNone,
            [&](const std::string& element, const FieldType& inner, const json* one, const json*) {
              FieldSet& child = at.children[element];
              if (shape != Shape::map) child.member = true;
              if (shape != Shape::set) collect(inner, *one, child);
            });
}

void compare(const FieldType& type, const json& before, const json& after, FieldSet& added,
             FieldSet& modified, FieldSet& removed) {
  // Values with a shape are compared member by member only; comparing the whole value too would
  // repeat the work at each level.
  const Shape shape = shape_of(type, before);
  if (shape == Shape::leaf || shape != shape_of(type, after)) {
    if (before != after) modified.member = true;
    return;
  }
  each_pair(type, shape, before, after,
            [&](const std::string& element, const FieldType& inner, const json* a, const json* b) {
              if (a && b) {
                compare(inner, *a, *b, added.children[element], modified.children[element],
                        removed.children[element]);
                return;
              }
              FieldSet& place = a ? removed.children[element] : added.children[element];
              if (shape != Shape::map) place.member = true;
              if (shape != Shape::set) collect(inner, a ? *a : *b, place);
            });
}

// Keeps both orders where they agree, otherwise the order of `wanted`.
json merged_list(const FieldType& type, Shape shape, const json& live, const json& wanted) {
  std::map<std::string, const json*> in_live;
  std::set<std::string> in_wanted, placed;
  std::vector<std::string> elements;  // of live
  for (const json& one : live) in_live[elements.emplace_back(element_of(type, one))] = &one;
  for (const json& one : wanted) in_wanted.insert(element_of(type, one));
  std::vector<bool> stays;  // of live: also in `wanted`, which determines its place
  for (const std::string& element : elements) stays.push_back(in_wanted.contains(element));
  json list = json::array();
  size_t next = 0;
  auto take_unwanted = [&] {
    for (; next < live.size(); ++next) {
      if (!stays[next])
        list.push_back(live[next]);
      else if (!placed.contains(elements[next]))
        break;
    }
  };
  for (const json& one : wanted) {
    take_unwanted();
    const std::string element = element_of(type, one);
    auto old = in_live.find(element);
    list.push_back(old == in_live.end() || shape == Shape::set
                       ? one
                       : merged(type.element(), *old->second, one));
    placed.insert(element);
  }
  take_unwanted();
  return list;
}

}  // namespace

FieldType::FieldType(std::string_view type) : object_(api_type(type)) {}

FieldType FieldType::inner() const {
  FieldType item;
  if (!field_->unread) item.object_ = field_->of;
  return item;
}

FieldType FieldType::member(std::string_view name) const {
  if (is_map()) return inner();
  const ApiField* field = object_ == nullptr ? nullptr : object_->field(name);
  if (field == nullptr) return {};
  FieldType place;
  place.field_ = field;
  if (!field->list && !field->map && !field->unread) place.object_ = field->of;
  return place;
}

FieldType FieldType::element() const {
  return field_ != nullptr && field_->list ? inner() : FieldType();
}

std::span<const std::string_view> FieldType::keys() const {
  return field_ == nullptr ? std::span<const std::string_view>() : field_->keys;
}

Shape shape_of(const FieldType& type, const json& value) {
  if (type.atomic()) return Shape::leaf;
  if (value.is_object()) return Shape::map;
  if (!value.is_array() || (!type.is_set() && type.keys().empty())) return Shape::leaf;
  std::set<std::string> seen;
  for (const json& one : value) {
    if (type.is_set() ? !one.is_primitive() : keys_of(type.keys(), one).is_null())
      return Shape::leaf;
    if (!seen.insert(element_of(type, one)).second) return Shape::leaf;
  }
  return type.is_set() ? Shape::set : Shape::keyed;
}

std::string element_of(const FieldType& list, const json& element) {
  if (list.is_set()) return "v:" + dumped(element);
  return "k:" + dumped(keys_of(list.keys(), element));
}

FieldSet fields_of(const FieldType& type, const json& value) {
  FieldSet set;
  collect(type, value, set);
  set.member = false;
  return set;
}

Comparison compared(const FieldType& type, const json& before, const json& after) {
  Comparison found;
  compare(type, before, after, found.added, found.modified, found.removed);
  for (FieldSet* set : {&found.added, &found.modified, &found.removed}) {
    set->member = false;
    set->prune();
  }
  return found;
}

json merged(const FieldType& type, json live, const json& wanted) {
  const Shape shape = shape_of(type, wanted);
  if (shape == Shape::leaf || shape != shape_of(type, live)) return wanted;
  if (shape != Shape::map) return merged_list(type, shape, live, wanted);
  for (const auto& [name, value] : wanted.items()) {
    auto old = live.find(name);
    if (old == live.end())
      live[name] = value;
    else
      *old = merged(type.member(name), std::move(*old), value);
  }
  return live;
}

json disowned(const FieldType& type, json value, const FieldSet& last, const FieldSet& owned) {
  const Shape shape = shape_of(type, value);
  if (shape == Shape::leaf || last.children.empty()) return value;
  if (shape == Shape::map) {
    const bool fields = !type.is_map();  // otherwise the keys of a map
    for (auto it = value.begin(); it != value.end();) {
      const std::string element = "f:" + it.key();
      const FieldSet &was = last.below(element), &is = owned.below(element);
      const bool spoken = was.member || (fields && !was.children.empty());
      const bool held = is.member || (fields && !is.children.empty());
      if (spoken && !held) {
        it = value.erase(it);
        continue;
      }
      const bool had = it->is_structured() && !it->empty();
      *it = disowned(type.member(it.key()), std::move(*it), was, is);
      const bool emptied = had && it->is_structured() && it->empty() && !is.member;
      it = emptied ? value.erase(it) : std::next(it);
    }
    return value;
  }
  json kept = json::array();
  for (json& one : value) {
    const std::string element = element_of(type, one);
    const FieldSet &was = last.below(element), &is = owned.below(element);
    if (was.member && !is.member) continue;
    kept.push_back(disowned(type.element(), std::move(one), was, is));
  }
  return kept;
}

std::string repeated_element(const FieldType& type, const json& value) {
  return find_repeated(type, value, "");
}

}  // namespace muster::api
