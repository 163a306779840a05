#include "base/text/json_text.hpp"

#include <algorithm>
#include <utility>

namespace muster {
namespace {

using nlohmann::json;

// Builds the value from the parser's events. `open_` holds the enclosing containers; pointers to
// them stay valid because only the innermost one grows.
class Builder : public nlohmann::json_sax<json> {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  JsonText take() { return {std::move(root_), std::move(duplicates_)}; }
  const std::string& problem() const { return problem_; }

  bool null() override { return put(json()) != nullptr; }
  bool boolean(bool value) override { return put(json(value)) != nullptr; }
  bool number_integer(number_integer_t value) override { return put(json(value)) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return put(json(value)) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override {
    return put(json(value)) != nullptr;
  }
  bool string(string_t& value) override { return put(json(std::move(value))) != nullptr; }
  bool binary(binary_t&) override { return false; }  // JSON has no binary values
  bool start_object(size_t) override { return open(json::object()); }
  bool start_array(size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Frame& frame = open_.back();
    if (members_++ == limits_.members) return too_many(limits_.members, "members");
    if (duplicates_.size() < kDuplicatesMax && frame.value->contains(name))
      duplicates_.push_back(join_path(path(), name));
    frame.key = std::move(name);
    return true;
  }

  bool parse_error(size_t, const std::string&, const json::exception& error) override {
    std::string_view what = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
    if (size_t at = what.find("] "); at != std::string_view::npos) what.remove_prefix(at + 2);
    problem_ = what;
    return false;
  }

 private:
  struct Frame {
    json* value;
    std::string key;  // of the current member, in an object
  };

  bool too_many(size_t most, const char* what) {
    problem_ = "more than " + std::to_string(most) + " " + what;
    return false;
  }

  json* put(json value) {
    if (values_++ == limits_.values) {
      too_many(limits_.values, "values");
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Frame& frame = open_.back();
    if (frame.value->is_array()) {
      frame.value->push_back(std::move(value));
      return &frame.value->back();
    }
    json& member = (*frame.value)[frame.key];
    member = std::move(value);
    return &member;
  }

  bool open(json value) {
    if (open_.size() >= limits_.depth) {
      problem_ = "nested deeper than " + std::to_string(limits_.depth) + " levels";
      return false;
    }
    json* place = put(std::move(value));
    if (!place) return false;
    open_.push_back({place, ""});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  // The path of the innermost open container, truncated if long, since every duplicate repeats it.
  std::string path() const {
    constexpr size_t kShown = 1024;  // bytes
    std::string text;
    for (size_t i = 0; i + 1 < open_.size(); ++i) {
      if (text.size() > kShown) return text.substr(0, kShown) + "…";
      const Frame& frame = open_[i];
      if (frame.value->is_array()) {
        text += "[" + std::to_string(frame.value->size() - 1) + "]";
      } else {
        text = join_path(text, frame.key);
      }
    }
    return text;
  }

  const JsonLimits limits_;
  size_t members_ = 0, values_ = 0;
  json root_;
  std::vector<Frame> open_;
  std::vector<std::string> duplicates_;
  std::string problem_;
};

}  // namespace

JsonShape json_shape(std::string_view text) {
  JsonShape shape;
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      shape.depth = std::max(shape.depth, ++depth);
    } else if (c == ':') {
      ++shape.members;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return shape;
}

std::string join_path(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

Result<JsonText> parse_json(std::string_view text, const JsonLimits& limits) {
  Builder builder(limits);
  if (!json::sax_parse(text.begin(), text.end(), &builder))
    return Error{Errc::invalid, "not a JSON document: " + builder.problem(), {}};
  return builder.take();
}

}  // namespace muster
