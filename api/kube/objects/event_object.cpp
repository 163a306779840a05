#include "api/kube/objects/event_object.hpp"

#include "base/bytes.hpp"
#include "base/text/time_text.hpp"

#include <cinttypes>
#include <cstdio>

namespace muster::api {

std::string event_hash(const std::string& text) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, fnv1a(text));
  return digits;
}

Json event_object(const core::Kept& kept, const EventSubject& subject, const EventText& text) {
  const std::string first = time_text(text.first);
  Json about = {{"kind", subject.kind},
                {"apiVersion", subject.api_version},
                {"name", subject.name},
                {"uid", subject.uid}};
  if (!subject.ns.empty()) about["namespace"] = subject.ns;
  return {{"kind", "Event"},
          {"apiVersion", "v1"},
          {"metadata",
           {{"name", kept.name},
            {"namespace", kept.ns},
            {"uid", kept.uid},
            {"creationTimestamp", first}}},
          {"involvedObject", std::move(about)},
          {"reason", text.reason},
          {"message", text.message},
          {"source", {{"component", text.component}}},
          {"firstTimestamp", first},
          {"lastTimestamp", time_text(text.last)},
          {"count", text.count},
          {"type", text.warning ? "Warning" : "Normal"},
          {"eventTime", nullptr},
          {"reportingComponent", text.component},
          {"reportingInstance", ""}};
}

}  // namespace muster::api
