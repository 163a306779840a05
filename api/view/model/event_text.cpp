#include "api/view/model/event_text.hpp"

#include "core/pod_name.hpp"

#include <charconv>

namespace muster::api {
namespace {

// Like std::to_chars, in base 16.
std::string hex(uint64_t n) {
  char text[17];
  auto end = std::to_chars(text, text + sizeof text, n, 16).ptr;
  return std::string(text, end);
}

// Who did it, and why.
std::string note_of(const core::Job& job, const core::JobEvent& event) {
  const auto note = job.state().notes.find(event.nr);
  return note == job.state().notes.end() ? "" : note->second;
}

// "olga set priority 100, queue gpu". `note`: what was set, and by whom.
std::string overridden_text(const std::string& note) {
  const std::string_view by = " by ";
  const size_t at = note.rfind(by);
  if (at == std::string::npos) return "An operator set " + note;
  const std::string what = note.substr(0, at), who = note.substr(at + by.size());
  return who + (what == "nothing" ? " removed all overrides" : " set " + what);
}

}  // namespace

std::string event_reason(const core::Job& job, const core::JobEvent& event) {
  using Kind = core::JobEvent::Kind;
  switch (event.kind) {
    case Kind::successful_create:
      return "SuccessfulCreate";
    case Kind::successful_delete:
      return "SuccessfulDelete";
    case Kind::completed:
      return "Completed";
    case Kind::failed: {
      const core::Condition* failed = job.condition(core::ConditionType::failed);
      return failed ? std::string(name(failed->reason)) : "Failed";
    }
    case Kind::suspended:
      return "Suspended";
    case Kind::resumed:
      return "Resumed";
    case Kind::too_many_succeeded:
      return "TooManySucceededPods";
    case Kind::gang_broken:
      return "GangBroken";
    case Kind::held:
      return "Held";
    case Kind::released:
      return "Released";
    case Kind::overridden:
      return "Overridden";
    case Kind::cancelled:
      return "Cancelled";
  }
  return {};
}

std::string event_message(const core::Job& job, const core::JobEvent& event) {
  using Kind = core::JobEvent::Kind;
  const core::JobMeta& meta = job.object().meta;
  switch (event.kind) {
    case Kind::successful_create:
      return "Created pod: " + core::pod_name(meta.name, meta.uid, job.indexed(), event.pod);
    case Kind::successful_delete:
      return "Deleted pod: " + core::pod_name(meta.name, meta.uid, job.indexed(), event.pod);
    case Kind::completed:
      return "Job completed";
    case Kind::failed: {
      const core::Condition* failed = job.condition(core::ConditionType::failed);
      return failed ? failed->message : "";
    }
    case Kind::suspended:
      return "Job suspended";
    case Kind::resumed:
      return "Job resumed";
    case Kind::too_many_succeeded:
      return "Too many succeeded pods running after completion count reached";
    case Kind::gang_broken:
      return "Failed pod broke the gang: " +
             core::pod_name(meta.name, meta.uid, job.indexed(), event.pod);
    case Kind::held:
      return "Held by " + note_of(job, event);
    case Kind::released:
      return "Released by " + note_of(job, event);
    case Kind::overridden:
      return overridden_text(note_of(job, event));
    case Kind::cancelled:
      return "Cancelled " + note_of(job, event);
  }
  return {};
}

std::string event_name(const core::Job& job, const core::JobEvent& event) {
  return job.object().meta.name + "." + hex(job.id()) + "-" + hex(event.nr);
}

std::optional<EventId> parse_event_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  EventId event;
  const char* end = name.data() + name.size();
  auto job = std::from_chars(name.data() + dot + 1, end, event.job, 16);
  if (job.ec != std::errc{} || job.ptr == end || *job.ptr != '-') return std::nullopt;
  auto nr = std::from_chars(job.ptr + 1, end, event.nr, 16);
  if (nr.ec != std::errc{} || nr.ptr != end) return std::nullopt;
  return event;
}

}  // namespace muster::api
