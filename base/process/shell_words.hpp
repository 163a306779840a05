// Shell words: a command as its user may have typed it.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// Quotes a word for a shell, if necessary.
std::string shell_quoted(std::string_view word);

// Likewise, a word of a manifest's command, which has $$ for each dollar sign of the user's.
std::string typed_word(std::string_view word);

}  // namespace muster
