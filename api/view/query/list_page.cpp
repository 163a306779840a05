#include "api/view/query/list_page.hpp"

#include "api/view/query/object_json.hpp"

#include <kj/encoding.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace muster::api {
namespace {

constexpr const char* kForm = "muster.dev/v1";  // version of the token's format

bool read(const Json& from, const char* name, std::string& to) {
  auto it = from.find(name);
  if (it == from.end() || !it->is_string()) return false;
  to = it->get<std::string>();
  return true;
}

template <class Int>
bool read(const Json& from, const char* name, Int& to) {
  auto it = from.find(name);
  if (it == from.end() || !it->is_number_unsigned()) return false;
  const uint64_t n = it->get<uint64_t>();
  to = static_cast<Int>(n);
  return to == n;
}

// Reads the fields of a token; false if we did not make it.
bool read_token(std::string text, ListPage& page) {
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  const auto bytes = kj::decodeBase64(kj::arrayPtr(text.data(), text.size()));
  if (bytes.hadErrors) return false;
  const Json json = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (!json.is_object() || json.value("v", Json()) != kForm) return false;
  page.resumed = true;
  Position& at = page.after;
  return read(json, "rv", page.version) && read(json, "ns", at.ns) && read(json, "name", at.name) &&
         read(json, "job", at.job) && read(json, "index", at.pod.index) &&
         read(json, "attempt", at.pod.attempt) && read(json, "nr", at.nr) &&
         (!json.contains("passed") || read(json, "passed", page.passed));
}

}  // namespace

Position position_of(const Shown& shown) {
  if (shown.kind == Kind::node) return {"", shown.node->name, 0, {}, 0};
  if (shown.kept) return {shown.kept->kept->ns, shown.kept->kept->name, kAfterJobs, {}, 0};
  const core::JobMeta& meta = shown.job->object().meta;
  Position at{meta.ns, meta.name, shown.job->id(), {}, 0};
  if (shown.kind == Kind::pod) at.pod = shown.pod->key;
  if (shown.kind == Kind::event) at.nr = shown.event->nr;
  return at;
}

Result<ListPage> page_of(const Url& url) {
  ListPage page;
  if (const std::string text = url.get("limit"); !text.empty()) {
    int64_t n = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc{} || end != text.data() + text.size() || n < 0)
      return invalid("limit: Invalid value: \"" + text + "\": must be a number, at least 0");
    page.limit = static_cast<uint64_t>(n);
  }
  const std::string token = url.get("continue"), version = url.get("resourceVersion");
  if (token.empty()) return page;
  if (!version.empty() && version != "0")
    return invalid("specifying resource version is not allowed when using continue");
  if (!read_token(token, page) || continue_token(page, page.after) != token)
    return invalid("continue key is not valid: not a list token");
  return page;
}

std::string continue_token(const ListPage& page, const Position& last) {
  Json token{{"v", kForm},
             {"rv", page.version},
             {"ns", last.ns},
             {"name", last.name},
             {"job", last.job},
             {"index", last.pod.index},
             {"attempt", last.pod.attempt},
             {"nr", last.nr}};
  if (page.passed > 0) token["passed"] = page.passed;
  const std::string text = token.dump(-1, ' ', false, Json::error_handler_t::replace);
  const kj::String encoded = kj::encodeBase64Url(
      kj::arrayPtr(reinterpret_cast<const kj::byte*>(text.data()), text.size()));
  return {encoded.begin(), encoded.size()};
}

}  // namespace muster::api
