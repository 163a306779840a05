#include "api/request/route_base.hpp"

#include "api/view/query/object_json.hpp"
#include "base/text/time_text.hpp"
#include "core/pod_name.hpp"

#include <cstdio>

namespace muster::api {

kj::Promise<void> RouteBase::respond(Exchange& exchange, const Shown& shown, int code) {
  // The name may have passed to another user's object while the request was carried out.
  if (!gate_.viewer(exchange.caller).owns(shown))
    return exchange.send_error({Errc::not_found, "", {}}, exchange.wants.resource,
                               exchange.wants.name);
  std::string text;
  renderer_.whole(text, shown, exchange.form());
  return exchange.send(code, text + "\n");
}

std::optional<Shown> RouteBase::find(const Target& target) const {
  switch (target.kind) {
    case Kind::job:
      return view_.job(target.ns, target.name);
    case Kind::pod:
      return view_.pod(target.ns, target.name);
    case Kind::node:
      return view_.node(target.name);
    case Kind::event:
      return view_.event(target.ns, target.name);
    case Kind::lease:
    case Kind::config_map:
    case Kind::name_space:
    case Kind::cron_job:
    case Kind::queue:
    case Kind::priority_class:
      return view_.kept(*kept_kind_of(target.kind), target.ns, target.name);
  }
  return std::nullopt;
}

Writer RouteBase::writer(const Exchange& exchange, const WriteOptions& options, Kind kind,
                         const std::string& subresource) const {
  return {manager_name(options, exchange.user_agent), api_version(kind), time_text(options_.now()),
          subresource};
}

Admission RouteBase::admission(const std::string& ns, const Caller& caller) const {
  return {ns,
          random_uid(),
          options_.now(),
          random_suffix(),
          options_.knobs.gates,
          caller.owner(),
          options_.image_runtime,
          queues_.all()};
}

std::string RouteBase::random_uid() const {
  const uint64_t a = options_.random(), b = options_.random();
  char text[37];
  snprintf(text, sizeof text, "%08x-%04x-4%03x-%04x-%012llx", static_cast<unsigned>(a >> 32),
           static_cast<unsigned>(a >> 16 & 0xffff), static_cast<unsigned>(a & 0xfff),
           static_cast<unsigned>(0x8000 | (b >> 48 & 0x3fff)),
           static_cast<unsigned long long>(b & 0xffffffffffffu));
  return text;
}

std::string RouteBase::random_suffix() const {
  uint64_t n = options_.random();
  std::string text;
  for (int i = 0; i < 5; ++i, n /= core::kNameAlphabet.size())
    text += core::kNameAlphabet[n % core::kNameAlphabet.size()];
  return text;
}

}  // namespace muster::api
