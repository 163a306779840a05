#include "api/routes/kept/node_routes.hpp"

#include "api/kube/objects/manifest.hpp"
#include "api/kube/schema/fields.hpp"
#include "api/request/body.hpp"
#include "api/request/field_owners.hpp"
#include "api/request/writes.hpp"
#include "api/routes/kept/node_events.hpp"
#include "api/routes/kept/owner_deletion.hpp"
#include "api/routes/kept/unknown_names.hpp"
#include "api/view/query/object_json.hpp"
#include "core/cluster/nodes/node_reasons.hpp"
#include "core/cluster/nodes/windows.hpp"
#include "core/spec/values/violations.hpp"

#include <kj/vector.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace muster::api {
namespace {

constexpr size_t kReasonMax = 1'024;  // bytes

core::StringMap strings(const Json& object, const std::string& path, core::Violations& found) {
  core::StringMap map;
  if (!object.is_object()) return map;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string())
      found.invalid(path + "." + key, value.dump(), "must be a string");
    else
      map[key] = value.get<std::string>();
  }
  return map;
}

std::vector<core::Taint> taints(const Json& list, core::Violations& found) {
  std::vector<core::Taint> all;
  if (!list.is_array()) return all;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path = "spec.taints[" + std::to_string(i) + "]";
    auto text = [&](const char* name) {
      auto it = list[i].find(name);
      return it != list[i].end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    if (!list[i].is_object()) {
      found.invalid(path, list[i].dump(), "must be an object");
      continue;
    }
    core::Taint taint{text("key"), text("value"), text("effect")};
    if (is_shown_taint(taint)) continue;  // a client has sent back what it was shown
    if (taint.key.empty()) found.required(path + ".key", "");
    if (taint.effect != "NoSchedule" && taint.effect != "PreferNoSchedule" &&
        taint.effect != "NoExecute")
      found.not_supported(path + ".effect", taint.effect,
                          {"NoExecute", "NoSchedule", "PreferNoSchedule"});
    all.push_back(std::move(taint));
  }
  return all;
}

// What a client says about its change, and removes it from the object, of which it is no part.
Result<core::GivenReasons> take_reasons(Json& node) {
  core::GivenReasons given;
  core::Violations found;
  const auto meta = node.find("metadata");
  if (meta == node.end() || !meta->is_object()) return given;
  const auto all = meta->find("annotations");
  if (all == meta->end() || !all->is_object()) return given;
  all->erase(kReasonsKey);
  for (auto [key, into] :
       {std::pair(kCordonReasonKey, &given.cordon), std::pair(kTaintReasonKey, &given.taint)}) {
    const auto said = all->find(key);
    if (said == all->end()) continue;
    if (said->is_string()) *into = reason_line(said->get<std::string>());
    if (*into && (*into)->size() > kReasonMax)
      found.invalid("metadata.annotations." + std::string(key),
                    said->get<std::string>().substr(0, 64),
                    "must have at most " + std::to_string(kReasonMax) + " bytes");
    all->erase(said);
  }
  if (!found.empty()) return Error{Errc::invalid, "the node is invalid", found.take()};
  return given;
}

// What reserves the node is shown to everybody.
void check_windows(core::StringMap& annotations, core::Violations& found) {
  std::string wrong;
  for (auto& [key, text] : annotations) {
    if (!key.starts_with(core::kWindowKeys)) continue;
    text = reason_line(text);
    if (!core::read_window(key.substr(core::kWindowKeys.size()), text, wrong))
      found.invalid("metadata.annotations[" + key + "]", text.substr(0, 64), wrong);
  }
}

// The settings in a Node that a client wrote, without the labels that the agent reports.
Result<core::NodeSpec> node_spec(const Json& json, const core::NodeInfo& node) {
  core::Violations found;
  core::NodeSpec spec;
  const Json meta = json.value("metadata", Json::object());
  const Json from = json.value("spec", Json::object());
  if (!meta.is_object() || !from.is_object())
    return Error{Errc::invalid, "metadata and spec must be objects", {}};
  const Json cordoned = from.value("unschedulable", Json(false));
  if (!cordoned.is_boolean())
    found.invalid("spec.unschedulable", cordoned.dump(), "must be true or false");
  else
    spec.unschedulable = cordoned.get<bool>();
  spec.taints = taints(from.value("taints", Json::array()), found);
  spec.labels = strings(meta.value("labels", Json::object()), "metadata.labels", found);
  for (const char* own : {"kubernetes.io/hostname", "kubernetes.io/os"}) spec.labels.erase(own);
  for (const auto& [key, value] : node.labels)
    if (auto it = spec.labels.find(key); it != spec.labels.end() && it->second == value)
      spec.labels.erase(it);
  spec.annotations =
      strings(meta.value("annotations", Json::object()), "metadata.annotations", found);
  spec.annotations.erase(kUntilKey);
  check_windows(spec.annotations, found);
  if (!found.empty()) return Error{Errc::invalid, "the node is invalid", found.take()};
  return spec;
}

// Those that the change adds: of the others, somebody has been warned before.
std::vector<core::Window> new_windows(const core::NodeSpec& before, const core::NodeSpec& now) {
  if (before.annotations == now.annotations) return {};
  const std::vector<core::Window> had = core::windows_of(before.annotations);
  std::vector<core::Window> added = core::windows_of(now.annotations);
  std::erase_if(
      added, [&had](const core::Window& one) { return std::ranges::find(had, one) != had.end(); });
  return added;
}

// Whether a merge patch or a Node sets it, to whatever value.
bool sets_unschedulable(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  return json.is_object() && find_path(json, {"spec", "unschedulable"}) != nullptr;
}

}  // namespace

kj::Promise<void> NodeRoutes::write(Exchange& exchange, const Target& target,
                                    const std::string& body) {
  auto options = write_options(exchange.url);
  if (!options.ok()) return exchange.bad_options(options.error());
  MakeNode make = [&exchange, body, writer = writer(exchange, *options, Kind::node),
                   now = options_.now()](const Shown& seen) -> Result<core::NodeSpec> {
    const Json base(node_json(*seen.node, seen.version));
    auto json = written(SentBody::of(exchange, body), base);
    if (!json.ok()) return json.error();
    if (!version_holds(version_text(*json), seen.version)) return Error{Errc::conflict, "", {}};
    auto given = take_reasons(*json);
    if (!given.ok()) return given.error();
    auto spec = node_spec(*json, *seen.node);
    if (!spec.ok()) return spec.error();
    spec->reasons =
        core::reasons_after(seen.node->spec, *spec, *given, exchange.caller.called(), now);
    core::sign_windows(seen.node->spec.annotations, spec->annotations, exchange.caller.called());
    return tracked(std::move(*spec), seen, *json, writer);
  };
  return change(exchange, target, options->dry, sets_unschedulable(body), std::move(make),
                kWriteTries);
}

kj::Promise<void> NodeRoutes::apply(Exchange& exchange, const Target& target,
                                    const std::string& body) {
  auto options = apply_options(exchange.url);
  if (!options.ok()) return exchange.bad_options(options.error());
  auto text = applied_object(body);
  if (!text.ok()) return exchange.bad(text.error().message);
  Json config = Json::parse(*text);
  auto unknown = conform(config, "Node");
  if (!unknown.ok()) return exchange.bad(unknown.error().message);
  auto complaints = field_complaints(*unknown, {}, options->unknown_fields);
  if (!complaints.ok()) return exchange.bad(complaints.error().message);
  exchange.warnings = std::move(*complaints);
  if (config["kind"] != "Node" || config["apiVersion"] != "v1")
    return exchange.bad("apiVersion and kind: expected v1 Node");
  const Json* name = find_path(config, {"metadata", "name"});
  if (name && *name != target.name)
    return exchange.bad("metadata.name: the object does not match the request (" + target.name +
                        ")");
  auto given = take_reasons(config);
  if (!given.ok()) return exchange.send_error(given.error(), "nodes", target.name);
  MakeNode make = [&exchange, config, given = *given, force = options->force,
                   writer = writer(exchange, *options, Kind::node),
                   now = options_.now()](const Shown& seen) -> Result<core::NodeSpec> {
    if (!version_holds(version_text(config), seen.version)) return Error{Errc::conflict, "", {}};
    auto made = applied("Node", node_document(seen), config, writer, force);
    if (!made.ok()) return made.error();
    auto spec = node_spec(*made, *seen.node);
    if (!spec.ok()) return spec.error();
    spec->annotations.erase(kReasonsKey);
    spec->reasons =
        core::reasons_after(seen.node->spec, *spec, given, exchange.caller.called(), now);
    core::sign_windows(seen.node->spec.annotations, spec->annotations, exchange.caller.called());
    spec->managers = managers_text(*made);
    return spec;
  };
  return change(exchange, target, options->dry, false, std::move(make), kWriteTries);
}

kj::Promise<void> NodeRoutes::change(Exchange& exchange, const Target& target, bool dry,
                                     bool uncordons, MakeNode make, int tries) {
  const auto shown = view_.node(target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "nodes", target.name);
  auto spec = make(*shown);
  if (!spec.ok()) return exchange.send_error(spec.error(), "nodes", target.name);
  const bool reopens = uncordons && !spec->unschedulable && !shown->node->starts_failing.empty();
  if (*spec == shown->node->spec && (dry || !reopens)) return respond(exchange, *shown);
  core::NodeInfo pretended = *shown->node;
  pretended.spec = *spec;
  if (const auto why = beyond_bounds(dumped(node_json(pretended, shown->version))))
    return too_large(exchange, *why);
  if (dry) {
    return respond(exchange, {.kind = Kind::node, .node = &pretended, .version = shown->version});
  }
  Call call = new_call();
  auto news = core::news_of(shown->node->spec, *spec, exchange.caller.called());
  auto windows = new_windows(shown->node->spec, *spec);
  backend_.change_node(target.name, shown->node->spec, *spec, std::move(call.done));
  return call.promise.then(
      [this, &exchange, target, uncordons, make = std::move(make), tries, news = std::move(news),
       windows = std::move(windows)](Status status) mutable -> kj::Promise<void> {
        if (!status.ok() && status.error().code == Errc::conflict && tries > 1)
          return change(exchange, target, false, uncordons, std::move(make), tries - 1);
        const auto now = view_.node(target.name);
        if (!status.ok() || !now)
          return exchange.send_error({status.ok() ? Errc::not_found : status.error().code, "", {}},
                                     "nodes", target.name);
        for (const core::NodeNews& one : news) tell(*now->node, one);
        if (windows.empty()) return respond(exchange, *now);
        return doubt(exchange, target, windows);
      });
}

// Warns of users and groups for whom the node is reserved and that do not exist.
kj::Promise<void> NodeRoutes::doubt(Exchange& exchange, const Target& target,
                                    const std::vector<core::Window>& windows) {
  kj::Vector<kj::Promise<void>> doubts;
  for (const core::Window& window : windows)
    doubts.add(warn_of_unknown(exchange, streams_.timer, directory_, window));
  return kj::joinPromises(doubts.releaseAsArray()).then([this, &exchange, target] {
    const auto now = view_.node(target.name);
    return now ? respond(exchange, *now)
               : exchange.send_error({Errc::not_found, "", {}}, "nodes", target.name);
  });
}

// Stored like an event of a client. One that is lost is still in the audit log.
void NodeRoutes::tell(const core::NodeInfo& node, const core::NodeNews& news) {
  auto event = node_event(node, random_uid(), {false, news.reason, news.message}, options_.now());
  backend_.write_kept(nullptr, std::move(event), {}, [](const Status&) {});
}

kj::Promise<void> NodeRoutes::remove(Exchange& exchange, const Target& target,
                                     const std::string& body) {
  auto options = delete_options(exchange.url, body, exchange.content_type);
  if (!options.ok()) return exchange.bad_options(options.error());
  const auto shown = view_.node(target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "nodes", target.name);
  const std::string uid = shown->node->work_dir_id;
  auto success = [&exchange, target, uid] {
    return exchange.send(200, dumped(success_json("nodes", target.name, uid)) + "\n");
  };
  if (options->dry) return success();
  auto removal =
      OwnerDeletion(view_, backend_)
          .other(uid, options->propagation, [this, target](std::function<void(Status)> done) {
            backend_.delete_node(target.name, std::move(done));
          });
  return removal.then([&exchange, target, success](Status status) -> kj::Promise<void> {
    if (!status.ok())
      return exchange.send_error({status.error().code, "", {}}, "nodes", target.name);
    return success();
  });
}

kj::Promise<void> NodeRoutes::end_unknown_pods(Exchange& exchange, const Target& target,
                                               const std::string&) {
  Call call = new_call();
  backend_.end_unknown_pods(target.name, std::move(call.done));
  return call.promise.then([&exchange, name = target.name](const Status& status) {
    if (!status.ok()) return exchange.send_error({status.error().code, "", {}}, "nodes", name);
    return exchange.send(200, dumped(success_json()) + "\n");
  });
}

}  // namespace muster::api
