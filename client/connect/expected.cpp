#include "client/connect/expected.hpp"

#include "base/printable.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace muster::cli {
namespace {

constexpr uint64_t kListMax = uint64_t{2} << 30;  // bytes; a list of 10^6 pods takes 1.4 GB
constexpr uint64_t kOneMax = uint64_t{64} << 20;  // bytes of any other JSON
constexpr size_t kShownMax = 60;                  // bytes of an answer in an error
constexpr std::string_view kEventBegins = R"({"type":")";

struct KindOfPath {
  std::string_view plural, kind, version;
  bool with_uid;  // what muster provides itself, such as the namespace `default`, has none
};
constexpr std::array kKindsOfPaths = {
    KindOfPath{"jobs", "Job", "batch/v1", true},
    KindOfPath{"pods", "Pod", "v1", true},
    KindOfPath{"nodes", "Node", "v1", true},
    KindOfPath{"events", "Event", "v1", false},
    KindOfPath{"configmaps", "ConfigMap", "v1", false},
    KindOfPath{"namespaces", "Namespace", "v1", false},
    KindOfPath{"cronjobs", "CronJob", "batch/v1", true},
    KindOfPath{"queues", "Queue", "muster.dev/v1", true},
    KindOfPath{"priorityclasses", "PriorityClass", "scheduling.k8s.io/v1", true},
};

constexpr std::string_view kOwnVersion = "muster.dev/v1";

// "%2D" -> "-"
std::string url_decoded(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    out += escaped ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    if (escaped) i += 2;
  }
  return out;
}

std::vector<std::string> path_parts(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const size_t end = std::min(path.find('/'), path.size());
    parts.push_back(url_decoded(path.substr(0, end)));
    path.remove_prefix(end);
  }
  return parts;
}

// "Text/Plain; charset=utf-8" -> "text/plain"
std::string media_type(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return type;
}

std::string shown_type(const std::string& content_type) {
  return content_type.empty() ? "no content type"
                              : on_one_line(utf8_prefix(content_type, kShownMax));
}

// ` ("<html>...")`
std::string in_brackets(std::string_view body) {
  return body.empty() ? "" : " (" + shown_bytes(body) + ")";
}

std::string a(const std::string& kind, const std::string& version) {
  return kind + (version.empty() ? "" : " of " + version);
}

// "an object of kind X of v1", as it says itself.
std::string kind_met(const Json& json) {
  const std::string kind = text_at(json, {"kind"}), version = text_at(json, {"apiVersion"});
  if (kind.empty()) return shown_bytes(dumped(json));
  return on_one_line(utf8_prefix(a(kind, version), kShownMax));
}

// The kind of the items that GET /apis/muster.dev/v1/PLURAL lists; null: not a list.
const char* own_list_of(std::string_view plural) {
  return plural == "nodes"          ? "NodeUse"
         : plural == "demand"       ? "Demand"
         : plural == "tokens"       ? "Token"
         : plural == "coordinators" ? "Coordinator"
                                    : nullptr;
}

bool is_event_type(const std::string& type) {
  return type == "ADDED" || type == "MODIFIED" || type == "DELETED" || type == "BOOKMARK" ||
         type == "ERROR";
}

}  // namespace

std::string shown_bytes(std::string_view text) {
  const std::string begin = on_one_line(utf8_prefix(text, kShownMax));
  return "\"" + begin + (text.size() > kShownMax ? "..." : "") + "\"";
}

Expected::Expected(std::string_view method, const std::string& path, std::string_view accept,
                   const std::string* body) {
  const size_t query_at = std::min(path.find('?'), path.size());
  const std::string query = path.substr(query_at) + "&";
  const std::vector<std::string> parts = path_parts(std::string_view(path).substr(0, query_at));
  const Json sent = body != nullptr ? read_json(*body) : Json();
  watch_ = query.find("watch=true&") != std::string::npos;
  cells_ = query.find("includeObject=None&") != std::string::npos;
  endless_ = watch_ || query.find("follow=true&") != std::string::npos;
  const auto begins = [&parts](std::initializer_list<std::string_view> with) {
    return parts.size() >= with.size() && std::equal(with.begin(), with.end(), parts.begin());
  };
  if (begins({"apis", "muster.dev", "v1"})) {
    find_own({parts.begin() + 3, parts.end()}, method, sent);
  } else if (begins({"apis", "batch", "v1"})) {
    find_object({parts.begin() + 3, parts.end()}, method, accept, sent);
  } else if (begins({"api", "v1"})) {
    find_object({parts.begin() + 2, parts.end()}, method, accept, sent);
  } else if (begins({"version"})) {
    fields_ = {{Field::Type::mention, "gitVersion", "muster"}};
  } else if (begins({"openapi", "v3"})) {
    fields_ = {{Field::Type::text, "openapi"}};
  } else if (begins({"readyz"}) || begins({"healthz"}) || begins({"metrics"})) {
    form_ = Form::text;
  }
}

// [namespaces/NS/]PLURAL[/NAME[/log|/eviction]]
void Expected::find_object(const std::vector<std::string>& path, std::string_view method,
                           std::string_view accept, const Json& body) {
  size_t at = 0;
  if (path.size() > 2 && path[0] == "namespaces") {
    ns_ = path[1];
    at = 2;
  }
  if (at == path.size()) return;
  const auto* const known =
      std::find_if(kKindsOfPaths.begin(), kKindsOfPaths.end(),
                   [&](const KindOfPath& one) { return one.plural == path[at]; });
  if (known == kKindsOfPaths.end()) return;
  kind_ = known->kind;
  version_ = known->version;
  with_uid_ = known->with_uid;
  named_ = true;
  if (at + 1 < path.size()) name_ = path[at + 1];
  const std::string sub = at + 2 < path.size() ? path[at + 2] : "";
  const bool creates = method == "POST" && name_.empty();
  if (creates) {
    name_ = text_at(body, {"metadata", "name"});
    if (name_.empty()) generated_from_ = text_at(body, {"metadata", "generateName"});
  }
  if (sub == "log")
    form_ = Form::text;
  else if (sub == "eviction")
    form_ = Form::success;
  else if (method == "DELETE")
    form_ = Form::deleted;
  else if (accept.find("as=Table") != std::string_view::npos)
    form_ = Form::table;
  else
    form_ = creates || !name_.empty() ? Form::one : Form::list;
}

namespace {

// Of a token, in the path that makes one.
const char* holder_in(std::string_view plural) {
  return plural == "users"   ? "user"
         : plural == "nodes" ? "node"
         : plural == "pools" ? "pool"
                             : "coordinator";
}

}  // namespace

// The paths below /apis/muster.dev/v1.
void Expected::find_own(const std::vector<std::string>& path, std::string_view method,
                        const Json& body) {
  using Type = Field::Type;
  version_ = kOwnVersion;
  const auto is = [&path](std::initializer_list<std::string_view> pattern) {
    return path.size() == pattern.size() &&
           std::equal(path.begin(), path.end(), pattern.begin(),
                      [](const std::string& part, std::string_view wanted) {
                        return wanted == "*" || part == wanted;
                      });
  };
  const auto one = [this](const char* kind, std::vector<Field> fields) {
    form_ = Form::one;
    kind_ = kind;
    fields_ = std::move(fields);
  };
  const auto list = [this](const char* kind) {
    form_ = Form::list;
    kind_ = kind;
  };
  if (is({"backups"})) {
    one("Backup", {{Type::text, "dir", text_at(body, {"dir"})},
                   {Type::number, "commit"},
                   {Type::number, "files"},
                   {Type::number, "bytes"}});
  } else if (is({"verification"})) {
    one("Verification", {{Type::number, "commit"},
                         {Type::number, "jobs"},
                         {Type::number, "attempts"},
                         {Type::number, "counted"},
                         {Type::texts, "mismatches"}});
  } else if (const char* of = path.size() == 1 ? own_list_of(path[0]) : nullptr) {
    list(of);
  } else if (is({"links"})) {
    one("Links", {{Type::text, "authority"}, {Type::text, "api"}});
  } else if (is({"munge"}) && method == "GET") {
    one("MungeAudience", {{Type::text, "cluster"}, {Type::text, "start"}});
  } else if (is({"munge"})) {
    one("Token", {{Type::text, "id"}, {Type::text, "text"}});
  } else if (is({"users", "*", "token"}) && at(body, {"login"}) == Json(true)) {
    one("Login", {{Type::text, "user", path[1]}, {Type::text, "code"}});
  } else if (path.size() == 3 && path[2] == "token") {
    one("Token",
        {{Type::text, holder_in(path[0]), path[1]}, {Type::text, "id"}, {Type::text, "text"}});
  } else if (is({"nodes", "*", "claims"})) {
    one("NodeClaims", {{Type::text, "node", path[1]}, {Type::flag, "asRegistered"}});
  } else if (is({"tokens", "*"}) || is({"nodes", "*", "revocation"}) ||
             is({"nodes", "*", "unknownpods"}) || (path.size() > 1 && path[0] == "coordinators") ||
             (method == "DELETE" && is({"namespaces", "*", "jobs", "*", "hold"}))) {
    form_ = Form::success;
  } else if (is({"namespaces", "*", "jobs", "*", "why"})) {
    one("Explanation", {{Type::text, "state"}, {Type::text, "summary"}, {Type::texts, "details"}});
  } else if (is({"namespaces", "*", "jobs", "*", "hold"})) {
    one("Hold", {{Type::text, "by"}, {Type::text, "reason"}});
  } else if (is({"namespaces", "*", "jobs", "*", "cancel"})) {
    one("Cancellation", {{Type::text, "by"}});
  } else if (is({"namespaces", "*", "jobs", "*", "usage"})) {
    one("JobUsage", {{Type::number, "peakMemoryBytes"}});
  } else if (is({"namespaces", "*", "jobs", "*", "attempts"}) ||
             is({"namespaces", "*", "history", "*", "attempts"})) {
    list("Attempt");
  } else if (!path.empty() && (path.back() == "history" || path.back() == "report")) {
    list(path.back() == "history" ? "HistoryEntry" : "UsageSum");
  } else if (is({"namespaces", "*", "jobs", "*", "indexes"})) {
    one("IndexMap", {});
    ns_ = path[1];
    name_ = path[3];
  } else if (is({"namespaces", "*", "jobs", "*", "log"})) {
    form_ = Form::text;
  } else if (is({"namespaces", "*", "pods", "*", "exec"})) {
    if (method == "POST")
      one("Exec", {{Type::text, "session", text_at(body, {"session"})}});
    else if (method == "GET")
      one("ExecOutput", {{Type::text, "stdout"}, {Type::text, "stderr"}, {Type::flag, "ended"}});
    else if (method == "PUT")
      one("ExecInput", {{Type::number, "taken"}, {Type::flag, "closed"}});
    else
      form_ = Form::success;
  }
}

uint64_t Expected::size_max() const {
  const bool many = form_ == Form::list || form_ == Form::table || form_ == Form::text;
  return many ? kListMax : kOneMax;
}

std::optional<std::string> Expected::misfit_of_head(int status, const std::string& content_type,
                                                    std::string_view beginning) const {
  if (status != 200 && status != 201)
    return "HTTP " + std::to_string(status) + in_brackets(beginning);
  const bool text = form_ == Form::text;
  if (media_type(content_type) == (text ? "text/plain" : "application/json")) return std::nullopt;
  return shown_type(content_type) + in_brackets(beginning);
}

std::optional<std::string> Expected::misfit(Response& answer) const {
  // Whatever stands before a coordinator may say in its own way that it is away.
  if (answer.status >= 500) return std::nullopt;
  if (answer.status >= 400) {
    const Json json = read_json(answer.body);
    if (media_type(answer.content_type) == "application/json" &&
        text_at(json, {"kind"}) == "Status" && text_at(json, {"status"}) == "Failure")
      return std::nullopt;
    return "HTTP " + std::to_string(answer.status) + " and " + shown_type(answer.content_type) +
           in_brackets(answer.body);
  }
  if (auto why = misfit_of_head(answer.status, answer.content_type, answer.body)) return why;
  if (form_ == Form::text) return std::nullopt;
  Json json = read_json(answer.body);
  if (!json.is_object()) {
    if (answer.body.empty()) return "an empty body";
    return (json.is_discarded() ? "what is not JSON: " : "what is not an object: ") +
           shown_bytes(answer.body);
  }
  if (auto why = misfit_of_value(json)) return why;
  answer.json = std::move(json);
  return std::nullopt;
}

std::optional<std::string> Expected::misfit_of_value(const Json& json) const {
  switch (form_) {
    case Form::any:
    case Form::text:
      return misfit_of_fields(json);
    case Form::one:
      return misfit_of_object(json);
    case Form::list:
      return misfit_of_list(json);
    case Form::table:
      return misfit_of_table(json);
    case Form::success:
      return misfit_of_success(json);
    case Form::deleted:
      return text_at(json, {"kind"}) == "Status" ? misfit_of_success(json) : misfit_of_object(json);
  }
  return std::nullopt;
}

std::optional<std::string> Expected::misfit_of_event(std::string_view line, bool cut_off) const {
  const Json event = read_json(line);
  const std::string type = text_at(event, {"type"});
  if (!is_event_type(type)) {
    const size_t common = std::min(line.size(), kEventBegins.size());
    if (cut_off && event.is_discarded() && line.substr(0, common) == kEventBegins.substr(0, common))
      return std::nullopt;
    return "what is not an event of a watch: " + shown_bytes(line);
  }
  const Json& object = at(event, {"object"});
  if (type == "ERROR") {
    if (text_at(object, {"kind"}) == "Status") return std::nullopt;
    return "an error that is " + kind_met(object) + " instead of a Status";
  }
  if (form_ == Form::table) return misfit_of_table(object);
  if (text_at(object, {"kind"}) != kind_ || text_at(object, {"apiVersion"}) != version_)
    return "an event of " + kind_met(object) + " instead of " + a(kind_, version_);
  // A bookmark has only a version.
  return type == "BOOKMARK" ? std::nullopt : misfit_of_metadata(at(object, {"metadata"}));
}

std::optional<std::string> Expected::misfit_of_object(const Json& json) const {
  if (text_at(json, {"kind"}) != kind_ || text_at(json, {"apiVersion"}) != version_)
    return kind_met(json) + " instead of " + a(kind_, version_);
  if (auto why = misfit_of_fields(json)) return why;
  if (version_ == kOwnVersion && name_.empty()) return std::nullopt;
  for (const char* part : {"spec", "status"})
    if (json.contains(part) && !json.at(part).is_object())
      return a(kind_, version_) + " whose " + part + " is " + shown_bytes(dumped(json.at(part)));
  return misfit_of_metadata(at(json, {"metadata"}));
}

std::optional<std::string> Expected::misfit_of_metadata(const Json& metadata) const {
  const std::string name = text_at(metadata, {"name"}), ns = text_at(metadata, {"namespace"});
  const std::string what = a(kind_, version_);
  if (name.empty()) return what + " without a name";
  if ((!name_.empty() && name != name_) || !name.starts_with(generated_from_))
    return what + " with the name " + shown_bytes(name) + " instead of " +
           shown_bytes(name_.empty() ? generated_from_ + "..." : name_);
  if (!ns_.empty() && ns != ns_)
    return what + " in the namespace " + shown_bytes(ns) + " instead of " + shown_bytes(ns_);
  if (with_uid_ && text_at(metadata, {"uid"}).empty()) return what + " without a uid";
  return std::nullopt;
}

std::optional<std::string> Expected::misfit_of_list(const Json& json) const {
  if (text_at(json, {"kind"}) != kind_ + "List" || text_at(json, {"apiVersion"}) != version_)
    return kind_met(json) + " instead of " + a(kind_ + "List", version_);
  const Json& items = at(json, {"items"});
  if (!items.is_array()) return a(kind_ + "List", version_) + " without items";
  for (const Json& item : items) {
    if (!item.is_object())
      return a(kind_ + "List", version_) + " with the item " + shown_bytes(dumped(item));
    if (!named_) continue;
    if (auto why = misfit_of_metadata(at(item, {"metadata"}))) return why;
  }
  return std::nullopt;
}

std::optional<std::string> Expected::misfit_of_table(const Json& json) const {
  constexpr const char* kTableVersion = "meta.k8s.io/v1";
  if (text_at(json, {"kind"}) != "Table" || text_at(json, {"apiVersion"}) != kTableVersion)
    return kind_met(json) + " instead of " + a("Table", kTableVersion);
  const Json& rows = at(json, {"rows"});
  if (!rows.is_array()) return "a Table without rows";
  if (!name_.empty() && rows.size() != 1)
    return "a Table of " + std::to_string(rows.size()) + " rows instead of one";
  for (const Json& row : rows) {
    if (!at(row, {"cells"}).is_array()) return "a Table with a row without cells";
    const Json& shown = at(row, {"object"});
    if (cells_ && shown.is_null()) continue;  // earlier versions send one
    if (auto why = misfit_of_metadata(at(shown, {"metadata"}))) return why;
  }
  return std::nullopt;
}

std::optional<std::string> Expected::misfit_of_fields(const Json& json) const {
  for (const Field& field : fields_) {
    const Json& value = at(json, {field.name});
    bool fits = false;
    switch (field.type) {
      case Field::Type::text:
        fits = value.is_string() && (field.value.empty() || value == field.value);
        break;
      case Field::Type::mention:
        fits = value.is_string() &&
               value.get_ref<const std::string&>().find(field.value) != std::string::npos;
        break;
      case Field::Type::number:
        fits = value.is_number_integer();
        break;
      case Field::Type::flag:
        fits = value.is_boolean();
        break;
      case Field::Type::texts:
        fits = value.is_array() && std::all_of(value.begin(), value.end(),
                                               [](const Json& one) { return one.is_string(); });
        break;
    }
    if (fits) continue;
    const std::string what = kind_.empty() ? shown_bytes(dumped(json)) : a(kind_, version_);
    return what + (value.is_null()
                       ? " without " + std::string(field.name)
                       : " whose " + std::string(field.name) + " is " + shown_bytes(dumped(value)));
  }
  return std::nullopt;
}

std::optional<std::string> Expected::misfit_of_success(const Json& json) const {
  if (text_at(json, {"kind"}) != "Status" || text_at(json, {"apiVersion"}) != "v1" ||
      text_at(json, {"status"}) != "Success")
    return kind_met(json) + " instead of a Status of success";
  if (name_.empty()) return std::nullopt;
  const std::string name = text_at(json, {"details", "name"});
  if (name == name_) return std::nullopt;
  return "a Status of success " +
         (name.empty() ? "that names nothing" : "for " + shown_bytes(name)) + " instead of " +
         shown_bytes(name_);
}

}  // namespace muster::cli
