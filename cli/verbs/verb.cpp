#include "cli/verbs/verb.hpp"

namespace muster::cli {

FlagRow key_row(const Key& key, const std::string& names) {
  const bool toggle = key.form == Key::Form::toggle;
  const bool tells_default = *key.fallback != '\0' && !toggle;
  FlagRow row{names.empty() ? std::string("--") + key.name : names, toggle ? "" : key.type,
              key.help + (tells_default ? " (default " + std::string(key.fallback) + ")" : "") +
                  (key.words.empty() ? "" : ":"),
              KeyName{key.name, key.form}};
  if (!key.words.empty()) row.accepts = key.words;
  return row;
}

}  // namespace muster::cli
