// muster reserve: reserves nodes for a time, for maintenance or for some users, lists what is
// reserved, and gives it up. A reservation is an annotation of each of its nodes
// (core/spec/values/window.hpp), which this changes one after the other.
#include "base/text/comma_list.hpp"
#include "cli/verbs/reservations.hpp"
#include "cli/verbs/verb.hpp"
#include "cli/verbs/when.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/values/names.hpp"
#include "core/spec/values/window.hpp"

#include <algorithm>
#include <charconv>
#include <grp.h>
#include <iostream>
#include <map>
#include <memory>
#include <set>

namespace muster::cli {

struct ReserveOptions {
  Target target;
  core::Window window;             // an empty name: list them
  std::vector<std::string> nodes;  // names
  std::string selector;
  bool remove = false;
};

namespace {

// `words`, each of which may be a list: "a,b".
std::vector<std::string> split(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const std::string& word : words)
    for (std::string& one : split_at_commas(word)) all.push_back(std::move(one));
  return all;
}

std::optional<uint32_t> gid_of(const std::string& group) {
  if (const struct group* found = ::getgrnam(group.c_str())) return found->gr_gid;
  uint32_t gid = 0;
  const auto [end, error] = std::from_chars(group.data(), group.data() + group.size(), gid);
  if (error != std::errc{} || end != group.data() + group.size()) return std::nullopt;
  return gid;
}

Result<Json> all_nodes(ApiClient& client, const std::string& selector) {
  return object(client, "/api/v1/nodes" +
                            (selector.empty() ? "" : "?labelSelector=" + url_encoded(selector)));
}

std::string key_of(const std::string& name) {
  return std::string(core::kWindowKeys) + name;
}

int list(ApiClient& client) {
  auto nodes = all_nodes(client, "");
  if (!nodes) return fail(nodes.error());
  struct Row {
    core::Window window;
    std::string nodes;
  };
  std::map<std::tuple<Millis, std::string, std::string>, Row> rows;
  const Millis now = wall_now();
  for (const Json& node : at(*nodes, {"items"}))
    for (core::Window& window : windows_on(node)) {
      if (window.until_ms <= now) continue;
      const std::string text = core::window_text(window);
      Row& row = rows[{window.from_ms, window.name, text}];
      row.nodes += (row.nodes.empty() ? "" : ",") + text_at(node, {"metadata", "name"});
      row.window = std::move(window);
    }
  if (rows.empty()) {
    std::cerr << "No nodes are reserved.\n";
    return kDone;
  }
  std::vector<std::vector<std::string>> cells = {
      {"NAME", "FROM", "UNTIL", "USERS", "BY", "NODES", "REASON"}};
  for (const auto& [key, row] : rows) {
    const core::Window& w = row.window;
    cells.push_back({w.name, when_text(w.from_ms), when_text(w.until_ms), users_text(w),
                     w.by.empty() ? "<unknown>" : w.by, row.nodes,
                     w.reason.empty() ? "<none>" : w.reason});
  }
  std::cout << aligned(cells, "") << std::flush;
  return kDone;
}

// Also removes what is over. `warned`: what has been said about other nodes and is not repeated.
Status change(ApiClient& client, const Json& node, const ReserveOptions& options,
              std::set<std::string>& warned) {
  Json annotations = Json::object();
  for (const core::Window& window : windows_on(node))
    if (window.until_ms <= wall_now()) annotations[key_of(window.name)] = nullptr;
  Json& own = annotations[key_of(options.window.name)];
  if (!options.remove) own = core::window_text(options.window);
  const Json patch = {{"metadata", {{"annotations", std::move(annotations)}}}};
  auto answer =
      client.patch(object_path(Kind::node, "", text_at(node, {"metadata", "name"})), dumped(patch));
  if (!answer) return answer.error();
  if (!answer->ok()) return refusal(*answer);
  std::erase_if(answer->warnings,
                [&warned](const std::string& one) { return !warned.insert(one).second; });
  print_warnings(*answer);
  return Nothing{};
}

// The nodes to change; an error if one that was named does not exist, or there are none.
Result<std::vector<Json>> chosen(ApiClient& client, const ReserveOptions& options) {
  auto nodes = all_nodes(client, options.selector);
  if (!nodes) return nodes.error();
  std::vector<std::string> missing = options.nodes;
  std::vector<Json> chosen;
  for (const Json& node : at(*nodes, {"items"})) {
    const std::string name = text_at(node, {"metadata", "name"});
    const bool named = std::erase(missing, name) > 0;
    const std::vector<core::Window> has = windows_on(node);
    const bool reserved =
        std::ranges::find(has, options.window.name, &core::Window::name) != has.end();
    const bool any = options.nodes.empty() && (!options.selector.empty() || options.remove);
    if ((named || any) && (!options.remove || reserved)) chosen.push_back(node);
  }
  if (!missing.empty())
    return Error{Errc::not_found,
                 "there is no node " + listed(missing) + "; `muster get nodes` lists them",
                 {}};
  if (chosen.empty() && options.remove)
    return Error{Errc::not_found, "there is no reservation " + options.window.name, {}};
  if (chosen.empty()) return Error{Errc::not_found, "no node has labels " + options.selector, {}};
  return chosen;
}

}  // namespace

int execute(const ReserveOptions& options) {
  const auto client = connect(options.target);
  if (options.window.name.empty()) return list(*client);
  auto nodes = chosen(*client, options);
  if (!nodes) return fail(nodes.error());
  int code = kDone;
  std::set<std::string> warned;
  for (const Json& node : *nodes) {
    const std::string name = text_at(node, {"metadata", "name"});
    if (const Status done = change(*client, node, options, warned); !done) {
      code = fail(done.error());
      if (code == kUnreachable) return code;
      continue;
    }
    std::cout << "node/" << name
              << (options.remove ? " no longer reserved"
                                 : " reserved from " + when_text(options.window.from_ms) +
                                       " until " + when_text(options.window.until_ms))
              << std::endl;
  }
  return code;
}

namespace {

struct ReserveWords {
  ReserveOptions o;
  std::vector<std::string> nodes, users, groups;
  std::string from, span;
};

Judged read_reservation(ReserveWords& w) {
  ReserveOptions& o = w.o;
  core::Window& window = o.window;
  for (const std::string& node : split(w.nodes)) o.nodes.push_back(node_name(node));
  window.users = split(w.users);
  const bool says = !w.from.empty() || !w.span.empty() || !window.users.empty() ||
                    !w.groups.empty() || !window.reason.empty();
  if (window.name.empty()) {
    if (says || o.remove || !o.nodes.empty() || !o.selector.empty())
      return Usage{
          "reserve as what? a NAME first; without arguments, muster reserve lists what is "
          "reserved"};
    return o;
  }
  if (const auto wrong = core::qualified_name_errors(key_of(window.name)); !wrong.empty())
    return Usage{"`" + window.name + "`: must be a name such as maintenance-1: " + wrong.front()};
  if (o.remove)
    return says ? Judged(Usage{"--delete: takes no other flags than --nodes and --node-selector"})
                : Judged(o);
  if (o.nodes.empty() == o.selector.empty())
    return Usage{"reserve which nodes? --nodes n1,n2 or --node-selector LABEL=VALUE"};
  if (w.from.empty() || w.span.empty()) return Usage{"reserve when? --from WHEN --for DURATION"};
  const Millis now = wall_now();
  auto from = parse_when(w.from, now);
  if (!from) return Usage{"--from: " + from.error().message};
  if (*from / 1000 < now / 1000) return Usage{"--from: " + when_text(*from) + " is in the past"};
  Millis span = 0;
  if (auto wrong = read_span("--for", w.span, span)) return *wrong;
  if (span < 1'000) return Usage{"--for: must be at least 1s"};
  window.from_ms = *from / 1000 * 1000;
  window.until_ms = window.from_ms + span / 1000 * 1000;
  for (const std::string& group : split(w.groups)) {
    const auto gid = gid_of(group);
    if (!gid) return Usage{"--group: there is no group " + group + " on this machine"};
    window.groups.emplace_back(group, *gid);
  }
  return o;
}

}  // namespace

Verb reserve_verb() {
  auto w = std::make_shared<ReserveWords>();
  return {
      .title = {"Nodes", "reserve", "Reserve nodes for maintenance or for some users, for a time"},
      .rows = {{"name", "NAME", "Name of the reservation (default: list all)", &w->o.window.name},
               {"--nodes", "NODE,...", "Nodes, by name; repeatable", &w->nodes},
               {"--node-selector", "L",
                "Nodes with these labels now, such as rack=7; for nodes that register later, run "
                "the command again",
                &w->o.selector},
               {"--from", "WHEN",
                "Beginning: 2026-12-01T18:00, 18:00, or a time from now such as +4h", &w->from},
               {"--for", "T", "Duration, such as 4h", &w->span},
               {"--user", "USER,...", "Users whose pods may run then; repeatable", &w->users},
               {"--group", "GROUP,...", "Groups whose members' pods may run then; repeatable",
                &w->groups},
               {"--reason", "TEXT", "Reason, shown by muster why and muster reserve",
                &w->o.window.reason},
               {"--delete", "", "Give the reservation up", &w->o.remove}},
      .asks = {&w->o.target, ""},
      .footer =
          "Without --user and --group, it is maintenance: no pods run there then. Before it "
          "begins, pods that could not end in time do not start on these nodes, unless the "
          "reservation is for their owner; pods without a time limit (--time) never could. What "
          "still runs when it begins is ended and runs again elsewhere.\n"
          "Examples:\n  muster reserve firmware --nodes c17,c18 --from 2026-12-01T18:00 --for 4h "
          "--reason 'new firmware'\n  muster reserve course --node-selector rack=7 --from 09:00 "
          "--for 8h --group hpc1\n  muster reserve\n  muster reserve course --delete",
      .finish = [w](const Given& given) -> Judged {
        if (auto empty = check_filled(given, {{"--nodes", w->nodes},
                                              {"--node-selector", {w->o.selector}},
                                              {"--user", w->users},
                                              {"--group", w->groups}}))
          return *empty;
        return read_reservation(*w);
      }};
}

}  // namespace muster::cli
