#include "api/json_text.hpp"

#include <utility>

namespace muster::api {
namespace {

using nlohmann::json;

// Builds the value as the parser walks over the text. `open_` holds the containers around the
// current place; a pointer into a container stays good while it is open, since only the innermost
// one grows.
class Builder : public nlohmann::json_sax<json> {
 public:
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
  bool binary(binary_t&) override { return false; }  // has no JSON text
  bool start_object(size_t) override { return open(json::object()); }
  bool start_array(size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Frame& frame = open_.back();
    if (frame.value->contains(name)) duplicates_.push_back(join_path(path(), name));
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
    std::string key;  // of an object
  };

  json* put(json value) {
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
    if (open_.size() >= kJsonDepthMax) {
      problem_ = "nested deeper than " + std::to_string(kJsonDepthMax) + " levels";
      return false;
    }
    json* place = put(std::move(value));
    open_.push_back({place, ""});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  // Of the innermost open container.
  std::string path() const {
    std::string text;
    for (size_t i = 0; i + 1 < open_.size(); ++i) {
      const Frame& frame = open_[i];
      if (frame.value->is_array()) {
        text += "[" + std::to_string(frame.value->size() - 1) + "]";
      } else {
        text = join_path(text, frame.key);
      }
    }
    return text;
  }

  json root_;
  std::vector<Frame> open_;
  std::vector<std::string> duplicates_;
  std::string problem_;
};

}  // namespace

std::string join_path(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

Result<JsonText> parse_json(std::string_view text) {
  Builder builder;
  if (!json::sax_parse(text.begin(), text.end(), &builder))
    return Error{Errc::invalid, "not a JSON document: " + builder.problem(), {}};
  return builder.take();
}

}  // namespace muster::api
