#include "api/kube/schema/fields.hpp"

#include "api/kube/schema/api_types.hpp"
#include "base/text/json_text.hpp"
#include "base/text/nearest.hpp"
#include "core/spec/values/quantity.hpp"

#include <cstdint>
#include <limits>

namespace muster::api {
namespace {

using nlohmann::json;

void drop_nulls(json& value) {
  if (value.is_object())
    for (auto it = value.begin(); it != value.end();)
      it = it->is_null() ? value.erase(it) : std::next(it);
  if (value.is_structured())
    for (json& child : value) drop_nulls(child);
}

std::string found_text(const json& value) {
  constexpr size_t kShown = 60;  // characters
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_null()) return "null";
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "…";
  return (value.is_string() ? "the string " : value.is_number() ? "the number " : "") + text;
}

std::string meant_by(std::string_view name, const ApiType& type) {
  std::vector<std::string> known;
  for (const ApiField& field : type.fields) known.emplace_back(field.name);
  return nearest(name, known);
}

// The current position. Its text is built only for an error message.
struct Place {
  const Place* above = nullptr;
  enum class Kind { member, element, entry } kind = Kind::member;  // a.b, a[0], a[key]
  std::string_view name{};
  size_t index = 0;

  std::string text() const {
    const std::string before = above ? above->text() : "";
    if (kind == Kind::element) return before + "[" + std::to_string(index) + "]";
    if (kind == Kind::entry) return before + "[" + std::string(name) + "]";
    return name.empty() ? before : join_path(before, name);
  }
};

struct WrongType {
  std::string path, why;
};

class Walk {
 public:
  std::vector<UnknownField> unknown;
  std::vector<WrongType> wrong_types;  // at most kDuplicatesMax, like `unknown`

  void object(json& value, const ApiType& type, const Place& path) {
    if (!value.is_object()) return wrong(path, value, "an object");
    drop_own_nulls(value);
    for (auto it = value.begin(); it != value.end();) {
      const ApiField* field = type.field(it.key());
      const Place at{&path, Place::Kind::member, it.key()};
      if (field == nullptr) {
        if (unknown.size() < kDuplicatesMax)
          unknown.push_back({at.text(), meant_by(it.key(), type)});
        it = value.erase(it);
        continue;
      }
      visit(*it, *field, at);
      ++it;
    }
  }

 private:
  void visit(json& value, const ApiField& field, const Place& path) {
    if (field.list) {
      if (!value.is_array()) return wrong(path, value, "a list");
      for (size_t i = 0; i < value.size(); ++i)
        visit_one(value[i], field, {&path, Place::Kind::element, {}, i});
    } else if (field.map) {
      if (!value.is_object()) return wrong(path, value, "a map");
      drop_own_nulls(value);
      for (auto it = value.begin(); it != value.end(); ++it)
        visit_one(*it, field, {&path, Place::Kind::entry, it.key()});
    } else {
      visit_one(value, field, path);
    }
  }

  // The value of a field, or one item of a list or map.
  void visit_one(json& value, const ApiField& field, const Place& path) {
    const std::string_view type = field.type;
    if (field.unread || type == "any") {
      drop_nulls(value);
    } else if (field.of != nullptr) {
      object(value, *field.of, path);
    } else if (type == "bool") {
      if (!value.is_boolean()) wrong(path, value, "true or false");
    } else if (type == "int32") {
      integer<int32_t>(value, path, "int32");
    } else if (type == "int64") {
      integer<int64_t>(value, path, "int64");
    } else if (type == "quantity") {
      if (value.is_number()) value = value.dump();
      if (!value.is_string()) return wrong(path, value, "a quantity (a string or a number)");
      value = core::canonical_quantity(value.get_ref<const std::string&>());
    } else if (!value.is_string()) {  // includes times
      wrong(path, value, value.is_structured() ? "a string" : "a string: put it in quotes");
    }
  }

  template <class Int>
  void integer(const json& value, const Place& path, const char* type) {
    if (!value.is_number_integer())
      return wrong(path, value, std::string("an integer (") + type + ")");
    bool fits = value.is_number_unsigned()
                    ? value.get<uint64_t>() <= uint64_t{std::numeric_limits<Int>::max()}
                    : value.get<int64_t>() >= std::numeric_limits<Int>::min() &&
                          value.get<int64_t>() <= std::numeric_limits<Int>::max();
    if (!fits) refuse(path, value.dump() + " is out of range for " + type);
  }

  void wrong(const Place& place, const json& value, const std::string& expected) {
    refuse(place, "found " + found_text(value) + ", expected " + expected);
  }

  void refuse(const Place& place, std::string why) {
    if (wrong_types.size() < kDuplicatesMax) wrong_types.push_back({place.text(), std::move(why)});
  }

  static void drop_own_nulls(json& value) {
    for (auto it = value.begin(); it != value.end();)
      it = it->is_null() ? value.erase(it) : std::next(it);
  }
};

// Everything that is wrong: types and, since the document must be changed anyway, unknown fields,
// worded as by field_complaints().
std::string problems_of(const Walk& walk) {
  std::string text;
  for (const WrongType& one : walk.wrong_types)
    text += (text.empty() ? "" : "; ") + (one.path.empty() ? "the document" : one.path) + ": " +
            one.why;
  for (const UnknownField& one : walk.unknown)
    text += "; unknown field \"" + one.path + "\"" +
            (one.meant.empty() ? "" : ", did you mean \"" + one.meant + "\"?");
  return text;
}

}  // namespace

Result<std::vector<UnknownField>> conform(json& value, std::string_view type,
                                          std::string_view path) {
  const ApiType* found = api_type(type);
  MUSTER_CHECK(found != nullptr, type);
  Walk walk;
  walk.object(value, *found, {.name = path});
  if (!walk.wrong_types.empty()) return invalid(problems_of(walk));
  return std::move(walk.unknown);
}

}  // namespace muster::api
