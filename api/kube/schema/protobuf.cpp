#include "api/kube/schema/protobuf.hpp"

#include "api/kube/schema/api_types.hpp"
#include "base/text/json.hpp"
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
constexpr int kDepthMax = 32;  // nesting of messages; a Job has fewer than ten levels

// One field of a message, as encoded.
struct Wire {
  unsigned number = 0;
  bool is_bytes = false;
  uint64_t value = 0;      // of a number
  std::string_view bytes;  // of a string or message
};

// Takes the next field off the text; nothing if the text is malformed.
class Reader {
 public:
  explicit Reader(std::string_view left) : left_(left) {}
  bool done() const { return left_.empty(); }

  std::optional<Wire> next() {
    const auto tag = varint();
    if (!tag || (*tag >> 3) == 0 || (*tag >> 3) > UINT32_MAX) return std::nullopt;
    Wire wire{.number = static_cast<unsigned>(*tag >> 3)};
    switch (*tag & 7) {
      case 0: {
        const auto value = varint();
        if (!value) return std::nullopt;
        wire.value = *value;
        return wire;
      }
      case 1:
        return skip(8) ? std::optional(wire) : std::nullopt;
      case 2: {
        const auto size = varint();
        if (!size || *size > left_.size()) return std::nullopt;
        wire.is_bytes = true;
        wire.bytes = left_.substr(0, *size);
        left_.remove_prefix(*size);
        return wire;
      }
      case 5:
        return skip(4) ? std::optional(wire) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

 private:
  bool skip(size_t size) {
    if (left_.size() < size) return false;
    left_.remove_prefix(size);
    return true;
  }
  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::string_view left_;
};

class ProtobufWalk {
 public:
  std::string problem;

  // `offset` is what our table adds to the field numbers of this message.
  Json message(std::string_view bytes, const ApiType& type, const std::string& path, int depth,
               unsigned offset = 0) {
    Json json = Json::object();
    Reader reader(bytes);
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

  void add(Json& json, const Wire& wire, const ApiField& field, const std::string& path,
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
      // Clients write absent strings as empty ones.
      const bool empty = one.is_null() || (one.is_string() && one.get_ref<std::string&>().empty());
      if (!empty) json[field.name] = std::move(one);
    }
  }

  static bool wire_is_bytes(std::string_view type) {
    return type != "bool" && type != "int32" && type != "int64";
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
      const auto wire = Reader(tagged).next();
      if (!wire) return void(broken(path));
      if (!counted()) return;
      list.push_back(value(*wire, field, path, depth));
      bytes.remove_prefix(end + 1);
    }
  }

  void add_entry(Json& map, const Wire& wire, const ApiField& field, const std::string& path,
                 int depth) {
    std::string key;
    const bool text = field.type == "string" || field.type == "quantity" || field.type == "bytes";
    Json found = text ? Json("") : Json();
    Reader reader(wire.bytes);
    while (problem.empty() && !reader.done()) {
      const auto part = reader.next();
      if (!part || !part->is_bytes) return void(broken(path));
      if (part->number == 1) key = part->bytes;
      if (part->number == 2) found = value(*part, field, path, depth);
    }
    map[key] = std::move(found);
  }

  Json value(const Wire& wire, const ApiField& field, const std::string& path, int depth) {
    const std::string_view type = field.type;
    if (wire.is_bytes != wire_is_bytes(type)) return broken(path);
    if (type == "string") return std::string(wire.bytes);
    if (type == "bytes") return base64(wire.bytes);
    if (type == "bool") return wire.value != 0;
    if (type == "int32" || type == "int64") return static_cast<int64_t>(wire.value);
    if (type == "quantity") return quantity(wire.bytes, path);
    if (type == "time" || type == "microtime") return time(wire.bytes, path, type == "microtime");
    if (type == "any") {
      if (!wire.bytes.empty() && problem.empty())
        problem = path + ": not supported in protobuf: send JSON";
      return nullptr;
    }
    return message(wire.bytes, *field.of, path, depth + 1);
  }

  static Json base64(std::string_view bytes) {
    const kj::String text = kj::encodeBase64(
        kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
    return std::string(text.begin(), text.size());
  }

  Json quantity(std::string_view bytes, const std::string& path) {
    std::string text;
    Reader reader(bytes);
    while (!reader.done()) {
      const auto wire = reader.next();
      if (!wire) return broken(path);
      if (wire->number == 1 && wire->is_bytes) text = wire->bytes;
    }
    return text;
  }

  // Reads seconds since 1970; null if 0 or negative.
  Json time(std::string_view bytes, const std::string& path, bool micro) {
    int64_t seconds = 0, nanos = 0;
    Reader reader(bytes);
    while (!reader.done()) {
      const auto wire = reader.next();
      if (!wire) return broken(path);
      if (wire->number == 1) seconds = static_cast<int64_t>(wire->value);
      if (wire->number == 2) nanos = static_cast<int64_t>(wire->value);
    }
    constexpr int64_t kYear9999 = 253'402'300'799;
    if (seconds < -kYear9999 || seconds > kYear9999 || nanos < 0 || nanos >= 1'000'000'000)
      return broken(path);
    if (micro && seconds > 0) {
      std::string text = time_text(seconds * 1000);
      text.pop_back();  // the Z
      const std::string digits = std::to_string(1'000'000 + nanos / 1000);
      return text + "." + digits.substr(1) + "Z";
    }
    return seconds <= 0 ? Json() : Json(time_text(seconds * 1000));
  }

  size_t values_ = 0;
};

}  // namespace

Result<std::string> protobuf_to_json(std::string_view framed) {
  if (!framed.starts_with(kFrame))
    return invalid("the body is not Kubernetes protobuf (no k8s\\0 prefix)");
  std::string api_version, kind;
  std::string_view object;
  Reader frame(framed.substr(kFrame.size()));
  while (!frame.done()) {
    const auto wire = frame.next();
    if (!wire) return invalid("the body: invalid protobuf");
    if (wire->number == 2 && wire->is_bytes) object = wire->bytes;
    if (wire->number != 1 || !wire->is_bytes) continue;
    Reader type(wire->bytes);
    while (!type.done()) {
      const auto part = type.next();
      if (!part) return invalid("the body: invalid protobuf");
      if (part->number == 1) api_version = part->bytes;
      if (part->number == 2) kind = part->bytes;
    }
  }
  const ApiType* type = api_kind(api_version, kind);
  const bool readable =
      type != nullptr && std::any_of(type->fields.begin(), type->fields.end(),
                                     [](const ApiField& field) { return field.number != 0; });
  if (!readable) return invalid("objects of kind \"" + kind + "\" are accepted only as JSON");
  ProtobufWalk walk;
  Json json = walk.message(object, *type, "", 0);
  if (!walk.problem.empty()) return invalid(walk.problem);
  json["apiVersion"] = api_version;
  json["kind"] = kind;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace muster::api
