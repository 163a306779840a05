// Nearest: guesses what a mistyped word was meant to be. Pure.
//
// The command line uses it for flags, verbs and keys, the API for fields and annotations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// The known word closest to a mistyped one by edit distance; empty if none is close. Words of very
// different lengths are not compared, so a long word costs nothing.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// "; did you mean WORD?"; empty if no word is close.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace muster
