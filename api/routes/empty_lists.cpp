#include "api/routes/empty_lists.hpp"

namespace muster::api {
namespace {

struct Row {
  std::string_view root;  // /api/v1, /apis/policy/v1
  std::string_view resource;
  std::string_view kind;
};
constexpr Row kRows[] = {{"/api/v1", "services", "Service"},
                         {"/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"}};

// The row, and the object's name if the path has one.
std::pair<const Row*, std::string> row_of(const Url& url) {
  const std::vector<std::string>& p = url.path;
  for (const Row& row : kRows) {
    std::string path;
    size_t at = 0;
    while (at < p.size() && path.size() < row.root.size()) path += "/" + p[at++];
    if (path != row.root) continue;
    if (at + 2 < p.size() && p[at] == "namespaces") at += 2;
    if (at < p.size() && p[at] == row.resource && p.size() <= at + 2)
      return {&row, at + 1 < p.size() ? p[at + 1] : ""};
  }
  return {nullptr, ""};
}

}  // namespace

bool is_empty_list(const Url& url) {
  return row_of(url).first != nullptr;
}

kj::Promise<void> answer_empty_list(Exchange& exchange, uint64_t version) {
  const auto [row, name] = row_of(exchange.url);
  const std::string resource(row->resource);
  if (exchange.method != kj::HttpMethod::GET || exchange.url.flag("watch")) {
    exchange.headers.push_back({"Allow", "GET"});
    return exchange.send_status(405, "MethodNotAllowed",
                                resource + " are not supported; only an empty list is served");
  }
  if (!name.empty()) return exchange.send_error({Errc::not_found, "", {}}, resource, name);
  OrderedJson list = {{"kind", std::string(row->kind) + "List"},
                      {"apiVersion", row->root.substr(row->root.find('/', 1) + 1)},
                      {"metadata", {{"resourceVersion", std::to_string(version)}}}};
  list["items"] = OrderedJson::array();
  return exchange.send(200, dumped(list) + "\n");
}

}  // namespace muster::api
