// Random objects of the API's types: any of the fields of the tables, with valid values.
#pragma once

#include "api/kube/schema/api_types.hpp"
#include "base/text/json.hpp"
#include "base/text/time_text.hpp"

#include <random>
#include <string>

namespace muster::api::testing {

class RandomObject {
 public:
  explicit RandomObject(uint64_t seed) : random_(seed) {}

  // No value is empty or, where that means the same as no value, zero.
  Json of(const ApiType& type, int depth = 0) {
    Json json = Json::object();
    for (const ApiField& field : type.fields) {
      if (field.type == "any" || field.number == 0 || chance(depth < 2 ? 3 : 2)) continue;
      Json value = value_of(field, depth);
      if (!value.is_null()) json[field.name] = std::move(value);
    }
    return json;
  }

  bool chance(unsigned one_in) { return random_() % one_in == 0; }
  uint64_t number(uint64_t below) { return random_() % below; }

  std::string word() {
    static const char* const kWords[] = {"a",          "B-2", "x.y/z", "with space",
                                         "\"quoted\"", "é",   "true",  "0"};
    return kWords[number(std::size(kWords))];
  }

  std::string quantity() {
    static const char* const kQuantities[] = {"1", "500m", "1Gi", "1536Mi", "2k", "100n", "1e3"};
    return kQuantities[number(std::size(kQuantities))];
  }

 private:
  static constexpr int kDepth = 9;

  Json value_of(const ApiField& field, int depth) {
    if (depth > kDepth && field.of != nullptr) return nullptr;
    if (field.list) {
      Json list = Json::array();
      for (uint64_t n = 1 + number(2); n > 0; --n) list.push_back(one(field, depth));
      return list;
    }
    if (!field.map) return one(field, depth);
    Json map = Json::object();
    for (uint64_t n = 1 + number(2); n > 0; --n) map[word()] = one(field, depth);
    return map;
  }

  Json one(const ApiField& field, int depth) {
    const std::string_view type = field.type;
    if (field.of != nullptr) return of(*field.of, depth + 1);
    if (type == "bool") return field.plain || chance(2);
    if (type == "int32") return field.plain ? 7 : static_cast<int>(number(5)) - 2;
    if (type == "int64") return int64_t{1} << (1 + number(40));
    if (type == "quantity") return quantity();
    if (type == "bytes") return chance(2) ? "aGVsbG8=" : "AP+A";
    if (type == "strings") return Json::array({word(), word()});
    if (type == "fields") return {{"f:spec", {{"f:x", Json::object()}}}};
    const auto seconds = static_cast<int64_t>(number(1u << 31)) - 500'000'000;
    if (type == "time") return time_text(seconds * 1000);
    if (type == "microtime") {
      std::string text = time_text(seconds * 1000);
      text.pop_back();
      return text + "." + std::to_string(100'000 + number(900'000)) + "Z";
    }
    return word();
  }

  std::mt19937_64 random_;
};

}  // namespace muster::api::testing
