#include "agent/files/note.hpp"

#include <algorithm>
#include <charconv>
#include <concepts>
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

std::string text_of(const core::Usage& used) {
  return std::to_string(used.user_us) + "," + std::to_string(used.system_us) + "," +
         std::to_string(used.peak_bytes);
}

// Nothing used if it is damaged.
core::Usage usage_in(std::string_view text) {
  core::Usage used;
  for (uint64_t* const number : {&used.user_us, &used.system_us, &used.peak_bytes}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    if (error != std::errc()) return {};
    text.remove_prefix(std::min(text.size(), static_cast<size_t>(end - text.data()) + 1));
  }
  return used;
}

std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

bool next_number(std::string_view& text, std::integral auto& number) {
  const std::string_view word = next_word(text);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size();
}

}  // namespace

std::string Note::text() const {
  const char* const version = !session.empty() ? "3 " : planned ? "2 " : "1 ";
  std::string out = std::string(version) + std::to_string(grace_ms) + " " + job_uid + " " +
                    pod_name + " " + container;
  if (!session.empty()) return out + " " + session;
  if (!planned) return out;
  return out + " " + std::to_string(generation) + " " + std::to_string(level) + " " +
         std::to_string(pod_started_at.value_or(0)) + " " + text_of(devices) +
         (used.known() ? " " + text_of(used)
          : stop       ? " -"
                       : "") +
         (stop ? " " + std::to_string(static_cast<int>(*stop)) : "");
}

Note Note::parse(std::string_view text) {
  Note note;
  const std::string_view version = next_word(text);
  if (!next_number(text, note.grace_ms)) return {};
  note.job_uid = next_word(text);
  note.pod_name = next_word(text);
  note.container = next_word(text);
  if (note.container.empty()) return {};
  if (version == "1") return note;
  if (version == "3") {
    note.session = next_word(text);
    return note.session.empty() ? Note{} : note;
  }
  Millis started_at = 0;
  note.planned = true;
  if (version != "2" || !next_number(text, note.generation) || !next_number(text, note.level) ||
      !next_number(text, started_at))
    return {};
  const std::string_view devices = next_word(text);
  if (devices.empty()) return {};
  if (started_at != 0) note.pod_started_at = started_at;
  note.devices = devices_in(std::string(devices));
  note.used = usage_in(next_word(text));
  if (int stop = 0; next_number(text, stop) && stop >= 0 && stop < core::kEndCauses)
    note.stop = static_cast<core::EndCause>(stop);
  return note;
}

}  // namespace muster::agent
