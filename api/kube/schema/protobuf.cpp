#include "api/kube/schema/protobuf.hpp"

#include "api/kube/schema/protobuf_wire.hpp"
#include "base/check.hpp"
#include "base/text/json_text.hpp"
#include "base/text/time_text.hpp"

#include <kj/encoding.h>

#include <algorithm>
#include <cstdint>

namespace muster::api {
namespace {

constexpr std::string_view kFrame{"k8s\0", 4};
// In protobuf, a volume's kind is a separate message; in JSON and in our table it is a member of
// the volume (api/openapi/pod.yaml).
constexpr std::string_view kVolume = "Volume";
constexpr unsigned kVolumeSource = 2, kVolumeOffset = 100;
constexpr int64_t kYear1 = -62'135'596'800, kYear9999 = 253'402'300'799;  // seconds since 1970
constexpr int64_t kNanos = 1'000'000'000;
constexpr int kDepthMax = 32;  // nesting of messages; a Job has fewer than ten levels

// Whether a value of this type is written with a length.
bool wire_is_bytes(std::string_view type) {
  return type != "bool" && type != "int32" && type != "int64";
}

kj::ArrayPtr<const kj::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const kj::byte*>(text.data()), text.size()};
}

class ProtobufWalk {
 public:
  std::string problem;

  // `offset` is what our table adds to the field numbers of this message.
  Json message(std::string_view bytes, const ApiType& type, const std::string& path, int depth,
               unsigned offset = 0) {
    Json json = Json::object();
    WireReader reader(bytes);
    while (problem.empty() && !reader.done()) {
      const auto wire = reader.next();
      if (!wire || depth > kDepthMax) return broken(path);
      if (!counted()) return nullptr;
      if (offset == 0 && type.name == kVolume && wire->number == kVolumeSource && wire->is_bytes) {
        Json kinds = message(wire->bytes, type, path, depth + 1, kVolumeOffset);
        if (kinds.is_object()) json.update(kinds);
        continue;
      }
      const auto field = std::find_if(
          type.fields.begin(), type.fields.end(),
          [&](const ApiField& f) { return f.number != 0 && f.number == wire->number + offset; });
      if (field == type.fields.end()) continue;
      add(json, *wire, *field, join_path(path, field->name), depth);
    }
    return json;
  }

 private:
  Json broken(const std::string& path) {
    if (problem.empty()) problem = (path.empty() ? "the body" : path) + ": invalid protobuf";
    return nullptr;
  }

  // Two bytes can become a value, so values are bounded as in a JSON text.
  bool counted() {
    if (++values_ > kRequestLimits.values && problem.empty())
      problem = "the body: more than " + std::to_string(kRequestLimits.values) + " values";
    return problem.empty();
  }

  void add(Json& json, const WireField& wire, const ApiField& field, const std::string& path,
           int depth) {
    if (field.map) {
      add_entry(json[field.name], wire, field, path, depth);
    } else if (field.list) {
      Json& list = json[field.name];
      if (list.is_null()) list = Json::array();
      if (wire.is_bytes && !wire_is_bytes(field.type))
        add_packed(list, wire.bytes, field, path, depth);
      else
        list.push_back(value(wire, field, path, depth));
    } else {
      Json one = value(wire, field, path, depth);
      // Clients write absent strings as empty ones, and other absent values as zeros.
      const bool empty = one.is_null() ||
                         (one.is_string() && one.get_ref<std::string&>().empty()) ||
                         (field.plain && wire.value == 0);
      if (!empty) json[field.name] = std::move(one);
    }
  }

  void add_packed(Json& list, std::string_view bytes, const ApiField& field,
                  const std::string& path, int depth) {
    // A packed list has no tag for each number: read each as if it had one.
    while (!bytes.empty() && problem.empty()) {
      const size_t end = std::find_if(bytes.begin(), bytes.end(),
                                      [](char c) { return static_cast<unsigned char>(c) < 0x80; }) -
                         bytes.begin();
      if (end == bytes.size()) return void(broken(path));
      const std::string tagged = "\x08" + std::string(bytes.substr(0, end + 1));
      const auto wire = WireReader(tagged).next();
      if (!wire) return void(broken(path));
      if (!counted()) return;
      list.push_back(value(*wire, field, path, depth));
      bytes.remove_prefix(end + 1);
    }
  }

  void add_entry(Json& map, const WireField& wire, const ApiField& field, const std::string& path,
                 int depth) {
    std::string key;
    const bool text = field.type == "string" || field.type == "quantity" || field.type == "bytes";
    const bool number = field.type == "int32" || field.type == "int64";
    Json found = text ? Json("") : number ? Json(0) : Json();
    WireReader reader(wire.bytes);
    while (problem.empty() && !reader.done()) {
      const auto part = reader.next();
      if (!part || (part->number == 1 && !part->is_bytes)) return void(broken(path));
      if (part->number == 1) key = part->bytes;
      if (part->number == 2) found = value(*part, field, path, depth);
    }
    map[key] = std::move(found);
  }

  Json value(const WireField& wire, const ApiField& field, const std::string& path, int depth) {
    const std::string_view type = field.type;
    if (wire.is_bytes != wire_is_bytes(type)) return broken(path);
    if (type == "string") return std::string(wire.bytes);
    if (type == "bytes") return base64(wire.bytes);
    if (type == "localname") return quantity(wire.bytes, path);  // has the same form
    if (type == "bool") return wire.value != 0;
    if (type == "int32" || type == "int64") return static_cast<int64_t>(wire.value);
    if (type == "quantity") return quantity(wire.bytes, path);
    if (type == "time" || type == "microtime") return time(wire.bytes, path, type == "microtime");
    if (type == "strings") return texts(wire.bytes, path);
    if (type == "fields") return fields(wire.bytes, path);
    // Whatever is in it, it is refused, or ignored.
    if (type == "any") return "(protobuf)";
    return message(wire.bytes, *field.of, path, depth + 1);
  }

  static Json base64(std::string_view bytes) {
    const kj::String text = kj::encodeBase64(as_bytes(bytes));
    return std::string(text.begin(), text.size());
  }

  // A message whose first field is repeated.
  Json texts(std::string_view bytes, const std::string& path) {
    Json list = Json::array();
    WireReader reader(bytes);
    while (!reader.done()) {
      const auto wire = reader.next();
      if (!wire) return broken(path);
      if (wire->number == 1 && wire->is_bytes) list.push_back(std::string(wire->bytes));
      if (!counted()) return nullptr;
    }
    return list;
  }

  // A message whose first field is a JSON text.
  Json fields(std::string_view bytes, const std::string& path) {
    Json json;
    WireReader reader(bytes);
    while (!reader.done()) {
      const auto wire = reader.next();
      if (!wire) return broken(path);
      if (wire->number != 1 || !wire->is_bytes || wire->bytes.empty()) continue;
      auto text = parse_json(wire->bytes);
      if (!text.ok()) return broken(path);
      json = std::move(text->value);
    }
    return json;
  }

  Json quantity(std::string_view bytes, const std::string& path) {
    std::string text;
    WireReader reader(bytes);
    while (!reader.done()) {
      const auto wire = reader.next();
      if (!wire) return broken(path);
      if (wire->number == 1 && wire->is_bytes) text = wire->bytes;
    }
    return text;
  }

  // Seconds since 1970 and, of a microtime, nanoseconds. Null if it is Go's zero time.
  Json time(std::string_view bytes, const std::string& path, bool micro) {
    int64_t seconds = 0, nanos = 0;
    if (bytes.empty()) return nullptr;
    WireReader reader(bytes);
    while (!reader.done()) {
      const auto wire = reader.next();
      if (!wire) return broken(path);
      if (wire->number == 1) seconds = static_cast<int64_t>(wire->value);
      if (wire->number == 2) nanos = static_cast<int64_t>(wire->value);
    }
    if (seconds < kYear1 || seconds > kYear9999 || nanos < 0 || nanos >= kNanos)
      return broken(path);
    if (seconds == kYear1 && nanos == 0) return nullptr;
    std::string text = time_text(seconds * 1000);
    if (!micro) return text;
    text.pop_back();  // the Z
    const std::string digits = std::to_string(1'000'000 + nanos / 1000);
    return text + "." + digits.substr(1) + "Z";
  }

  size_t values_ = 0;
};

// The fraction of a second in a time's text, in nanoseconds; only microseconds count.
int64_t fraction_of(std::string_view text) {
  const size_t point = text.find('.');
  if (point == std::string_view::npos) return 0;
  int64_t nanos = 0, unit = kNanos / 10;
  for (const char c : text.substr(point + 1, 6)) {
    if (c < '0' || c > '9') break;
    nanos += (c - '0') * unit;
    unit /= 10;
  }
  return nanos;
}

int64_t seconds_of(Millis instant_ms) {
  return instant_ms / 1000 - (instant_ms % 1000 < 0 ? 1 : 0);
}

class ProtobufWriter {
 public:
  // The fields of this object.
  static std::string message(const Json& json, const ApiType& type) {
    std::string out, source;
    if (!json.is_object()) return out;
    for (const ApiField& field : type.fields) {
      const auto found = field.number == 0 ? json.end() : json.find(field.name);
      if (found == json.end()) continue;
      if (type.name == kVolume && field.number > kVolumeOffset)
        add(source, *found, field, field.number - kVolumeOffset);
      else
        add(out, *found, field, field.number);
    }
    if (!source.empty()) add_bytes(out, kVolumeSource, source);
    return out;
  }

 private:
  static void add(std::string& out, const Json& json, const ApiField& field, unsigned number) {
    if (field.list) {
      if (json.is_array())
        for (const Json& item : json) add_one(out, item, field, number);
    } else if (field.map) {
      if (!json.is_object()) return;
      for (const auto& [key, value] : json.items()) {
        std::string entry;
        add_bytes(entry, 1, key);
        add_one(entry, value, field, 2);
        add_bytes(out, number, entry);
      }
    } else {
      add_one(out, json, field, number);
    }
  }

  static void add_one(std::string& out, const Json& json, const ApiField& field, unsigned number) {
    const std::string_view type = field.type;
    if (type == "bool") {
      if (json.is_boolean()) add_number(out, number, json.get<bool>() ? 1 : 0);
    } else if (type == "int32" || type == "int64") {
      if (json.is_number_integer())
        add_number(out, number, static_cast<uint64_t>(json.get<int64_t>()));
    } else if (field.of != nullptr) {
      if (json.is_object()) add_bytes(out, number, message(json, *field.of));
    } else if (type == "strings") {
      std::string texts;
      if (json.is_array())
        for (const Json& text : json)
          if (text.is_string()) add_bytes(texts, 1, text.get_ref<const std::string&>());
      add_bytes(out, number, texts);
    } else if (type == "fields") {
      std::string raw;
      if (json.is_object()) add_bytes(raw, 1, dumped(json));
      add_bytes(out, number, raw);
    } else if (type != "any" && json.is_string()) {
      add_text(out, json.get_ref<const std::string&>(), type, number);
    }
  }

  static void add_text(std::string& out, const std::string& text, std::string_view type,
                       unsigned number) {
    std::string inner;
    if (type == "quantity" || type == "localname") {
      add_bytes(inner, 1, text);
    } else if (type == "time" || type == "microtime") {
      const auto at = parse_time(text);
      if (!at) return;
      add_number(inner, 1, static_cast<uint64_t>(seconds_of(*at)));
      if (type == "microtime") add_number(inner, 2, static_cast<uint64_t>(fraction_of(text)));
    } else if (type == "bytes") {
      const auto bytes = kj::decodeBase64(kj::ArrayPtr<const char>(text.data(), text.size()));
      inner.assign(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
    } else {
      return add_bytes(out, number, text);
    }
    add_bytes(out, number, inner);
  }
};

// `object`: the message of an object of this kind.
std::string framed(std::string_view api_version, std::string_view kind, std::string_view object) {
  std::string type, out(kFrame);
  add_bytes(type, 1, api_version);
  add_bytes(type, 2, kind);
  add_bytes(out, 1, type);
  add_bytes(out, 2, object);
  add_bytes(out, 3, "");
  add_bytes(out, 4, "");
  return out;
}

constexpr std::string_view kList = "List";
constexpr unsigned kListMeta = 1, kListItems = 2;

// The type of this kind; null: none that is in protobuf. Options have the version of any group.
const ApiType* type_in_protobuf(std::string_view api_version, std::string_view kind) {
  const ApiType* type = kind == "DeleteOptions" ? api_type(kind) : api_kind(api_version, kind);
  if (type == nullptr) return nullptr;
  const bool any = std::any_of(type->fields.begin(), type->fields.end(),
                               [](const ApiField& field) { return field.number != 0; });
  return any ? type : nullptr;
}

}  // namespace

Result<std::string> protobuf_to_json(std::string_view framed) {
  if (!framed.starts_with(kFrame))
    return invalid("the body is not Kubernetes protobuf (no k8s\\0 prefix)");
  std::string api_version, kind;
  std::string_view object;
  WireReader frame(framed.substr(kFrame.size()));
  while (!frame.done()) {
    const auto wire = frame.next();
    if (!wire) return invalid("the body: invalid protobuf");
    if (wire->number == 2 && wire->is_bytes) object = wire->bytes;
    if (wire->number != 1 || !wire->is_bytes) continue;
    WireReader type(wire->bytes);
    while (!type.done()) {
      const auto part = type.next();
      if (!part) return invalid("the body: invalid protobuf");
      if (part->number == 1) api_version = part->bytes;
      if (part->number == 2) kind = part->bytes;
    }
  }
  const ApiType* type = type_in_protobuf(api_version, kind);
  if (type == nullptr) return invalid("objects of kind \"" + kind + "\" are accepted only as JSON");
  ProtobufWalk walk;
  Json json = walk.message(object, *type, "", 0);
  if (!walk.problem.empty()) return invalid(walk.problem);
  json["apiVersion"] = api_version;
  json["kind"] = kind;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::string> json_to_protobuf(const Json& object) {
  const std::string version = member_text(object, "apiVersion"), kind = member_text(object, "kind");
  if (const ApiType* type = type_in_protobuf(version, kind))
    return framed(version, kind, ProtobufWriter::message(object, *type));
  if (!kind.ends_with(kList)) return std::nullopt;
  const std::string item = kind.substr(0, kind.size() - kList.size());
  if (type_in_protobuf(version, item) == nullptr) return std::nullopt;
  ProtobufList list(version, item);
  if (const Json* items = find_path(object, {"items"}); items != nullptr && items->is_array())
    for (const Json& one : *items) list.add(one);
  const Json* metadata = find_path(object, {"metadata"});
  return list.framed(metadata != nullptr ? *metadata : Json::object());
}

ProtobufList::ProtobufList(std::string_view api_version, std::string_view kind)
    : api_version_(api_version), kind_(kind), type_([&]() -> const ApiType& {
        const ApiType* type = type_in_protobuf(api_version, kind);
        MUSTER_CHECK(type != nullptr, kind);
        return *type;
      }()) {}

void ProtobufList::add(const Json& item) {
  add_bytes(items_, kListItems, ProtobufWriter::message(item, type_));
}

std::string ProtobufList::framed(const Json& metadata) const {
  std::string list;
  add_bytes(list, kListMeta, ProtobufWriter::message(metadata, *api_type("ListMeta")));
  list += items_;
  return api::framed(api_version_, kind_ + std::string(kList), list);
}

std::string protobuf_event(std::string_view type, std::string_view framed_object) {
  std::string raw, event, out;
  add_bytes(raw, 1, framed_object);
  add_bytes(event, 1, type);
  add_bytes(event, 2, raw);
  for (int shift = 24; shift >= 0; shift -= 8)
    out += static_cast<char>(static_cast<uint32_t>(event.size()) >> shift & 0xff);
  return out + event;
}

}  // namespace muster::api
