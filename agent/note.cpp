#include "agent/note.hpp"

#include <charconv>
#include <memory>
#include <sstream>

namespace muster::agent {

namespace {

std::string text_of(const core::node::DeviceMapPtr& devices) {
  if (!devices || devices->empty()) return "-";
  std::string out;
  for (const auto& [name, numbers] : *devices) {
    out += (out.empty() ? "" : ";") + name + "=";
    for (size_t i = 0; i < numbers.size(); ++i) {
      out += (i == 0 ? "" : ",") + std::to_string(numbers[i]);
    }
  }
  return out;
}

core::node::DeviceMapPtr devices_in(const std::string& text) {
  if (text == "-") return nullptr;
  auto devices = std::make_shared<core::node::DeviceMap>();
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, ';');) {
    size_t equals = one.find('=');
    if (equals == std::string::npos) continue;
    auto& numbers = (*devices)[one.substr(0, equals)];
    std::istringstream list(one.substr(equals + 1));
    for (std::string number; std::getline(list, number, ',');) {
      uint32_t value = 0;
      auto end = number.data() + number.size();
      if (std::from_chars(number.data(), end, value).ptr == end) numbers.push_back(value);
    }
  }
  return devices;
}

}  // namespace

std::string Note::text() const {
  const char* const version = !session.empty() ? "3 " : planned ? "2 " : "1 ";
  std::string out = std::string(version) + std::to_string(grace_ms) + " " + job_uid + " " +
                    pod_name + " " + container;
  if (!session.empty()) return out + " " + session;
  if (!planned) return out;
  return out + " " + std::to_string(generation) + " " + std::to_string(level) + " " +
         std::to_string(pod_started_at.value_or(0)) + " " + text_of(devices);
}

Note Note::parse(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string version;
  Note note;
  if (!(in >> version >> note.grace_ms >> note.job_uid >> note.pod_name >> note.container)) {
    return {};
  }
  if (version == "1") return note;
  if (version == "3") return in >> note.session ? note : Note{};
  Millis started_at = 0;
  std::string devices;
  note.planned = true;
  if (version != "2" || !(in >> note.generation >> note.level >> started_at >> devices)) {
    return {};
  }
  if (started_at != 0) note.pod_started_at = started_at;
  note.devices = devices_in(devices);
  return note;
}

}  // namespace muster::agent
