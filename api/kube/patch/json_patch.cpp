#include "api/kube/patch/json_patch.hpp"

#include "base/text/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::api {
namespace {

using nlohmann::json;

Error beyond(std::string detail) {
  Error error = invalid("the JSON patch can't be applied: " + detail);
  error.violations.push_back({"patch", Violation::Kind::forbidden, "", std::move(detail)});
  return error;
}

// Applies RFC 6902 in place: a move does not copy. Counts copied bytes and shifted elements.
class Operations {
 public:
  explicit Operations(json root) : root_(std::move(root)) {}

  Result<json> apply(const json& patch) {
    if (!patch.is_array()) return invalid("a JSON patch must be a list of operations (RFC 6902)");
    if (patch.size() > kPatchOperationsMax)
      return beyond("it has " + std::to_string(patch.size()) + " operations; at most " +
                    std::to_string(kPatchOperationsMax) + " are allowed");
    for (size_t i = 0; i < patch.size(); ++i) {
      if (step(patch[i])) continue;
      if (!bound_.empty()) return beyond(bound_);
      if (failed_test_) return Error{Errc::invalid, "a test failed", {*failed_test_}};
      return invalid("the JSON patch can't be applied: operation " + std::to_string(i) + ": " +
                     problem_);
    }
    if (!measured(root_, SIZE_MAX)) return beyond(bound_);
    return std::move(root_);
  }

 private:
  using Path = std::vector<std::string>;

  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  // The patch can be read, but does not fit the object (422).
  bool failed_test(const std::string& pointer) {
    failed_test_ = {pointer, Violation::Kind::invalid, "", "the test of the JSON patch failed"};
    return false;
  }

  const std::string* text(const json& operation, const char* name) {
    auto it = operation.find(name);
    return it == operation.end() || !it->is_string() ? nullptr : &it->get_ref<const std::string&>();
  }

  // Reads the tokens of a pointer (RFC 6901).
  bool read_path(const json& operation, const char* name, Path& path) {
    const std::string* pointer = text(operation, name);
    if (!pointer) return fail(std::string("needs the member '") + name + "', a JSON pointer");
    if (!pointer->empty() && pointer->front() != '/')
      return fail("the JSON pointer \"" + *pointer + "\" must begin with '/'");
    for (size_t at = 0; at < pointer->size();) {
      const size_t end = std::min(pointer->find('/', at + 1), pointer->size());
      std::string& token = path.emplace_back();
      for (size_t i = at + 1; i < end; ++i) {
        char c = (*pointer)[i];
        if (c == '~') {
          if (++i == end || ((*pointer)[i] != '0' && (*pointer)[i] != '1'))
            return fail("the JSON pointer \"" + *pointer +
                        "\" has a '~' that is not followed by 0 or 1");
          c = (*pointer)[i] == '0' ? '~' : '/';
        }
        token += c;
      }
      at = end;
    }
    if (path.size() > kJsonDepthMax) return fail("the JSON pointer is too deep");
    return true;
  }

  bool nothing_at(const Path& path, size_t depth) {
    std::string where;
    for (size_t i = 0; i <= depth && i < path.size(); ++i) where += "/" + path[i];
    return fail("there is no value at \"" + where + "\"");
  }

  static std::optional<size_t> index_of(const std::string& token) {
    size_t index = 0;
    auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
    const bool plain = token == "0" || (!token.empty() && token.front() != '0');
    if (!plain || error != std::errc{} || end != token.data() + token.size()) return std::nullopt;
    return index;
  }

  // The value that the first `depth` tokens point to.
  json* find(const Path& path, size_t depth) {
    json* at = &root_;
    for (size_t i = 0; i < depth; ++i) {
      json* next = nullptr;
      if (at->is_object()) {
        if (auto it = at->find(path[i]); it != at->end()) next = &*it;
      } else if (at->is_array()) {
        if (const auto index = index_of(path[i]); index && *index < at->size())
          next = &(*at)[*index];
      }
      if (!next) {
        nothing_at(path, i);
        return nullptr;
      }
      at = next;
    }
    return at;
  }

  bool shift(size_t elements) {
    shifted_ += elements;
    if (shifted_ > kPatchShiftMax)
      bound_ = "it shifts more than " + std::to_string(kPatchShiftMax) + " list elements";
    return bound_.empty();
  }

  bool add(const Path& path, json value) {
    if (path.empty()) {
      root_ = std::move(value);
      return true;
    }
    json* parent = find(path, path.size() - 1);
    if (!parent) return false;
    const std::string& last = path.back();
    if (parent->is_object()) {
      (*parent)[last] = std::move(value);
      return true;
    }
    if (!parent->is_array()) return nothing_at(path, path.size() - 1);
    if (last == "-") {
      parent->push_back(std::move(value));
      return true;
    }
    const auto index = index_of(last);
    if (!index || *index > parent->size()) return nothing_at(path, path.size() - 1);
    if (!shift(parent->size() - *index)) return false;
    parent->insert(parent->begin() + static_cast<ptrdiff_t>(*index), std::move(value));
    return true;
  }

  bool remove(const Path& path) {
    if (path.empty()) return fail("the whole object can't be removed");
    if (!find(path, path.size())) return false;
    json* parent = find(path, path.size() - 1);
    if (parent->is_object()) {
      parent->erase(path.back());
      return true;
    }
    const size_t index = *index_of(path.back());
    if (!shift(parent->size() - index)) return false;
    parent->erase(index);
    return true;
  }

  bool move(const Path& from, const Path& path) {
    json* value = find(from, from.size());
    if (!value) return false;
    if (from == path) return true;
    if (from.size() < path.size() && std::equal(from.begin(), from.end(), path.begin()))
      return fail("a value can't be moved into itself");
    json moved = std::move(*value);
    return remove(from) && add(path, std::move(moved));
  }

  // Measures the memory and depth of `value`. Not recursive, because operations can nest values
  // deeper than any parsed text.
  bool measured(const json& value, size_t most) {
    constexpr size_t kLeast = sizeof(json);
    std::vector<std::pair<const json*, size_t>> open{{&value, 1}};
    size_t bytes = 0;
    while (!open.empty()) {
      const auto [at, depth] = open.back();
      open.pop_back();
      bytes += kLeast;
      if (at->is_string()) bytes += at->get_ref<const std::string&>().size();
      if (bytes > most)
        bound_ = "it copies more than " + std::to_string(kPatchCopyMax) + " bytes";
      else if (depth > kJsonDepthMax)
        bound_ = "it nests deeper than " + std::to_string(kJsonDepthMax) + " levels";
      if (!bound_.empty()) return false;
      if (at->is_array())
        for (const json& one : *at) open.emplace_back(&one, depth + 1);
      if (at->is_object())
        for (auto it = at->begin(); it != at->end(); ++it) {
          bytes += it.key().size();
          open.emplace_back(&*it, depth + 1);
        }
    }
    if (most != SIZE_MAX) copied_ += bytes;
    return true;
  }

  bool step(const json& operation) {
    if (!operation.is_object()) return fail("must be an object");
    const std::string* op = text(operation, "op");
    if (!op) return fail("needs the member 'op'");
    Path path, from;
    if (!read_path(operation, "path", path)) return false;
    if (*op == "remove") return remove(path);
    if (*op == "move" || *op == "copy") {
      if (!read_path(operation, "from", from)) return false;
      if (*op == "move") return move(from, path);
      const json* value = find(from, from.size());
      return value && measured(*value, kPatchCopyMax - copied_) && add(path, *value);
    }
    if (*op != "add" && *op != "replace" && *op != "test")
      return fail("\"" + *op + "\" is not an operation");
    auto value = operation.find("value");
    if (value == operation.end()) return fail("needs the member 'value'");
    if (*op == "add") return add(path, *value);
    json* there = find(path, path.size());
    if (!there) return false;
    if (*op == "replace")
      *there = *value;
    else if (*there != *value)
      return failed_test(*text(operation, "path"));
    return true;
  }

  json root_;
  size_t copied_ = 0, shifted_ = 0;
  std::string problem_, bound_;
  std::optional<Violation> failed_test_;
};

}  // namespace

Result<json> apply_operations(json base, const json& patch) {
  return Operations(std::move(base)).apply(patch);
}

}  // namespace muster::api
