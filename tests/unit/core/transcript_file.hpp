// Transcript files: lines of commands, each followed by the answers to it, which begin with "> ".
// They open with their name and what they show; other lines with # are comments.
// MUSTER_GOLDEN_WRITE=1 rewrites the answers.
#pragma once

#include "tests/unit/checked_in.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

// The parts between the separators, without spaces around them; empty ones are left out.
inline std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  std::string part;
  std::istringstream in{std::string(text)};
  while (std::getline(in, part, at)) {
    auto first = part.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    parts.push_back(part.substr(first, part.find_last_not_of(' ') - first + 1));
  }
  return parts;
}

inline int64_t number(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  EXPECT_TRUE(error == std::errc{} && end == text.data() + text.size())
      << "not a number: \"" << text << "\"";
  return value;
}

// Parses "key=value" words; a word without "=" has an empty value.
inline std::map<std::string, std::string> options(const std::vector<std::string>& words,
                                                  size_t from) {
  std::map<std::string, std::string> found;
  for (size_t i = from; i < words.size(); ++i) {
    auto equal = words[i].find('=');
    found[words[i].substr(0, equal)] = equal == std::string::npos ? "" : words[i].substr(equal + 1);
  }
  return found;
}

// The names of the transcripts in a folder of the checkout, without .txt.
inline std::vector<std::string> transcripts_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(checkout() / folder))
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Expects the answers in the file `name`. play(line) returns them, without "> ".
template <class Play>
void expect_answers(const std::string& name, Play play) {
  const std::string written = read_checked_in(name);
  std::string played, line;
  ASSERT_TRUE(written.starts_with("# " + name + ": "))
      << "a transcript opens with its name and what it shows";
  std::istringstream lines(written);
  while (std::getline(lines, line)) {
    if (line.starts_with("> ")) continue;
    played += line + "\n";
    if (line.empty() || line.starts_with("#")) continue;
    for (const std::string& answer : play(line)) {
      EXPECT_FALSE(answer.starts_with("error")) << line << ": " << answer;
      played += "> " + answer + "\n";
    }
  }
  expect_checked_in(name, played);
}

}  // namespace muster::core
