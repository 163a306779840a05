// muster get coordinators, muster describe coordinator: who leads, and who could take over.
#include "cli/verbs/show/coordinators.hpp"

#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/table.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace muster::cli {
namespace {

using CoordinatorRows = std::vector<std::vector<std::string>>;

constexpr char kUnknown[] = "-";
constexpr char kStoreWiped[] =
    "the consensus store was wiped: restart the leader with --new-store, once";

std::string name_of(const Json& coordinator) {
  return text_at(coordinator, {"metadata", "name"});
}

std::string yes_or_no(const Json& coordinator, const char* field) {
  return at(coordinator, {"status", field}) == Json(true) ? "yes" : "no";
}

std::string number_text(const Json& coordinator, const char* field) {
  const Json& value = at(coordinator, {"status", field});
  return value.is_number() ? dumped(value) : kUnknown;
}

// "0.25ms"
std::string round_trip_text(const Json& coordinator) {
  const Json& value = at(coordinator, {"status", "roundTripSeconds"});
  if (!value.is_number()) return kUnknown;
  char text[32];
  std::snprintf(text, sizeof text, "%.2fms", value.get<double>() * 1000);
  return text;
}

std::string or_unknown(const std::string& text) {
  return text.empty() ? kUnknown : text;
}

std::string address_of(const Json& coordinator, const char* which) {
  return or_unknown(text_at(coordinator, {"status", "addresses", which}));
}

CoordinatorRows table_of(const std::vector<Json>& shown, bool wide) {
  CoordinatorRows rows = {
      {"NAME", "ROLE", "IN-SYNC", "CONNECTED", "TERM", "COMMIT", "LAG", "ROUND-TRIP"}};
  if (wide) rows[0].insert(rows[0].end(), {"API", "API-TLS", "LISTEN", "LISTEN-TLS", "VERSION"});
  for (const Json& one : shown) {
    rows.push_back({name_of(one), text_at(one, {"status", "role"}), yes_or_no(one, "inSync"),
                    yes_or_no(one, "connected"), number_text(one, "term"),
                    number_text(one, "commit"), number_text(one, "lag"), round_trip_text(one)});
    if (!wide) continue;
    for (const char* which : {"api", "apiTls", "listen", "listenTls"})
      rows.back().push_back(address_of(one, which));
    rows.back().push_back(or_unknown(text_at(one, {"status", "version"})));
  }
  return rows;
}

bool store_wiped(const Json& coordinator) {
  return at(coordinator, {"status", "storeWiped"}) == Json(true);
}

// What its state means for a takeover, for a person.
std::string standing_text(const Json& coordinator) {
  if (store_wiped(coordinator)) return "no: " + std::string(kStoreWiped);
  if (yes_or_no(coordinator, "inSync") == "yes") return "yes";
  return yes_or_no(coordinator, "connected") == "yes" ? "no: it is catching up with the leader"
                                                      : "no: it is not connected";
}

}  // namespace

bool is_coordinator_kind(std::string_view word) {
  const std::string_view kind = word.substr(0, word.find('/'));
  return kind == "coordinators" || kind == "coordinator" || kind == "coordinator.muster.dev" ||
         kind == "coordinators.muster.dev";
}

std::string coordinator_name(const std::string& word) {
  const size_t slash = word.find('/');
  return slash != std::string::npos && is_coordinator_kind(word) ? word.substr(slash + 1) : word;
}

Result<std::vector<Json>> coordinators(ApiClient& client) {
  auto list = object(client, kCoordinatorsPath);
  if (!list) return list.error();
  std::vector<Json> all;
  for (const Json& one : at(*list, {"items"})) all.push_back(one);
  std::sort(all.begin(), all.end(),
            [](const Json& a, const Json& b) { return name_of(a) < name_of(b); });
  return all;
}

Result<Json> coordinator(ApiClient& client, const std::string& name) {
  auto all = coordinators(client);
  if (!all) return all.error();
  for (Json& one : *all)
    if (name_of(one) == name) return std::move(one);
  return Error{Errc::not_found, "coordinator \"" + name + "\" not found", {}};
}

std::string leader_of(const std::vector<Json>& coordinators) {
  for (const Json& one : coordinators)
    if (text_at(one, {"status", "role"}) == "leader") return name_of(one);
  return "";
}

int64_t term_of(const std::vector<Json>& coordinators) {
  int64_t term = 0;
  for (const Json& one : coordinators) term = std::max(term, number_at(one, {"status", "term"}));
  return term;
}

int describe_coordinator(ApiClient& client, const std::string& name) {
  auto found = coordinator(client, name);
  if (!found) return fail(found.error());
  const Json& one = *found;
  const std::string role = text_at(one, {"status", "role"});
  CoordinatorRows rows = {{"Name:", name}, {"Role:", role}};
  if (role != "leader") rows.push_back({"Can take over:", standing_text(one)});
  rows.push_back({"Connected:", yes_or_no(one, "connected")});
  if (const std::string term = number_text(one, "term"); term != kUnknown)
    rows.push_back({"Term:", term});
  if (const std::string commit = number_text(one, "commit"); commit != kUnknown)
    rows.push_back(
        {"Commit:",
         commit + (role == "leader" ? "" : ", " + number_text(one, "lag") + " behind the leader")});
  if (const std::string trip = round_trip_text(one); trip != kUnknown)
    rows.push_back({"Round trip:", trip});
  if (at(one, {"status", "storeAnswers"}).is_boolean())
    rows.push_back(
        {"Store answers:",
         yes_or_no(one, "storeAnswers") +
             (store_wiped(one) ? ", but nobody can take over: " + std::string(kStoreWiped) : "")});
  for (const auto& [head, which] :
       {std::pair{"Peers:", "peers"}, std::pair{"API:", "api"},
        std::pair{"API over TLS:", "apiTls"}, std::pair{"Agents:", "listen"},
        std::pair{"Agents over TLS:", "listenTls"}})
    if (const std::string address = address_of(one, which); address != kUnknown)
      rows.push_back({head, address});
  rows.push_back({"Version:", or_unknown(text_at(one, {"status", "version"}))});
  std::cout << aligned(rows, "") << std::flush;
  return kDone;
}

int execute(const CoordinatorsOptions& options) {
  const auto client = connect(options.target);
  auto all = coordinators(*client);
  if (!all) return fail(all.error());
  int code = kDone;
  std::vector<Json> shown;
  if (options.names.empty()) shown = std::move(*all);
  for (const std::string& name : options.names) {
    const auto found = std::find_if(all->begin(), all->end(),
                                    [&name](const Json& one) { return name_of(one) == name; });
    if (found == all->end())
      code = fail(kNotFound, "coordinator \"" + name + "\" not found");
    else
      shown.push_back(*found);
  }
  for (Json& one : shown) {
    one["apiVersion"] = "muster.dev/v1";
    one["kind"] = "Coordinator";
  }
  if (options.output == Output::name) {
    for (const Json& one : shown) std::cout << "coordinator.muster.dev/" << name_of(one) << "\n";
  } else if (is_structured(options.output)) {
    const bool single = options.names.size() == 1 && shown.size() == 1;
    if (!single && options.names.size() == 1) return code;
    std::cout << structured_text(single ? shown.front()
                                        : Json{{"apiVersion", "v1"},
                                               {"kind", "List"},
                                               {"metadata", {{"resourceVersion", ""}}},
                                               {"items", shown}},
                                 options.output);
  } else if (!shown.empty()) {
    CoordinatorRows rows = table_of(shown, options.output == Output::wide);
    if (!options.headers) rows.erase(rows.begin());
    std::cout << aligned(rows, "");
  }
  std::cout << std::flush;
  if (std::any_of(shown.begin(), shown.end(), store_wiped))
    std::cerr << "muster: no coordinator can take over: " << kStoreWiped << std::endl;
  return code;
}

}  // namespace muster::cli
