#include "standby/documents.hpp"

#include "base/text/json.hpp"

#include <utility>

namespace muster::standby {
namespace {

constexpr int kFormat = 1;

struct PlaceField {
  const char* name;
  std::string core::standby::Place::*member;
};
constexpr PlaceField kPlaceFields[] = {
    {"peers", &core::standby::Place::peers},          {"api", &core::standby::Place::api},
    {"apiTls", &core::standby::Place::api_tls},       {"listen", &core::standby::Place::listen},
    {"listenTls", &core::standby::Place::listen_tls}, {"version", &core::standby::Place::version}};

Error unreadable(const std::string& what) {
  return invalid("the store holds something else than " + what +
                 " of this version of muster: if the prefix belongs to another program, choose "
                 "another one; if a newer muster wrote it, use that version");
}

}  // namespace

std::string configuration_text(const core::standby::Configuration& configuration) {
  OrderedJson members = OrderedJson::object();
  for (const auto& [name, place] : configuration.members) {
    OrderedJson fields = OrderedJson::object();
    for (const PlaceField& field : kPlaceFields)
      if (!(place.*field.member).empty()) fields[field.name] = place.*field.member;
    members[name] = std::move(fields);
  }
  return dumped(OrderedJson{{"format", kFormat},
                            {"cluster", configuration.cluster},
                            {"term", configuration.term},
                            {"leader", configuration.leader},
                            {"inSync", ordered(configuration.in_sync)},
                            {"members", std::move(members)}});
}

Result<core::standby::Configuration> read_configuration(std::string_view text) {
  const Error wrong = unreadable("a configuration");
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || member_number<int>(json, "format") != kFormat) return wrong;
  const Json* in_sync = find_path(json, {"inSync"});
  const Json* members = find_path(json, {"members"});
  const auto term = member_number<uint64_t>(json, "term");
  if (!term || in_sync == nullptr || !in_sync->is_object() || members == nullptr ||
      !members->is_object())
    return wrong;
  core::standby::Configuration found{
      member_text(json, "cluster"), *term, member_text(json, "leader"), {}, {}};
  for (const auto& [name, seat] : in_sync->items()) {
    if (!seat.is_string()) return wrong;
    found.in_sync[name] = seat.get<std::string>();
  }
  for (const auto& [name, fields] : members->items()) {
    core::standby::Place& place = found.members[name];
    for (const PlaceField& field : kPlaceFields)
      place.*field.member = member_text(fields, field.name);
  }
  return found;
}

std::string holder_text(const Holder& holder) {
  return dumped(OrderedJson{{"member", holder.member}, {"process", holder.process}});
}

Result<Holder> read_holder(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  Holder holder{member_text(json, "member"), member_text(json, "process")};
  if (holder.member.empty()) return unreadable("the holder of the lead");
  return holder;
}

}  // namespace muster::standby
