#include "cli/grammar/typed_words.hpp"

#include <algorithm>
#include <cstddef>
#include <sstream>

namespace muster::cli {
namespace {

// Each occurrence of these counts, wherever it is.
constexpr const char* kAdditive = "--env";

std::vector<std::string> names_in(const FlagRow& row) {
  std::vector<std::string> names;
  std::istringstream all(row.names);
  for (std::string name; std::getline(all, name, ',');) names.push_back(name);
  return names;
}

const FlagRow* row_named(const FlagRows& rows, const std::string& flag) {
  const auto found = std::ranges::find_if(rows, [&flag](const FlagRow& row) {
    const auto names = names_in(row);
    return flag.starts_with('-') && std::ranges::find(names, flag) != names.end();
  });
  return found == rows.end() ? nullptr : &*found;
}

// As CLI11 calls it: by its first long name, or else its short one.
std::string name_in(const FlagRow& row) {
  const auto names = names_in(row);
  const auto longer =
      std::ranges::find_if(names, [](const std::string& name) { return name.starts_with("--"); });
  return longer == names.end() ? names.front() : *longer;
}

bool takes_value(const FlagRow& row) {
  return !row.type.empty();
}

// The flag that takes the next word: the last one of "-kn". Null: none does.
const FlagRow* waiting_flag(const FlagRows& rows, const std::string& word) {
  if (word.starts_with("--")) {
    const FlagRow* row = row_named(rows, word);
    return row != nullptr && takes_value(*row) ? row : nullptr;
  }
  for (size_t i = 1; i < word.size(); ++i) {
    const FlagRow* row = row_named(rows, std::string("-") + word[i]);
    if (row == nullptr) return nullptr;
    if (takes_value(*row)) return i + 1 == word.size() ? row : nullptr;
  }
  return nullptr;
}

std::string flag_name(const FlagRows& rows, const std::string& word) {
  const std::string flag =
      word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
  const FlagRow* row = row_named(rows, flag);
  return row == nullptr ? flag : name_in(*row);
}

void append(std::vector<std::string>& to, const std::vector<std::string>& words) {
  to.insert(to.end(), words.begin(), words.end());
}

}  // namespace

TypedWords typed_words(const FlagRows& rows, const std::vector<std::string>& words) {
  TypedWords out;
  for (size_t at = 0; at < words.size();) {
    const std::string& word = words[at++];
    if (word.size() < 2 || word[0] != '-' || word == "--") {
      out.rest.assign(words.begin() + static_cast<std::ptrdiff_t>(at) - 1, words.end());
      break;
    }
    TypedFlag flag{flag_name(rows, word), {word}};
    if (const FlagRow* row = waiting_flag(rows, word); row != nullptr && at < words.size()) {
      const bool optional = (row->marks & kOptional) != 0;
      if (!optional || !words[at].starts_with('-')) flag.words.push_back(words[at++]);
    }
    out.flags.push_back(std::move(flag));
  }
  return out;
}

std::string first_flag(const FlagRows& rows, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    std::string flag = word.substr(0, word.find('='));
    if (flag.starts_with("--") && row_named(rows, flag) != nullptr) return flag;
  }
  return "";
}

std::string empty_flag(const FlagRows& rows, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (!word.starts_with("--") || !word.ends_with('=')) continue;
    const FlagRow* row = row_named(rows, word.substr(0, word.size() - 1));
    if (row != nullptr && takes_value(*row)) return word;
  }
  return "";
}

std::vector<std::string> with_script_flags(const FlagRows& rows, const ScriptFlags& script,
                                           const TypedWords& typed) {
  // Whether `flag` is overridden by one of `others`.
  const auto overridden = [&script](const TypedFlag& flag, const std::vector<TypedFlag>& others) {
    const auto yields = script.yields.find(flag.name);
    return std::ranges::any_of(others, [&](const TypedFlag& other) {
      if (other.name == flag.name) return flag.name != kAdditive;
      return yields != script.yields.end() && yields->second.contains(other.name);
    });
  };
  std::vector<TypedFlag> of_lines;
  for (const ScriptFlags::Line& line : script.lines)
    for (TypedFlag& flag : typed_words(rows, line.words).flags) of_lines.push_back(std::move(flag));
  std::vector<std::string> out;
  for (const TypedFlag& flag : typed_words(rows, script.first).flags)
    if (!overridden(flag, of_lines) && !overridden(flag, typed.flags)) append(out, flag.words);
  for (const TypedFlag& flag : of_lines)
    if (!overridden(flag, typed.flags)) append(out, flag.words);
  for (const TypedFlag& flag : typed.flags) append(out, flag.words);
  out.push_back(typed.rest.front());
  return out;
}

}  // namespace muster::cli
