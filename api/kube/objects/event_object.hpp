// EventObject: an event that muster itself stores, as JSON.
#pragma once

#include "base/clock.hpp"
#include "base/text/json.hpp"
#include "core/kept.hpp"

#include <cstdint>
#include <string>

namespace muster::api {

// The object that an event is about.
struct EventSubject {
  const char *kind, *api_version;
  std::string ns{}, name{}, uid{};  // no namespace: it is in none
};

struct EventText {
  bool warning = false;
  std::string reason, message;
  const char* component = "muster";
  Millis first = 0, last = 0;
  int64_t count = 1;
};

// For the names of events: those that say the same have the same name.
std::string event_hash(const std::string& text);

// The JSON of the event that is stored as `kept`, whose name, namespace and uid are set.
Json event_object(const core::Kept& kept, const EventSubject& subject, const EventText& text);

}  // namespace muster::api
