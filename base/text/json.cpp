#include "base/text/json.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace muster {
namespace {

// Builds the value from the parser's events. Only the innermost open container grows, so pointers
// to open containers stay valid.
class OrderedBuilder : public nlohmann::json_sax<OrderedJson> {
 public:
  OrderedJson take() { return std::move(root_); }

  bool null() override { return put(nullptr) != nullptr; }
  bool boolean(bool value) override { return put(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return put(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return put(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override {
    return put(value) != nullptr;
  }
  bool string(string_t& value) override { return put(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return false; }  // JSON has no binary values
  bool start_object(size_t) override {
    open_.push_back(put(OrderedJson::object()));
    return true;
  }
  bool start_array(size_t) override {
    open_.push_back(put(OrderedJson::array()));
    return true;
  }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  OrderedJson* put(OrderedJson value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    OrderedJson& in = *open_.back();
    if (in.is_array()) {
      in.push_back(std::move(value));
      return &in.back();
    }
    auto& members = in.get_ref<OrderedJson::object_t&>();
    members.emplace_back(std::move(key_), std::move(value));
    return &members.back().second;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  OrderedJson root_;
  std::vector<OrderedJson*> open_;
  std::string key_;
};

}  // namespace

const Json* find_path(const Json& json, std::initializer_list<const char*> names) {
  const Json* at = &json;
  for (const char* name : names) {
    if (!at->is_object()) return nullptr;
    auto it = at->find(name);
    if (it == at->end()) return nullptr;
    at = &*it;
  }
  return at;
}

std::string member_text(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

OrderedJson parse_ordered(std::string_view text) {
  OrderedBuilder builder;
  if (!OrderedJson::sax_parse(text.begin(), text.end(), &builder))
    return OrderedJson(OrderedJson::value_t::discarded);
  return builder.take();
}

std::string dumped(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void append_quoted(std::string& out, std::string_view text) {
  const bool simple = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
  });
  if (simple) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += dumped(OrderedJson(std::string(text)));
  }
}

}  // namespace muster
